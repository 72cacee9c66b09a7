//go:build slow

package db_test

import (
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"partnerapi/domain"
)

// TestAdvanceResultsProperty: in whatever order and however often steps come,
// statuses never go back, a second delivery of all changes nothing, every counter
// equals a recount, what mail scanners did is no event, and nothing is done with a mail
// that is not sent, or before it was.
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
			before, updates := w.ResultStatuses(ids), w.ResultUpdates()
			if err := w.AdvanceResults(w.T.Context(), steps); err != nil {
				t.Fatal(err)
			}
			for i, after := range w.ResultStatuses(ids) {
				if before[i].Beyond(after) {
					t.Fatalf("a result went from %s back to %s", before[i], after)
				}
			}
			byPerson := slices.ContainsFunc(steps, func(s domain.ResultStep) bool { return s.Automated == "" })
			if told := w.ResultUpdates() - updates; told > 0 && !byPerson {
				t.Fatalf("%d events of what mail scanners did", told)
			}
			all = append(all, steps...)
			w.WantPhishingCounts(t)
			early := w.Number(`SELECT count(*) FROM phishing_results WHERE sent_at IS NULL AND (reported OR automated OR status <> 'scheduled') OR
				least(opened_at, attachment_opened_at, clicked_at, credentials_submitted_at, reported_at) < sent_at`)
			if early > 0 {
				t.Fatalf("something was done with %d mails that were not sent", early)
			}
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
