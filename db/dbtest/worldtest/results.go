package worldtest

import (
	"partnerapi/db/dbtest"
	"partnerapi/domain"
)

// WantPhishingCounts holds every stored count of simulated mails against a recount.
func (w *World) WantPhishingCounts(t interface{ Fatalf(string, ...any) }) {
	for what, query := range map[string]string{
		"days": dbtest.WrongPhishingDays,
		"users": `SELECT count(*) FROM users AS u WHERE (phished_sent, phished_clicked) <> (
				SELECT count(sent_at), count(*) FILTER (WHERE status IN ('attachment_opened', 'clicked', 'credentials_submitted'))
				FROM phishing_results WHERE client_id = u.client_id AND user_id = u.id)`,
		"risks": `SELECT count(*) FROM users AS u JOIN user_risks AS r ON r.client_id = u.client_id AND r.user_id = u.id
			WHERE r.baseline + (SELECT sum(d) FROM unnest(r.deltas) AS d) <> u.score`,
	} {
		var n int
		w.Get(query, nil, &n)
		if n != 0 {
			t.Fatalf("%s: %d differ from a recount", what, n)
		}
	}
}

// ResultStatuses reads the statuses of all results, by id.
func (w *World) ResultStatuses(ids []domain.ResultID) []domain.ResultStatus {
	all := make([]domain.ResultStatus, len(ids))
	for i, id := range ids {
		w.Get("SELECT status FROM phishing_results WHERE id = $1", []any{id}, &all[i])
	}
	return all
}

// ResultUpdates counts the changes of results that events tell of.
func (w *World) ResultUpdates() (n int) {
	w.T.Helper()
	w.Get("SELECT count(*) FROM events WHERE type = $1", []any{domain.ResultUpdated}, &n)
	return n
}
