package outbox_test

import (
	"slices"
	"testing"
	"time"

	"partnerapi/db"
	"partnerapi/db/dbtest/worldtest"
	"partnerapi/db/outbox"
	"partnerapi/domain"
)

// TestFailedMails gives two mails and a simulation up, and takes them up again. A simulation
// that was cancelled is not among them.
func TestFailedMails(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	client := w.AddClient()
	user := w.AddUser(client, domain.RoleStandard, 500)
	request := func() string {
		id := db.NewID[domain.MessageKind]()
		w.Exec("INSERT INTO mail_requests (client_id, id, type, user_id, created_at) VALUES ($1, $2, 'welcome', $3, $4)", client, id, user, noon.Add(-time.Hour))
		return id.UUID()
	}
	waiting, first, second := request(), request(), request()
	due, failed := w.AddUnsent(client, user, time.Time{}), w.AddUnsent(client, user, time.Time{}).UUID()
	w.Exec("UPDATE mail_requests SET failed_at = $1, failure = 'no such mailbox' WHERE id = $2", noon.Add(-time.Minute), first)
	w.Exec("UPDATE mail_requests SET failed_at = $1, failure = 'refused' WHERE id = $2", noon.Add(-time.Second), second)
	w.Exec("UPDATE phishing_results SET status = 'failed', failed_at = $1, failure = 'refused' WHERE id = $2", noon, failed)
	w.cancel(client, w.schedule(client, user, 1)...)

	ids := func(mails []outbox.FailedMail, err error) (ids []string) {
		t.Helper()
		w.Must(err)
		for _, m := range mails {
			ids = append(ids, m.ID)
			if m.Client == nil || *m.Client != client || m.To != user.String()+"@example.com" || m.Failure == "" || (m.Type == domain.PhishingMail) != (m.ID == failed) {
				t.Errorf("%+v", m)
			}
		}
		return ids
	}
	want := func(what string, got []string, want ...string) {
		t.Helper()
		if !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", what, got, want)
		}
	}
	want("all", ids(outbox.FailedMails(t.Context(), w.DB, time.Time{}, 10)), first, second, failed)
	want("since", ids(outbox.FailedMails(t.Context(), w.DB, noon.Add(-2*time.Second), 10)), second, failed)
	want("limit", ids(outbox.FailedMails(t.Context(), w.DB, time.Time{}, 1)), first)

	backlogs := func(want map[string]float64) {
		t.Helper()
		got := worldtest.Figures(t, w.DB)
		for name, n := range want {
			if got[name] != n {
				t.Errorf("%s: got %v, want %v", name, got[name], n)
			}
		}
	}
	backlogs(map[string]float64{
		"mails mail waiting": 1, "mails mail failed": 2, "mail_oldest_seconds mail": 3600,
		"mails simulation waiting": 1, "mails simulation failed": 1, "mail_oldest_seconds simulation": 24 * 3600,
	})

	want("one by its id", ids(outbox.RetryMails(t.Context(), w.DB, time.Time{}, []string{second, waiting, due.UUID()}, 10)), second)
	want("in batches", ids(outbox.RetryMails(t.Context(), w.DB, time.Time{}, nil, 1)), first)
	want("the rest", ids(outbox.RetryMails(t.Context(), w.DB, time.Time{}, nil, 10)), failed)
	want("none", ids(outbox.FailedMails(t.Context(), w.DB, time.Time{}, 10)))
	queued := w.Number("SELECT count(*) FROM outbox WHERE due_at <= $1", noon)
	backlogs(map[string]float64{"mails mail waiting": 3, "mails simulation waiting": 2, "mails mail failed": 0, "mails simulation failed": 0})
	if queued != 3 {
		t.Errorf("got %d mails in the queue, want 3", queued)
	}
	if at := w.UpdatedAt("phishing_results", failed); !at.Equal(noon) {
		t.Errorf("the result was updated at %s", at)
	}
}
