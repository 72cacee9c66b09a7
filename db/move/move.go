// Package move moves a partner from the database of one cell to that of another
// (decisions 13.5 to 13.7).
//
// Both databases keep a row of the table moves, whose step is the state of the move:
//
//	cell  step      constant     what it means                          next, by
//	old   copying   Copying      rows are copied while in use           holding, freeze
//	old   holding   Frozen       writes are refused, for 30 s at most   handing, freezeWithoutEnd; copying, unfreeze
//	old   handing   HandingOver  writes are refused without an end      gone, detach; copying, unfreeze
//	old   gone      Detached     keys are answered with the new cell    cleaned, CleanUp
//	old   cleaned   Cleaned      the rows are deleted
//	new   arriving  Arriving     rows are written, and not served       here, activate; no row, Cancel
//	new   here      Active       the partner is served
//
// Which of the two cells serves the partner is decided by one commit, that of the new
// cell's last transaction (commit): it makes the partner, its clients and its keys appear,
// and sets here. Before it the old cell is handing, and refuses writes until the outcome of
// that transaction is known: detach, or unfreeze. A partner that moves back goes from gone,
// cleaned or here to the first step of its part.
//
// While a partner is frozen its clients are suspended: their mails, events and other work
// wait (db.SuspendedClients). Suspend ends the work that a detached partner left. db.Audit
// refuses writes of a partner that is frozen.
package move

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"partnerapi/db"
	"partnerapi/db/pg"
	"partnerapi/domain"
)

const (
	// drainFor is how long freeze waits for mails and deliveries that are being sent. One
	// that takes longer may be sent twice, as where a process is killed.
	drainFor = 5 * time.Second
	// pollEvery is the interval of waitUntil.
	pollEvery = 20 * time.Millisecond
	// shortPass is the duration of a pass after which writes are frozen: the last pass copies
	// what was written meanwhile, and compares everything a second time. Where a pass copied
	// no more than littleLeft rows, the comparison took the time, and both comparisons only
	// have to fit into the freeze.
	shortPass  = 10 * time.Second
	littleLeft = 2000
	// maxPasses bounds the passes before the freeze: a partner who writes as much as a pass
	// copies is moved at another time.
	maxPasses = 10
	// lastPasses bounds those within a freeze: a second one is needed where a unique key was
	// in the way.
	lastPasses = 4
	// maxFreezes bounds the freezes that end before everything is copied.
	maxFreezes = 3
)

// Step is the state of a move in one of its cells.
type Step string

// The steps of the old cell, and of the new one.
const (
	Copying     Step = "copying"
	Frozen      Step = "holding"
	HandingOver Step = "handing"
	Detached    Step = "gone"
	Cleaned     Step = "cleaned"
	Arriving    Step = "arriving"
	Active      Step = "here"
)

// Move is a move of a partner.
type Move struct {
	// From and To are the databases of the two cells. Both keep their sessions: no pooler
	// in transaction mode is between.
	From, To *db.DB
	Partner  domain.PartnerID
	// Keep is how long the old cell keeps the rows.
	Keep time.Duration
	// Reseal seals a secret with the new cell's key. UUID is what it is sealed for.
	Reseal func(c db.SealedColumn, uuid string, sealed []byte) ([]byte, error)
	// CheckKeys returns an error if secrets of this cell cannot be opened, where the partner
	// has some, or if Reseal's key is not the new cell's. The contexts are of the two cells,
	// and may have transactions of theirs. Nil checks nothing.
	CheckKeys func(old, now context.Context, secrets bool) error
	// File copies the file of a report, unless the new cell has it. It is called before the
	// freeze, and within it for reports that were made meanwhile.
	File func(context.Context, domain.Report) error
	// Logf tells the operator what is done.
	Logf func(format string, args ...any)
	// tables are those that both cells have, as Check found them.
	tables []shaped
	// copied are the reports whose files were copied.
	copied map[domain.ReportID]bool
	// reached, if not nil, is called at each point where a test ends the move.
	reached func(point string)
}

func (m *Move) at(point string) {
	if m.reached != nil {
		m.reached(point)
	}
}

// lockName is the advisory lock under which a partner is moved, and its kept rows deleted.
func lockName(partner domain.PartnerID) string { return "move of partner " + partner.UUID() }

// errMoving reports that another command has the lock.
var errMoving = errors.New("this partner is being moved by another command, or its rows are being deleted: wait for that, or end it")

// exclusively runs fn under the partner's lock in both cells. It returns errMoving where
// another command has it.
func (m *Move) exclusively(ctx context.Context, fn func(context.Context) error) error {
	both := false
	_, err := m.From.TryAdvisoryLock(ctx, lockName(m.Partner), func(ctx context.Context) (err error) {
		both, err = m.To.TryAdvisoryLock(ctx, lockName(m.Partner), fn)
		return err
	})
	if err == nil && !both {
		err = errMoving
	}
	return err
}

// Run moves the partner, or resumes a move that was cut short.
func (m *Move) Run(ctx context.Context) error {
	cells, err := m.readCells(ctx)
	if err != nil {
		return err
	}
	return m.exclusively(ctx, func(ctx context.Context) error {
		active, err := m.activated(ctx)
		if err != nil {
			return err
		}
		if !active {
			if active, err = m.transfer(ctx, cells); err != nil || !active {
				return err
			}
		}
		return m.detach(ctx)
	})
}

// cellPair is the cells of the two databases, and the public URL of the new one.
type cellPair struct {
	from, to  domain.Cell
	publicURL *string
}

// readCells checks that the two databases are of two cells of one installation.
func (m *Move) readCells(ctx context.Context) (c cellPair, err error) {
	if c.from, err = m.From.Cell(ctx); err != nil {
		return c, err
	}
	if c.to, err = m.To.Cell(ctx); err != nil {
		return c, err
	}
	switch {
	case c.from.Count == 1 || c.to.Count == 1:
		return c, errors.New("a partner moves between cells: give both services --cell and --cell-count first")
	case c.from.Count != c.to.Count:
		return c, fmt.Errorf("the cells are of different installations: %s and %s", c.from, c.to)
	case c.from == c.to:
		return c, fmt.Errorf("both databases are of cell %s", c.from)
	}
	c.publicURL, err = pg.One[*string](ctx, m.To, "read the cell", pg.SQL("SELECT public_url FROM cell"))
	return c, err
}

// activated reports whether the new cell serves the partner. It waits for the last
// transaction of an earlier run, where that is still in progress.
func (m *Move) activated(ctx context.Context) (bool, error) {
	var steps []Step
	err := m.To.Tx(ctx, func(ctx context.Context) (err error) {
		if _, err := pg.Exec(ctx, m.To, "bound waits", pg.SQL("SET LOCAL lock_timeout = '30s'")); err != nil {
			return err
		}
		steps, err = pg.All[Step](ctx, m.To, "look at the move", pg.SQL("SELECT step FROM moves WHERE partner_id = ? FOR UPDATE", m.Partner))
		return err
	})
	return slices.Contains(steps, Active), err
}

// transfer copies everything and hands the partner over. It reports whether the new cell
// serves the partner.
func (m *Move) transfer(ctx context.Context, c cellPair) (active bool, err error) {
	if err := m.Check(ctx); err != nil {
		return false, err
	}
	notes, err := m.notes(ctx)
	if err != nil {
		return false, err
	}
	for _, note := range notes {
		m.Logf("%s", note)
	}
	if err := m.unfreeze(ctx); err != nil { // a freeze of an earlier run
		return false, err
	}
	if err := m.start(ctx, c); err != nil {
		return false, err
	}
	for freeze := 1; ; freeze++ {
		if err := m.copyPasses(ctx); err != nil {
			return false, err
		}
		if err := m.copyFiles(ctx); err != nil {
			return false, err
		}
		m.at("copied")
		err := m.handOver(ctx, c)
		if err == nil {
			return true, nil
		}
		// Where the commit's answer was lost, the new cell may have the partner.
		switch active, looked := m.activated(context.WithoutCancel(ctx)); {
		case looked != nil:
			return false, errors.Join(err, looked)
		case active:
			return true, nil
		}
		if released := m.unfreeze(context.WithoutCancel(ctx)); released != nil {
			return false, errors.Join(err, released)
		}
		if !errors.Is(err, errFreezeEnded) || freeze == maxFreezes {
			return false, err
		}
		m.Logf("%v: copying again", err)
	}
}

// start records the move in both cells. It returns errNotHere or errThere where the old cell
// does not serve the partner, or the new one does.
func (m *Move) start(ctx context.Context, c cellPair) error {
	n, err := pg.Exec(ctx, m.From, "note that the partner moves", pg.SQL(`
		INSERT INTO moves AS m (partner_id, step, cell, public_url) VALUES (@partner, @copying, @cell, @publicURL)
		ON CONFLICT (partner_id) DO UPDATE SET step = excluded.step, cell = excluded.cell, public_url = excluded.public_url,
			held_until = NULL, moved_at = NULL, keep_until = NULL,
			began_at = CASE WHEN m.step = excluded.step THEN m.began_at ELSE now() END
		WHERE m.step IN (@copying, @active)`, pg.Named{
		"partner": m.Partner, "copying": Copying, "cell": c.to.Code(), "publicURL": c.publicURL,
		"active": Active,
	}))
	if err == nil && n == 0 {
		err = errNotHere
	}
	if err != nil {
		return err
	}
	n, err = pg.Exec(ctx, m.To, "note that the partner arrives", pg.SQL(`
		INSERT INTO moves AS m (partner_id, step, cell) VALUES (@partner, @arriving, @cell)
		ON CONFLICT (partner_id) DO UPDATE SET step = excluded.step, cell = excluded.cell, began_at = now(),
			held_until = NULL, moved_at = NULL, keep_until = NULL
		WHERE m.step IN (@arriving, @detached, @cleaned)`, pg.Named{
		"partner": m.Partner, "arriving": Arriving, "cell": c.from.Code(), "detached": Detached,
		"cleaned": Cleaned,
	}))
	if err == nil && n == 0 {
		err = errThere
	}
	if err != nil {
		return err
	}
	_, err = pg.Exec(ctx, m.To, "notify of the arrival", pg.SQL("SELECT pg_notify(?, '')", db.MovesChannel))
	return err
}

// copyPasses copies the tables that may be copied before the freeze, pass after pass, until
// one is short.
func (m *Move) copyPasses(ctx context.Context) error {
	for pass := 1; ; pass++ {
		began := time.Now()
		total, err := m.copyPass(ctx)
		if err != nil {
			return err
		}
		took := time.Since(began).Round(10 * time.Millisecond)
		m.Logf("pass %d: %d rows in %s", pass, total, took)
		if took <= shortPass || total <= littleLeft && 2*took <= db.FreezeFor {
			return nil
		}
		if pass == maxPasses {
			return fmt.Errorf("after %d passes a pass of %d rows still takes %s, and writes may be refused for %s at the most: "+
				"the partner writes too much to be moved now, or has too many rows; run the command again", pass, total, took, db.FreezeFor)
		}
	}
}

// copyPass copies what differs of all tables. It returns how many rows it copied.
func (m *Move) copyPass(ctx context.Context) (total int64, err error) {
	o, err := ownedBy(ctx, m.From, m.Partner)
	if err != nil {
		return 0, err
	}
	for _, t := range m.tables {
		if t.last {
			continue
		}
		rows, err := m.copyTable(ctx, t, o)
		if err != nil {
			return total, err
		}
		if total += rows; rows > 0 {
			m.Logf("%s: %d rows", t.name, rows)
		}
		m.at("copied " + t.name)
	}
	return total, nil
}

// reportRow is a report that has a file.
type reportRow struct {
	Client domain.ClientID
	ID     domain.ReportID
	Format domain.ReportFormat
}

// copyFiles copies the files of the partner's reports, each once.
func (m *Move) copyFiles(ctx context.Context) error {
	rows, err := pg.All[reportRow](ctx, m.From, "list reports", pg.SQL(`
		SELECT r.client_id AS client, r.id, r.format FROM reports AS r JOIN clients AS c ON c.id = r.client_id
		WHERE c.partner_id = ? AND r.status = ?`, m.Partner, domain.ReportReady))
	if err != nil {
		return err
	}
	if m.copied == nil {
		m.copied = map[domain.ReportID]bool{}
	}
	for _, r := range rows {
		if m.copied[r.ID] {
			continue
		}
		if err := m.File(ctx, domain.Report{Client: r.Client, ID: r.ID, Format: r.Format}); err != nil {
			return err
		}
		m.copied[r.ID] = true
	}
	return nil
}

// Cancel undoes a move that is not committed: the old cell accepts writes again, and the
// copies are deleted.
func (m *Move) Cancel(ctx context.Context) error {
	return m.exclusively(ctx, func(ctx context.Context) error {
		active, err := m.activated(ctx)
		if err != nil {
			return err
		}
		if active {
			return errors.New("the new cell serves the partner already: run the move again to finish it, or move it back")
		}
		steps, err := pg.All[Step](ctx, m.From, "look at the move", pg.SQL("SELECT step FROM moves WHERE partner_id = ?", m.Partner))
		if err != nil {
			return err
		}
		if len(steps) == 0 || !slices.Contains([]Step{Copying, Frozen, HandingOver}, steps[0]) {
			return errors.New("this partner is not being moved from here")
		}
		if err := m.unfreeze(ctx); err != nil {
			return err
		}
		o, err := ownedBy(ctx, m.From, m.Partner)
		if err != nil {
			return err
		}
		if err := m.dropCopied(ctx, o); err != nil {
			return err
		}
		if err := m.cancelArrival(ctx); err != nil {
			return err
		}
		_, err = pg.Exec(ctx, m.From, "forget the move", pg.SQL("DELETE FROM moves WHERE partner_id = ?", m.Partner))
		return err
	})
}

// cancelArrival ends the move in the new cell. Rows that it keeps of an earlier stay of the
// partner are deleted by CleanUp.
func (m *Move) cancelArrival(ctx context.Context) error {
	_, err := pg.Exec(ctx, m.To, "forget the move", pg.SQL(`
		WITH kept AS (
			UPDATE moves SET step = ?1, keep_until = clock_timestamp() WHERE partner_id = ?0 AND EXISTS (SELECT FROM partners WHERE id = ?0)
			RETURNING partner_id
		)
		DELETE FROM moves WHERE partner_id = ?0 AND NOT EXISTS (SELECT FROM kept)`, m.Partner, Detached))
	return err
}

// dropCopied deletes the copies, table by table.
func (m *Move) dropCopied(ctx context.Context, o owned) error {
	there, err := shapes(ctx, m.To, tables)
	if err != nil {
		return err
	}
	for _, t := range there {
		if t.last {
			continue
		}
		if err := m.dropCopies(ctx, t.name, o.condition(t.table)); err != nil {
			return err
		}
	}
	return nil
}
