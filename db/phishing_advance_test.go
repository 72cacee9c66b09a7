package db_test

import (
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"partnerapi/db"
	"partnerapi/db/dbtest/worldtest"
	"partnerapi/domain"
)

// TestAdvanceResultsProperty: in whatever order and however often steps come,
// statuses never go back, a second delivery of all changes nothing, and every
// counter equals a recount.
func TestAdvanceResultsProperty(t *testing.T) {
	w := newWorld(t)
	kinds := []domain.ResultEventKind{domain.MailOpened, domain.MailClicked, domain.MailReported, domain.MailCredentialsSubmitted, domain.MailAttachmentOpened}
	rapid.Check(t, func(t *rapid.T) {
		clients := []domain.ClientID{w.AddClient(), w.AddClient()}
		var ids []domain.ResultID
		for i := range rapid.IntRange(1, 5).Draw(t, "mails") {
			client := clients[i%2]
			var sent time.Time
			if rapid.Bool().Draw(t, "sent") {
				sent = noon.AddDate(0, 0, -rapid.IntRange(0, 400).Draw(t, "age"))
			}
			ids = append(ids, w.AddUnsent(client, w.AddUser(client, domain.RoleStandard, 750), sent))
		}
		var all []domain.ResultStep
		for range rapid.IntRange(1, 4).Draw(t, "batches") {
			var steps []domain.ResultStep
			for range rapid.IntRange(0, 8).Draw(t, "steps") {
				steps = append(steps, domain.ResultStep{
					Result: rapid.SampledFrom(ids).Draw(t, "mail"), Kind: rapid.SampledFrom(kinds).Draw(t, "kind"),
					At:        noon.Add(-time.Duration(rapid.IntRange(0, 100000).Draw(t, "seconds")) * time.Second),
					Automated: rapid.SampledFrom([]domain.AutomatedReason{"", "", domain.ByHead}).Draw(t, "by"),
				})
			}
			before := w.ResultStatuses(ids)
			if err := w.AdvanceResults(w.T.Context(), steps); err != nil {
				t.Fatal(err)
			}
			for i, after := range w.ResultStatuses(ids) {
				if before[i].Beyond(after) {
					t.Fatalf("a result went from %s back to %s", before[i], after)
				}
			}
			all = append(all, steps...)
			w.WantPhishingCounts(t)
		}
		for range 2 { // what a person did since may unlock nothing twice
			if err := w.AdvanceResults(w.T.Context(), all); err != nil {
				t.Fatal(err)
			}
		}
		before := w.ResultUpdates()
		if err := w.AdvanceResults(w.T.Context(), all); err != nil {
			t.Fatal(err)
		}
		if moved := w.ResultUpdates() - before; moved != 0 {
			t.Fatalf("repeated, the steps changed %d results", moved)
		}
		w.WantPhishingCounts(t)
	})
}

// TestScannersAreNoEvents: what a mail scanner does marks the result and is no event;
// what a person does beside it is one.
func TestScannersAreNoEvents(t *testing.T) {
	w := newWorld(t)
	client := w.AddClient()
	id := w.AddUnsent(client, w.AddUser(client, domain.RoleStandard, 750), noon.AddDate(0, 0, -3))
	before := w.ResultUpdates()
	step := domain.ResultStep{Result: id, Kind: domain.MailClicked, At: noon, Automated: domain.ByHead}
	w.Must(w.AdvanceResults(t.Context(), []domain.ResultStep{step}))
	var automated bool
	w.Get("SELECT automated FROM phishing_results WHERE id = $1", []any{id}, &automated)
	if n := w.ResultUpdates() - before; n != 0 || !automated {
		t.Errorf("a scanner's click makes %d events; automated: %v", n, automated)
	}
	step.Automated, step.At = "", noon.Add(time.Hour)
	w.Must(w.AdvanceResults(t.Context(), []domain.ResultStep{step}))
	if n := w.ResultUpdates() - before; n != 1 {
		t.Errorf("a person's click makes %d events", n)
	}
}

// TestAdvanceResults: a click moves the result, the day of its sending, the
// user and the events; what is not there is left out; the number of statements is
// that of one step.
func TestAdvanceResults(t *testing.T) {
	counter := &worldtest.Statements{}
	w := newWorld(t, db.WithTracer(counter))
	client := w.AddClient()
	user := w.AddUser(client, domain.RoleStandard, 750)
	id := w.AddUnsent(client, user, noon.AddDate(0, 0, -3))
	steps := []domain.ResultStep{
		{Result: domain.ResultID{1}, Kind: domain.MailClicked, At: noon},
		{Result: id, Kind: domain.MailClicked, At: noon},
		{Result: id, Kind: domain.MailOpened, At: noon.Add(-time.Minute)},
		{Result: id, Kind: domain.MailClicked, At: noon},
	}
	w.Must(w.AdvanceResults(t.Context(), steps))
	var opened, clicked, phished, score, events int
	w.Get(`SELECT d.opened, d.clicked, u.phished_clicked, u.score, (SELECT count(*) FROM events WHERE type = 'phishing.result.updated' AND object_id = $1)
		FROM phishing_days AS d, users AS u WHERE d.client_id = $2 AND d.day = $3 AND u.id = $4`,
		[]any{id, client, noon.AddDate(0, 0, -3), user}, &opened, &clicked, &phished, &score, &events)
	if opened != 1 || clicked != 1 || phished != 1 || score >= 750 || events != 1 { // the sending is none, and both are one batch
		t.Errorf("opened %d, clicked %d and %d, score %d, %d events", opened, clicked, phished, score, events)
	}
	cost := func(n int) int {
		var many []domain.ResultStep
		for range n {
			c := w.AddClient()
			many = append(many, domain.ResultStep{Result: w.AddUnsent(c, w.AddUser(c, domain.RoleStandard, 750), noon.AddDate(0, 0, -1)), Kind: domain.MailClicked, At: noon})
		}
		changes, before := w.ResultUpdates(), counter.Count()
		w.Must(w.AdvanceResults(t.Context(), many))
		cost := counter.Count() - before
		if moved := w.ResultUpdates() - changes; moved != n {
			t.Fatalf("%d steps changed %d results", n, moved)
		}
		return cost
	}
	if one, twenty := cost(1), cost(20); one != twenty {
		t.Errorf("%d statements for one step, %d for twenty", one, twenty)
	}
}

// TestUnsent: nothing is done with a mail that is not sent, or before it was.
func TestUnsent(t *testing.T) {
	w := newWorld(t)
	client := w.AddClient()
	id := w.AddUnsent(client, w.AddUser(client, domain.RoleStandard, 750), time.Time{})
	sent := w.AddUnsent(client, w.AddUser(client, domain.RoleStandard, 750), noon)
	before := w.ResultUpdates()
	w.Must(w.AdvanceResults(t.Context(), []domain.ResultStep{
		{Result: id, Kind: domain.MailReported, At: noon}, {Result: sent, Kind: domain.MailClicked, At: noon.Add(-time.Second)},
	}))
	if got := w.ResultUpdates() - before; got != 0 {
		t.Errorf("%d steps count", got)
	}
	w.WantPhishingCounts(t)
}

// TestTooSoon: within two seconds of its delivery a mail is opened and clicked
// by scanners only.
func TestTooSoon(t *testing.T) {
	w := newWorld(t)
	client := w.AddClient()
	for after, automated := range map[time.Duration]bool{0: true, 1999 * time.Millisecond: true, 2 * time.Second: false} {
		id := w.AddUnsent(client, w.AddUser(client, domain.RoleStandard, 750), noon)
		w.Must(w.AdvanceResults(t.Context(), []domain.ResultStep{{Result: id, Kind: domain.MailClicked, At: noon.Add(after)}}))
		var got bool
		var reason domain.AutomatedReason
		var status domain.ResultStatus
		w.Get("SELECT automated, coalesce(automated_reason, ''), status FROM phishing_results WHERE id = $1", []any{id}, &got, &reason, &status)
		if got != automated || automated != (reason == domain.ByHaste) || automated != (status == domain.ResultSent) {
			t.Errorf("after %v: automated %v, %q, %s", after, got, reason, status)
		}
	}
	w.WantPhishingCounts(t)
}

// TestOneClickAtOnce: the same click told of many times at once counts once.
func TestOneClickAtOnce(t *testing.T) {
	w := newWorld(t)
	client := w.AddClient()
	a, b := w.AddUser(client, domain.RoleStandard, 750), w.AddUser(client, domain.RoleStandard, 750)
	steps := []domain.ResultStep{
		{Result: w.AddUnsent(client, a, noon.AddDate(0, 0, -1)), Kind: domain.MailClicked, At: noon},
		{Result: w.AddUnsent(client, b, noon.AddDate(0, 0, -1)), Kind: domain.MailClicked, At: noon},
	}
	var wait sync.WaitGroup
	before, errs := w.ResultUpdates(), make([]error, 16)
	for i := range errs {
		wait.Go(func() {
			mine := slices.Clone(steps)
			if i%2 == 1 {
				slices.Reverse(mine)
			}
			errs[i] = w.AdvanceResults(t.Context(), mine)
		})
	}
	wait.Wait()
	var clicked int
	w.Get("SELECT clicked FROM phishing_days WHERE client_id = $1", []any{client}, &clicked)
	if err := errors.Join(errs...); err != nil || w.ResultUpdates()-before != 2 || clicked != 2 {
		t.Errorf("changed %d, counted %d: %v", w.ResultUpdates()-before, clicked, err)
	}
	w.WantPhishingCounts(t)
}
