package worldtest

import (
	"strings"
	"testing"
	"time"

	"partnerapi/db"
	"partnerapi/db/doctor"
	"partnerapi/domain"
)

// Figures returns the figures of a database by their metric and the values of its labels, such as "mails email waiting".
func Figures(t testing.TB, d *db.DB) map[string]float64 {
	t.Helper()
	figures, err := doctor.CountFigures(t.Context(), d, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]float64{}
	for _, f := range figures {
		all[strings.Join(append([]string{f.Metric}, f.Labels...), " ")] = f.Value
	}
	return all
}

// WrongPhishingDays counts the rows of phishing_days that differ from a recount
// of the results that they are kept of.
const WrongPhishingDays = `SELECT count(*) FROM (
		SELECT client_id, sent_at::date AS day, count(*) AS sent,
			count(*) FILTER (WHERE status <> 'sent') AS opened,
			count(*) FILTER (WHERE status IN ('attachment_opened', 'clicked', 'credentials_submitted')) AS clicked,
			count(*) FILTER (WHERE reported) AS reported,
			count(credentials_submitted_at) AS credentials,
			count(attachment_opened_at) AS attachments
		FROM phishing_results WHERE sent_at IS NOT NULL GROUP BY client_id, sent_at::date
	) AS r FULL JOIN phishing_days AS d USING (client_id, day)
	WHERE (r.sent, r.opened, r.clicked, r.reported, r.credentials, r.attachments)
		IS DISTINCT FROM (d.sent, d.opened, d.clicked, d.reported, d.credentials_submitted, d.attachments_opened)`

// WantPhishingCounts holds every stored count of simulated emails against a recount.
func (w *World) WantPhishingCounts(t interface{ Fatalf(string, ...any) }) {
	for what, query := range map[string]string{
		"days": WrongPhishingDays,
		"users": `SELECT count(*) FROM users AS u WHERE (phished_sent, phished_clicked) <> (
				SELECT count(sent_at), count(*) FILTER (WHERE status IN ('attachment_opened', 'clicked', 'credentials_submitted'))
				FROM phishing_results WHERE client_id = u.client_id AND user_id = u.id)`,
		"risks": `SELECT count(*) FROM users AS u JOIN user_risks AS r ON r.client_id = u.client_id AND r.user_id = u.id
			WHERE r.baseline + (SELECT sum(d) FROM unnest(r.deltas) AS d) <> u.score`,
	} {
		if n := w.Number(query); n != 0 {
			t.Fatalf("%s: %d differ from a recount", what, n)
		}
	}
	wrong, err := doctor.Recount(w.T.Context(), w.DB, "phishing by label and day", "sends by label", "dates of labels")
	if err != nil || len(wrong) > 0 {
		t.Fatalf("labels differ from a recount: %v, %v", wrong, err)
	}
}

// ResultStatuses reads the statuses of all results, by id.
func (w *World) ResultStatuses(ids []domain.ResultID) []domain.ResultStatus {
	all := make([]domain.ResultStatus, len(ids))
	for i, id := range ids {
		w.Scan("SELECT status FROM phishing_results WHERE id = $1", []any{id}, &all[i])
	}
	return all
}

// ResultUpdates counts the changes of results that events tell of.
func (w *World) ResultUpdates() int {
	w.T.Helper()
	return w.Number("SELECT count(*) FROM events WHERE type = $1", domain.ResultUpdated)
}
