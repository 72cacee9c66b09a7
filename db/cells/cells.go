// Package cells knows of which cell the database is, and which keys and secrets of other
// cells a process has to know.
package cells

import (
	"context"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"partnerapi/db"
	"partnerapi/db/pg"
	"partnerapi/domain"
)

// What a process knows of the other cells: where keys live, and the secrets of the cells that
// partners came from.

// Cells caches where keys live. It is safe for concurrent use.
type Cells struct {
	db   *db.DB
	cell domain.Cell
	seen atomic.Pointer[seenCells]
	// refreshing guards refreshedAt, the time of the last refreshNow.
	refreshing  sync.Mutex
	refreshedAt time.Time
}

// seenCells is the result of the last read.
type seenCells struct {
	// here has the digests of keys that live here and name another cell; gone maps those that
	// left to their cells.
	here map[string]bool
	gone map[string]string
	// secrets are those of other cells, by the name of the secret.
	secrets map[string][][]byte
	// arriving reports whether a partner is being copied into this cell.
	arriving bool
}

// Read reads the keys and secrets of the other cells. It returns nil where there are
// none.
func Read(ctx context.Context, d *db.DB) (*Cells, error) {
	cell, err := d.Cell(ctx)
	if err != nil || cell.Count == 1 {
		return nil, err
	}
	c := &Cells{db: d, cell: cell}
	return c, d.Snapshot(ctx, c.see)
}

// movedKey is a key that left with its partner.
type movedKey struct {
	Digest []byte
	Cell   string
}

// readWithin bounds a read.
const readWithin = 5 * time.Second

// read reads everything in one snapshot, on a connection that requests do not wait for: few
// keys are away from the cell that they name.
func (c *Cells) read(ctx context.Context) error {
	return c.db.ReservedSnapshot(ctx, readWithin, c.see)
}

// see does what read does, in the snapshot of ctx.
func (c *Cells) see(ctx context.Context) error {
	seen := &seenCells{here: map[string]bool{}, gone: map[string]string{}, secrets: map[string][][]byte{}}
	strays, err := strayKeys(ctx, c.db, c.cell, pg.SQL("true")) // a revoked one is unknown here, and nowhere else
	if err != nil {
		return err
	}
	for _, k := range strays {
		seen.here[string(k.Digest)] = true
	}
	moved, err := pg.All[movedKey](ctx, c.db, "read the keys that left", pg.SQL("SELECT digest, cell FROM moved_keys"))
	if err != nil {
		return err
	}
	for _, k := range moved {
		seen.gone[string(k.Digest)] = k.Cell
	}
	if seen.arriving, err = pg.One[bool](ctx, c.db, "look for partners that arrive", pg.SQL(
		"SELECT EXISTS (SELECT FROM moves WHERE step = 'arriving')")); err != nil {
		return err
	}
	accepted, err := c.db.AcceptedSecrets(ctx)
	for _, s := range accepted {
		name, _, _ := strings.Cut(s.Name, db.OtherCellSep)
		seen.secrets[name] = append(seen.secrets[name], s.Value)
	}
	if err == nil {
		c.seen.Store(seen)
	}
	return err
}

// Elsewhere returns the code of the cell that a key lives in; it is empty where that is
// this cell. The keys of a partner that is being copied here may be activated at any moment:
// it refreshes before it names another cell, which may name this one.
func (c *Cells) Elsewhere(key string, digest []byte) string {
	seen := c.seen.Load()
	code := c.elsewhere(seen, key, digest)
	if code != "" && seen.arriving {
		c.refreshNow()
		code = c.elsewhere(c.seen.Load(), key, digest)
	}
	return code
}

// Left reports whether a key's partner moved from this cell to another one.
func (c *Cells) Left(digest []byte) bool {
	_, left := c.seen.Load().gone[string(digest)]
	return left
}

// refreshEvery is the least time between two calls of refreshNow that read.
const refreshEvery = 100 * time.Millisecond

// refreshNow reads everything again, at most once in refreshEvery. An error leaves the last
// result.
func (c *Cells) refreshNow() {
	c.refreshing.Lock()
	defer c.refreshing.Unlock()
	if c.db.Now().Sub(c.refreshedAt) < refreshEvery {
		return
	}
	_ = c.read(context.Background()) // Watch logs that the database cannot be read
	c.refreshedAt = c.db.Now()
}

func (c *Cells) elsewhere(seen *seenCells, key string, digest []byte) string {
	if gone, left := seen.gone[string(digest)]; left {
		return gone
	}
	if of := c.cell.OfKey(key); of != c.cell && !seen.here[string(digest)] {
		return of.Code()
	}
	return ""
}

// CursorSecrets are the secrets of cursors that other cells made for partners who came
// from there.
func (c *Cells) CursorSecrets() [][]byte { return c.seen.Load().secrets[db.CursorSecretName] }

// TrackingSecrets are those of links in simulated mails.
func (c *Cells) TrackingSecrets() [][]byte { return c.seen.Load().secrets[db.TrackingSecretName] }

// LinksOf returns the public URL of the cell that the partner of a simulated mail moved
// to; it is empty if the partner is in this cell, or the URL is not known.
func (c *Cells) LinksOf(ctx context.Context, result domain.ResultID) (string, error) {
	found, err := pg.All[string](ctx, c.db, "look where a simulated mail moved", pg.Prepared(pg.SQL(`
		SELECT m.public_url FROM phishing_results AS r JOIN clients AS c ON c.id = r.client_id
		JOIN moves AS m ON m.partner_id = c.partner_id
		WHERE r.id = ? AND m.step = 'gone' AND m.public_url IS NOT NULL`, result)))
	if err != nil || len(found) == 0 {
		return "", err
	}
	return found[0], nil
}

const (
	// reread is how often everything is read again without a notification.
	reread = 10 * time.Second
	// MovesKnown is the time within which every process knows of a move, also where its
	// connection breaks meanwhile.
	MovesKnown = reread + 2*pg.Relisten
)

// Watch follows the moves of partners until ctx ends: it listens, on a connection of its
// own. While the database cannot be reached, the last result holds.
func (c *Cells) Watch(ctx context.Context, log *slog.Logger) {
	c.db.Follow(ctx, db.MovesChannel, reread, func(pg.ListenEvent) error { return c.read(ctx) }, func(err error) {
		log.WarnContext(ctx, "the moves of partners cannot be followed; what was read last holds", "error", err)
	})
}
