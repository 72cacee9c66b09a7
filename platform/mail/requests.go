package mail

import (
	"context"

	"partnerapi/db"
)

// Requests writes the mails that were asked for.
type Requests struct {
	db       *db.DB
	composer *Composer
}

// NewRequests returns a writer.
func NewRequests(d *db.DB, composer *Composer) *Requests { return &Requests{d, composer} }

// Write writes one mail.
func (r *Requests) Write(ctx context.Context, l db.Lease) (Draft, error) {
	m, err := r.db.Mail(ctx, l.Client, l.ID)
	if err != nil || m.Unwanted != "" {
		return Draft{Unwanted: m.Unwanted}, err
	}
	message, err := r.composer.Compose(m, r.db.Now())
	return Draft{Message: message, User: m.User, Due: m.RequestedAt}, err
}
