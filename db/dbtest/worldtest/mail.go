package worldtest

import (
	"time"

	"partnerapi/db"
	"partnerapi/db/dbtest/fixture"
	"partnerapi/db/outbox"
	"partnerapi/domain"
)

// AddUnsent adds a simulated email that was due a day ago and is still scheduled or,
// unless that is the zero time, sent.
func (w *World) AddUnsent(client domain.ClientID, user domain.UserID, sent time.Time) domain.ResultID {
	w.T.Helper()
	id := db.NewID[domain.ResultKind]()
	w.Add("phishing_templates", fixture.Row{"id": domain.TemplateID{15: 1}})
	w.Add("phishing_results", fixture.Row{
		"client_id": client, "id": id, "user_id": user, "template_id": domain.TemplateID{15: 1}, "created_at": Noon.AddDate(0, 0, -1),
	})
	if !sent.IsZero() {
		now := w.Clock.Now()
		w.Clock.Set(sent)
		w.Exec("INSERT INTO outbox (client_id, id, kind, urgency, due_at) VALUES ($1, $2, 'simulation', 2, $3)", client, id, sent)
		w.Send(w.Claim(1)...)
		w.Clock.Set(now)
	}
	return id
}

// Claim leases up to n emails of the outbox for a minute. Clients take turns.
func (w *World) Claim(n int) []outbox.Lease {
	w.T.Helper()
	leases, err := outbox.ClaimMails(w.T.Context(), w.DB, &w.turns, n, time.Minute)
	w.Must(err)
	return leases
}

// Send marks leased emails as sent, and returns how many were.
func (w *World) Send(leases ...outbox.Lease) int {
	w.T.Helper()
	mails := make([]outbox.SentMail, len(leases))
	for i, l := range leases {
		mails[i] = outbox.SentMail{Lease: l, From: "a@example.com", Subject: "Subject"}
	}
	marked, err := outbox.MarkSent(w.T.Context(), w.DB, mails)
	w.Must(err)
	return len(marked)
}
