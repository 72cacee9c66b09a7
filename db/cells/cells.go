// Package cells finds the cell of the database, the cells in which keys are valid, and the
// secrets of the cells from which partners came.
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

// Cells caches the cells of keys that are not in the cell of their prefix, and the secrets
// of other cells. It is safe for concurrent use.
type Cells struct {
	db    *db.DB
	cell  domain.Cell
	cache atomic.Pointer[cellData]
	// refreshing guards refreshAt, the time from which refreshNow reads again, by Elapsed.
	refreshing sync.Mutex
	refreshAt  time.Duration
}

// cellData is the result of a read.
type cellData struct {
	// strays holds the digests of stray keys; movedTo maps the digests of keys that moved away
	// to the codes of their cells.
	strays  map[string]bool
	movedTo map[string]string
	// secrets holds the secrets of other cells, by the name of the secret.
	secrets map[string][][]byte
	// arriving is true if a partner is being copied into this cell.
	arriving bool
}

// Read reads the keys and secrets of the other cells. It returns nil if there is only one cell.
func Read(ctx context.Context, d *db.DB) (*Cells, error) {
	cell, err := d.Cell(ctx)
	if err != nil || cell.Count == 1 {
		return nil, err
	}
	c := &Cells{db: d, cell: cell}
	return c, d.Snapshot(ctx, c.readIn)
}

// movedKey is a key that moved away with its partner, and the code of its cell.
type movedKey struct {
	Digest []byte
	Cell   string
}

// readWithin is the greatest duration of a read.
const readWithin = 5 * time.Second

// read reads everything in one snapshot, on a reserved connection, so that requests do not wait for it.
func (c *Cells) read(ctx context.Context) error {
	return c.db.ReservedSnapshot(ctx, readWithin, c.readIn)
}

// readIn reads everything in the snapshot of ctx, and replaces the cache unless it fails.
func (c *Cells) readIn(ctx context.Context) error {
	data := &cellData{secrets: map[string][][]byte{}}
	strays, err := strayKeys(ctx, c.db, c.cell, pg.SQL("true")) // with revoked keys, which this cell refuses too
	if err != nil {
		return err
	}
	data.strays = pg.Index(strays, func(k *StrayKey) (string, bool) { return string(k.Digest), true })
	moved, err := pg.All[movedKey](ctx, c.db, "read the keys that left", pg.SQL("SELECT digest, cell FROM moved_keys"))
	if err != nil {
		return err
	}
	data.movedTo = pg.Index(moved, func(k *movedKey) (string, string) { return string(k.Digest), k.Cell })
	if data.arriving, err = pg.One[bool](ctx, c.db, "look for partners that arrive", pg.SQL(
		"SELECT EXISTS (SELECT FROM moves WHERE step = 'arriving')")); err != nil {
		return err
	}
	accepted, err := c.db.AcceptedSecrets(ctx)
	for _, s := range accepted {
		name, _, _ := strings.Cut(s.Name, db.OtherCellSep) // the code of the secret's cell follows
		data.secrets[name] = append(data.secrets[name], s.Value)
	}
	if err == nil {
		c.cache.Store(data)
	}
	return err
}

// Elsewhere returns the code of the other cell in which a key is valid; "" if that is this cell. While a partner is
// being copied into this cell, its keys may become valid here at any moment: Elsewhere then refreshes the cache before
// it returns another cell, because that one could send the caller back here.
func (c *Cells) Elsewhere(key string, digest []byte) string {
	data := c.cache.Load()
	code := c.elsewhere(data, key, digest)
	if code != "" && data.arriving {
		c.refreshNow()
		code = c.elsewhere(c.cache.Load(), key, digest)
	}
	return code
}

// Left reports whether a key's partner moved from this cell to another one.
func (c *Cells) Left(digest []byte) bool {
	_, left := c.cache.Load().movedTo[string(digest)]
	return left
}

// refreshEvery is the least time between two reads by refreshNow.
const refreshEvery = 100 * time.Millisecond

// refreshNow reads everything again, unless it did so within refreshEvery. After an error the cache is unchanged.
func (c *Cells) refreshNow() {
	c.refreshing.Lock()
	defer c.refreshing.Unlock()
	if c.db.Elapsed() < c.refreshAt {
		return
	}
	_ = c.read(context.Background()) // Watch logs errors
	c.refreshAt = c.db.Elapsed() + refreshEvery
}

// elsewhere looks up in data the code of the other cell in which a key is valid: the cell to which it moved, otherwise
// the cell of its prefix, unless it is valid in this cell nevertheless (a stray key). It returns "" if there is none.
func (c *Cells) elsewhere(data *cellData, key string, digest []byte) string {
	if code, moved := data.movedTo[string(digest)]; moved {
		return code
	}
	if cell := c.cell.OfKey(key); cell != c.cell && !data.strays[string(digest)] {
		return cell.Code()
	}
	return ""
}

// CursorSecrets returns the secrets of cursors of other cells, which partners that moved here still use.
func (c *Cells) CursorSecrets() [][]byte { return c.cache.Load().secrets[db.CursorSecretName] }

// TrackingSecrets returns the secrets of links in simulated emails that other cells sent for partners that moved here.
func (c *Cells) TrackingSecrets() [][]byte { return c.cache.Load().secrets[db.TrackingSecretName] }

// LinksOf returns the public URL of the cell to which the partner of a simulated email
// moved; "" if the partner is in this cell, or the URL is not known.
func (c *Cells) LinksOf(ctx context.Context, result domain.ResultID) (string, error) {
	url, err := pg.One[*string](ctx, c.db, "find where a simulated email moved", pg.Prepared(pg.SQL(`
		SELECT max(m.public_url) FROM phishing_results AS r JOIN clients AS c ON c.id = r.client_id
		JOIN moves AS m ON m.partner_id = c.partner_id WHERE r.id = ? AND m.step = 'gone'`, result)))
	return domain.OrZero(url), err
}

const (
	// reread is how often everything is read again without a notification.
	reread = 10 * time.Second
	// MovesKnown is the time within which every process has read the result of a move, even if its connection breaks.
	MovesKnown = reread + 2*pg.Relisten
)

// Watch reads everything again after each notification of a move, and every reread, until ctx ends. It listens on a
// its own connection. While the database cannot be reached, it logs a warning, and the cache is unchanged.
func (c *Cells) Watch(ctx context.Context, log *slog.Logger) {
	c.db.Follow(ctx, db.MovesChannel, reread, func(pg.ListenEvent) error { return c.read(ctx) }, func(err error) {
		log.WarnContext(ctx, "cannot read the moves of partners; the last known state applies", "error", err)
	})
}
