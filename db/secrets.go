package db

import (
	"context"
	"crypto/rand"
	"errors"

	"partnerapi/db/pg"
)

// The table secrets holds what all processes on a database have in common, and is known to
// no others.

const (
	// cursorSecret names the secret that list cursors are encrypted with.
	cursorSecret = "cursor"
	// trackingSecret names the secret that the links in simulated mails are made with.
	trackingSecret = "tracking"
	// reportSecret names the secret that the links to reports' files are made with.
	reportSecret = "report"
)

// EnsureSecrets makes those of the service's secrets that the database does not hold yet.
func (d *DB) EnsureSecrets(ctx context.Context) error {
	for _, name := range []string{cursorSecret, trackingSecret, reportSecret} {
		secret := make([]byte, 32)
		if _, err := rand.Read(secret); err != nil {
			return err
		}
		_, err := pg.Exec(ctx, d, "make the "+name+" secret",
			pg.SQL("INSERT INTO secrets (name, value) VALUES (?, ?) ON CONFLICT DO NOTHING", name, secret))
		if err != nil {
			return err
		}
	}
	return nil
}

// CursorSecret returns the secret that list cursors are encrypted with. It is
// the same for every process on this database.
func (d *DB) CursorSecret(ctx context.Context) ([]byte, error) { return d.secret(ctx, cursorSecret) }

// TrackingSecret returns the secret that the links in simulated mails are made
// with. It is the same for every process on this database.
func (d *DB) TrackingSecret(ctx context.Context) ([]byte, error) {
	return d.secret(ctx, trackingSecret)
}

// ReportSecret returns the secret that the links to reports' files are made with.
// It is the same for every process on this database.
func (d *DB) ReportSecret(ctx context.Context) ([]byte, error) { return d.secret(ctx, reportSecret) }

func (d *DB) secret(ctx context.Context, name string) ([]byte, error) {
	doing := "read the " + name + " secret"
	secret, err := pg.One[[]byte](ctx, d, doing, pg.SQL("SELECT value FROM secrets WHERE name = ?", name))
	if err == nil && len(secret) == 0 {
		err = errors.New(doing + ": it is empty")
	}
	return secret, err
}
