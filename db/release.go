package db

import (
	"context"
	"errors"

	"partnerapi/db/pg"
)

// The names, in the table of what all processes share, of the release of v2 that is served, and of the URL with which
// links in emails begin.
const (
	servedRelease = "release"
	publicURL     = "public_url"
)

// RecordRelease records the release of v2 that a process serves, for those that publish events. It writes nothing if
// that release is recorded already.
func (d *DB) RecordRelease(ctx context.Context, release string) error {
	return d.record(ctx, "record the release that is served", servedRelease, release)
}

// ServedRelease returns the release of v2 that was recorded last; empty if none was.
func (d *DB) ServedRelease(ctx context.Context) (string, error) {
	return d.recorded(ctx, servedRelease)
}

// RecordPublicURL records the URL with which links begin in the emails of a process, for commands that show emails. It
// writes nothing if that URL is recorded already.
func (d *DB) RecordPublicURL(ctx context.Context, url string) error {
	return d.record(ctx, "record the public URL", publicURL, url)
}

// PublicURL returns the URL that was recorded last; empty if none was.
func (d *DB) PublicURL(ctx context.Context) (string, error) { return d.recorded(ctx, publicURL) }

// record stores a text that all processes share, unless it is stored already.
func (d *DB) record(ctx context.Context, action, name, text string) error {
	return pg.Run(ctx, d, action, pg.SQL(`
		INSERT INTO secrets AS s (name, value) VALUES (?0, ?1)
		ON CONFLICT (name) DO UPDATE SET value = excluded.value WHERE s.value <> excluded.value`, name, []byte(text)))
}

// recorded returns a text that record stored; empty if there is none.
func (d *DB) recorded(ctx context.Context, name string) (string, error) {
	text, err := d.secret(ctx, name)
	if errors.Is(err, pg.ErrNoRow) {
		return "", nil
	}
	return string(text), err
}
