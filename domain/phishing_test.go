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

// TestChooseTemplate: unseen in the user's language and the least used, else
// the one seen longest ago (decisions 7.5).
func TestChooseTemplate(t *testing.T) {
	a, b, c, d := TemplateID{1}, TemplateID{2}, TemplateID{3}, TemplateID{4}
	day := func(n int) time.Time { return time.Date(2026, 6, n, 0, 0, 0, 0, time.UTC) }
	options := []TemplateOption{{a, English, 5}, {b, English, 2}, {c, English, 2}, {d, Spanish, 0}}
	for name, test := range map[string]struct {
		to   Target
		want TemplateID
	}{
		"the least used, the first of two": {Target{Language: English}, b},
		"not the seen one":                 {Target{Language: English, Seen: map[TemplateID]time.Time{b: day(1)}}, c},
		"unseen before less used":          {Target{Language: English, Seen: map[TemplateID]time.Time{b: day(1), c: day(2)}}, a},
		"all seen: longest ago":            {Target{Language: English, Seen: map[TemplateID]time.Time{a: day(3), b: day(2), c: day(1)}}, c},
		"the user's language":              {Target{Language: Spanish}, d},
		"even if seen":                     {Target{Language: Spanish, Seen: map[TemplateID]time.Time{d: day(1)}}, d},
	} {
		mine := append([]TemplateOption(nil), options...)
		if got, ok := ChooseTemplate(mine, test.to); !ok || got != test.want {
			t.Errorf("%s: %v, %v", name, got[0], ok)
		}
	}
	if _, ok := ChooseTemplate(options, Target{Language: French}); ok {
		t.Error("there is none in French")
	}
	var got []TemplateID
	for range 3 { // users at once are spread over the templates
		id, _ := ChooseTemplate(options, Target{Language: English})
		got = append(got, id)
	}
	if got[0] != b || got[1] != c || got[2] != b {
		t.Errorf("spread over %v", got)
	}
}

// TestPublicFailure verifies that partners see no details of the operator's network, also in failures that version 1.0
// stored.
func TestPublicFailure(t *testing.T) {
	for stored, want := range map[string]string{
		"":                     "",
		FailureCancelled:       "cancelled",
		"the user is inactive": "the user is inactive",
		"given up: connect to the mail server: dial tcp 127.0.0.1:24689: connection refused":       "given up",
		"permanently refused: the mail server refuses the address: 550 5.1.1 relay-2.internal: no": "permanently refused",
		"the mail server refuses the address: 550 5.1.1 relay-2.internal: no":                      "permanently refused",
		"bounced at the old platform": "bounced at the old platform",
	} {
		if got := (&Result{Failure: stored}).PublicFailure(); got != want {
			t.Errorf("%q: got %q, want %q", stored, got, want)
		}
	}
}
