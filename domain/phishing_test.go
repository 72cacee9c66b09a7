package domain

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestAdvance(t *testing.T) {
	at := func(minutes int) time.Time {
		return time.Date(2026, 6, 15, 12, minutes, 0, 0, time.UTC)
	}
	person := func(kind ResultEventKind, minutes int) ResultStep {
		return ResultStep{Kind: kind, At: at(minutes)}
	}
	scanner := func(kind ResultEventKind, minutes int) ResultStep {
		return ResultStep{Kind: kind, At: at(minutes), Automated: ByHead}
	}
	for name, c := range map[string]struct {
		events    []ResultStep
		status    ResultStatus
		changes   int
		automated bool
		clicked   *time.Time
	}{
		"nothing":                        {nil, ResultSent, 0, false, nil},
		"the whole way":                  {[]ResultStep{person(MailOpened, 1), person(MailAttachmentOpened, 2), person(MailClicked, 3), person(MailCredentialsSubmitted, 4)}, ResultCredentialsSubmitted, 4, false, new(at(3))},
		"repeated":                       {[]ResultStep{person(MailClicked, 1), person(MailClicked, 2)}, ResultClicked, 1, false, new(at(1))},
		"late open and click":            {[]ResultStep{person(MailCredentialsSubmitted, 1), person(MailClicked, 2), person(MailOpened, 3)}, ResultCredentialsSubmitted, 1, false, nil},
		"late attachment is another act": {[]ResultStep{person(MailClicked, 1), person(MailAttachmentOpened, 2), person(MailAttachmentOpened, 3)}, ResultClicked, 2, false, new(at(1))},
		"reported beside":                {[]ResultStep{person(MailReported, 1), person(MailReported, 2)}, ResultSent, 1, false, nil},
		"scanner":                        {[]ResultStep{scanner(MailOpened, 1), scanner(MailClicked, 2), scanner(MailClicked, 3)}, ResultSent, 1, true, nil},
		"scanner after a person":         {[]ResultStep{person(MailOpened, 1), scanner(MailClicked, 2)}, ResultOpened, 2, true, nil},
		"a person clicks too":            {[]ResultStep{scanner(MailClicked, 1), person(MailClicked, 2)}, ResultClicked, 2, true, new(at(2))},
		"a person opens only":            {[]ResultStep{scanner(MailClicked, 1), person(MailOpened, 2)}, ResultOpened, 2, true, nil},
		"a person falls otherwise":       {[]ResultStep{scanner(MailClicked, 1), person(MailAttachmentOpened, 2)}, ResultAttachmentOpened, 2, true, nil},
		"scanners submit nothing":        {[]ResultStep{scanner(MailCredentialsSubmitted, 1), scanner(MailAttachmentOpened, 2)}, ResultSent, 0, false, nil},
		"before the sending":             {[]ResultStep{person(MailClicked, -1), person(MailReported, -1)}, ResultSent, 0, false, nil},
		"at the sending":                 {[]ResultStep{person(MailClicked, 0)}, ResultSent, 1, true, nil},
	} {
		t.Run(name, func(t *testing.T) {
			r, changes := Result{Status: ResultSent, SentAt: new(at(0))}, 0
			for _, e := range c.events {
				next, changed := r.Advance(e)
				if changed {
					changes++
				} else if next != r {
					t.Errorf("%+v changed the result silently", e)
				}
				r = next
			}
			if r.Status != c.status || changes != c.changes || r.Automated != c.automated || r.Automated != (r.AutomatedReason != "") {
				t.Errorf("%d changes to %+v", changes, r)
			}
			if (r.ClickedAt == nil) != (c.clicked == nil) || c.clicked != nil && !r.ClickedAt.Equal(*c.clicked) {
				t.Errorf("clicked at %v, not %v", r.ClickedAt, c.clicked)
			}
		})
	}
}

// TestAdvanceNeverBack: in any order and repetition of events the status never
// goes back, no act of a person is uncounted again, and a second telling of the
// same events changes nothing.
func TestAdvanceNeverBack(t *testing.T) {
	kinds := []ResultEventKind{MailOpened, MailAttachmentOpened, MailClicked, MailCredentialsSubmitted, MailReported}
	start := time.Date(2026, 6, 15, 12, 0, 0, 0, time.UTC)
	fell := func(r Result) bool {
		return r.ClickedAt != nil || r.AttachmentOpenedAt != nil || r.CredentialsSubmittedAt != nil
	}
	rapid.Check(t, func(t *rapid.T) {
		r := Result{Status: ResultSent, SentAt: &start}
		var events []ResultStep
		for i := range rapid.IntRange(0, 12).Draw(t, "events") {
			e := ResultStep{Kind: rapid.SampledFrom(kinds).Draw(t, "kind"), At: start.Add(time.Duration(i+2) * time.Second)}
			if rapid.Bool().Draw(t, "scanner") && (e.Kind == MailOpened || e.Kind == MailClicked) {
				e.Automated = ByNetwork
			}
			events = append(events, e)
		}
		personFell := false
		for _, e := range append(events, events...) {
			next, changed := r.Advance(e)
			switch {
			case r.Status.Beyond(next.Status):
				t.Fatalf("%+v moved %s back to %s", e, r.Status, next.Status)
			case r.Reported && !next.Reported, r.Automated && !next.Automated, fell(r) && !fell(next), changed && r == next:
				t.Fatalf("%+v made %+v of %+v", e, next, r)
			}
			personFell = personFell || e.Automated == "" && ResultStatus(e.Kind).Beyond(ResultOpened) && e.Kind != MailReported
			r = next
		}
		if c := r.Counts(); c.Clicked > c.Opened || c.Opened > c.Sent {
			t.Fatalf("%+v counts as %+v", r, c)
		}
		if fell(r) != personFell {
			t.Fatalf("fell %v: %+v after %+v", personFell, r, events)
		}
		for _, e := range events {
			if _, changed := r.Advance(e); changed {
				t.Fatalf("%+v changed %+v a third time", e, r)
			}
		}
	})
}
