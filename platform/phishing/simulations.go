package phishing

import (
	"context"

	"partnerapi/db"
	"partnerapi/db/outbox"
	"partnerapi/platform/mail"
)

// Simulations writes the simulated mails.
type Simulations struct {
	db       *db.DB
	composer *Composer
}

// NewSimulations returns a writer.
func NewSimulations(d *db.DB, composer *Composer) *Simulations { return &Simulations{d, composer} }

// Write writes one mail.
func (w *Simulations) Write(ctx context.Context, l outbox.Lease) (mail.Draft, error) {
	s, err := w.db.Simulation(ctx, l.Result())
	if err != nil || s.Unwanted != "" {
		return mail.Draft{Unwanted: s.Unwanted}, err
	}
	message, err := w.composer.Compose(s, w.db.Now())
	return mail.Draft{Message: message, User: &s.User, Due: s.SendAt}, err
}
