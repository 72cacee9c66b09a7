//go:build slow

package records_test

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"partnerapi/db/records"
	"partnerapi/domain"
)

// drawResults draws records of different results: new ones of users, and known ones.
func drawResults(t *rapid.T, users []domain.UserID, known []domain.ResultRecord) (batch []domain.ResultRecord) {
	seen := map[domain.ResultID]bool{}
	for range rapid.IntRange(1, 6).Draw(t, "records") {
		r := resultOf(rapid.SampledFrom(users).Draw(t, "user"))
		sent := rapid.IntRange(0, 500).Draw(t, "sent")
		isNew := len(known) == 0 || rapid.Bool().Draw(t, "new")
		if !isNew {
			r = rapid.SampledFrom(known).Draw(t, "known")
			if r.SentAt.Given {
				sent = int(noon.Sub(r.SentAt.Value.Time) / day)
			}
		}
		if seen[r.ID.ID] {
			continue
		}
		r.SentAt = moment(time.Duration(sent) * day)
		for _, f := range []*domain.Optional[*domain.Time]{
			&r.OpenedAt, &r.AttachmentOpenedAt, &r.ClickedAt, &r.CredentialsSubmittedAt, &r.ReportedAt,
		} {
			if rapid.IntRange(0, 3).Draw(t, "happened") == 0 {
				*f = maybe(time.Duration(sent)*day - time.Duration(rapid.IntRange(-1, 60).Draw(t, "minutes"))*time.Minute)
			}
		}
		if label := rapid.SampledFrom([]string{"", "Drill", "DRILL", "Other"}).Draw(t, "label"); isNew && label != "" {
			r.Label = domain.Give(label)
		}
		if isNew && rapid.IntRange(0, 2).Draw(t, "waits") == 0 {
			r.SentAt, r.SendAt = domain.Optional[domain.Time]{}, moment(-day)
		}
		batch, seen[r.ID.ID] = append(batch, r), true
	}
	return batch
}

// TestImportResultsProperty: whatever records say, in whichever batches, all counters
// equal a recount, statuses never go back, and the same again changes nothing.
func TestImportResultsProperty(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.Add("phishing_templates", row{"id": aTemplate})
	rapid.Check(t, func(t *rapid.T) {
		var users []domain.UserID
		for range 2 {
			client := w.AddClient()
			for range rapid.IntRange(1, 3).Draw(t, "users") {
				users = append(users, w.AddUser(client, domain.RoleFinance, 700))
			}
		}
		var known []domain.ResultRecord
		var ids []domain.ResultID
		for range rapid.IntRange(1, 4).Draw(t, "batches") {
			batch, before := drawResults(t, users, known), w.ResultStatuses(ids)
			results := importAll(w, records.Results, batch)
			for i, after := range w.ResultStatuses(ids) {
				if before[i].Beyond(after) {
					t.Fatalf("a result went from %s back to %s", before[i], after)
				}
			}
			again := importAll(w, records.Results, batch)
			for i, r := range results {
				if again[i].Outcome != domain.ImportUnchanged && r.Outcome != domain.ImportRefused {
					t.Fatalf("%+v is %+v, and then %+v", batch[i], r, again[i])
				}
				if r.Outcome == domain.ImportCreated {
					ids, known = append(ids, batch[i].ID.ID), append(known, batch[i])
				}
			}
		}
		w.WantPhishingCounts(t)
		w.wantUses(t)
	})
}

// wantUses holds the uses of templates and the outbox against the results.
func (w *world) wantUses(t *rapid.T) {
	for what, query := range map[string]string{
		"uses": `SELECT count(*) FROM (SELECT client_id, template_id, count(*) AS used FROM phishing_results GROUP BY 1, 2) AS r
			FULL JOIN template_uses AS u USING (client_id, template_id) WHERE r.used IS DISTINCT FROM u.used`,
		"outbox": `SELECT count(*) FROM (SELECT client_id, id, send_at FROM phishing_results WHERE status = 'scheduled') AS r
			FULL JOIN outbox AS o USING (client_id, id) WHERE r.send_at IS DISTINCT FROM o.due_at`,
	} {
		if n := w.Number(query); n != 0 {
			t.Fatalf("%s: %d differ", what, n)
		}
	}
}
