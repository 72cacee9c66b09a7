package db

import (
	"context"
	"errors"

	"partnerapi/db/pg"
)

// servedRelease is the name, in the table of what all processes share, of the release of v2 that is served.
const servedRelease = "release"

// RecordRelease records the release of v2 that a process serves, for those that publish events. It writes nothing if
// that release is recorded already.
func (d *DB) RecordRelease(ctx context.Context, release string) error {
	return pg.Run(ctx, d, "record the release that is served", pg.SQL(`
		INSERT INTO secrets AS s (name, value) VALUES (?0, ?1)
		ON CONFLICT (name) DO UPDATE SET value = excluded.value WHERE s.value <> excluded.value`, servedRelease, []byte(release)))
}

// ServedRelease returns the release of v2 that was recorded last; empty if none was.
func (d *DB) ServedRelease(ctx context.Context) (string, error) {
	release, err := d.secret(ctx, servedRelease)
	if errors.Is(err, pg.ErrNoRow) {
		return "", nil
	}
	return string(release), err
}
