package db

import (
	"context"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"partnerapi/db/pg"
	"partnerapi/domain"
)

// What a process knows of the other cells: which keys live where, and the secrets of those
// that partners came from.

// MovesChannel is told when a partner was moved.
const MovesChannel = "moves"

// Cells knows where keys live, without a look-up. It is safe for concurrent use.
type Cells struct {
	db   *DB
	cell domain.Cell
	seen atomic.Pointer[seenCells]
	// arrivals is held while a key of a partner that arrives is looked for, and looked is
	// when that was done last.
	arrivals sync.Mutex
	looked   time.Time
}

// seenCells is what was read last.
type seenCells struct {
	// here has the digests of keys that live here and name another cell, gone the cells of
	// those that left.
	here map[string]bool
	gone map[string]string
	// secrets are those of other cells, by the name of the secret.
	secrets map[string][][]byte
	// arriving says that a partner is on its way here.
	arriving bool
}

// OtherCells reads what there is to know of the other cells. It is nil where there are
// none.
func (d *DB) OtherCells(ctx context.Context) (*Cells, error) {
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

// readWithin bounds a look at what there is to know.
const readWithin = 5 * time.Second

// read reads everything, as it is at one moment and without waiting for requests: few keys
// are away from the cell that they name.
func (c *Cells) read(ctx context.Context) error {
	return c.db.ReservedSnapshot(ctx, readWithin, c.see)
}

// see reads everything in the snapshot of ctx.
func (c *Cells) see(ctx context.Context) error {
	seen := &seenCells{here: map[string]bool{}, gone: map[string]string{}, secrets: map[string][][]byte{}}
	strays, err := c.db.strayKeys(ctx, c.cell, pg.SQL("true")) // a revoked one is unknown here, and nowhere else
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
	accepted, err := c.db.acceptedSecrets(ctx)
	for _, s := range accepted {
		name, _, _ := strings.Cut(s.Name, secretOf)
		seen.secrets[name] = append(seen.secrets[name], s.Value)
	}
	if err == nil {
		c.seen.Store(seen)
	}
	return err
}

// Elsewhere returns the code of the cell that a key lives in; it is empty where that is
// this cell. While a partner arrives here, its keys may do so at any moment: before
// another cell is named, which may name this one, it is looked again.
func (c *Cells) Elsewhere(key string, digest []byte) string {
	seen := c.seen.Load()
	code := c.elsewhere(seen, key, digest)
	if code != "" && seen.arriving {
		c.lookAgain()
		code = c.elsewhere(c.seen.Load(), key, digest)
	}
	return code
}

// Left reports whether a key's partner moved from this cell to another one.
func (c *Cells) Left(digest []byte) bool {
	_, left := c.seen.Load().gone[string(digest)]
	return left
}

// lookEvery is how often keys of a partner that arrives are looked for at the most.
const lookEvery = 100 * time.Millisecond

// lookAgain reads everything again, unless that was done a moment ago. An error leaves
// what was read last.
func (c *Cells) lookAgain() {
	c.arrivals.Lock()
	defer c.arrivals.Unlock()
	if c.db.Now().Sub(c.looked) < lookEvery {
		return
	}
	_ = c.read(context.Background()) // Watch logs that the database cannot be read
	c.looked = c.db.Now()
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
func (c *Cells) CursorSecrets() [][]byte { return c.seen.Load().secrets[cursorSecret] }

// TrackingSecrets are those of links in simulated mails.
func (c *Cells) TrackingSecrets() [][]byte { return c.seen.Load().secrets[trackingSecret] }

// LinksOf returns where the links begin of the cell that the partner of a simulated mail
// moved to; it is empty where that is this cell, or is not known.
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
	// reread is how often what is known of other cells is read again, where no move tells
	// of itself.
	reread = 10 * time.Second
	// MovesKnown is how long a process may take to know of a move, also where its connection
	// breaks meanwhile.
	MovesKnown = reread + 2*pg.Relisten
)

// Watch follows the moves of partners until ctx ends: it listens, on a connection of its
// own. While the database cannot be reached, what was read last holds.
func (c *Cells) Watch(ctx context.Context, log *slog.Logger) {
	c.db.Follow(ctx, MovesChannel, reread, func(pg.ListenEvent) error { return c.read(ctx) }, func(err error) {
		log.WarnContext(ctx, "the moves of partners cannot be followed; what was read last holds", "error", err)
	})
}

// heldMove is the condition that writes of the partner of a row of moves, alias m, are
// refused: it is being handed over, has left, or is not back yet. A transaction's own time
// is never later than what it sees, so who saw a hold before its end is refused, however
// long it took to look.
const heldMove = "(m.step IN ('handing', 'gone', 'arriving') OR m.step = 'holding' AND m.held_until > now())"

// Resting selects the clients whose mails and events rest, and RestingPartners the
// partners whose deliveries do, while they are handed over to another cell.
const (
	Resting         = "SELECT client_id FROM resting_clients WHERE until > now()"
	RestingPartners = "SELECT m.partner_id FROM moves AS m WHERE " + heldMove
)

// HoldFor bounds how long writes of a partner are refused before the last step of a move.
// Where the command that moves it dies they are taken again after that.
const HoldFor = 30 * time.Second

// holdRetry is when a write is worth trying again that a hold refused.
const holdRetry = 3 * time.Second

// errMoving refuses a write.
func errMoving() error {
	return &domain.Error{
		Code: domain.Unavailable, RetryAfter: holdRetry, Cause: domain.ErrMoving,
		Message: "this partner is being moved within the service, and nothing can be changed for a moment; try again",
	}
}

// refuseResting refuses a change of clients that rest. It comes after locks or writes of
// the transaction: a hold waits for those that it does not refuse, and knows them by these.
func (c *Change) refuseResting(ctx context.Context, clients []domain.ClientID) error {
	if len(clients) == 0 {
		return nil
	}
	rest, err := pg.One[bool](ctx, c, "look whether clients rest", pg.Prepared(pg.SQL(
		"SELECT EXISTS ("+Resting+" AND client_id = ANY(?::uuid[]))", pg.IDs(clients))))
	if err == nil && rest {
		err = errMoving()
	}
	return err
}

// anyHeld is whether any partner is handed over.
const anyHeld = "EXISTS (SELECT 1 FROM moves AS m WHERE " + heldMove + " AND m.step IN ('holding', 'handing'))"

// refuseHeld refuses a change while any partner is handed over: for imports, which may
// write rows of all. It comes after the writes of the transaction, as refuseResting does.
func (c *Change) refuseHeld(ctx context.Context) error {
	held, err := pg.One[bool](ctx, c, "look whether a partner is handed over", pg.Prepared(pg.SQL("SELECT "+anyHeld)))
	if err == nil && held {
		err = errMoving()
	}
	return err
}
