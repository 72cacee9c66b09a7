// Package move moves a partner from the database of one cell to that of another cell (decisions 13.6 to 13.8).
//
// Both databases keep a row of the table moves, whose step is the state of the move:
//
//	cell  step      constant     what it means                          next, by
//	old   copying   Copying      rows are copied while in use           holding, freeze
//	old   holding   Frozen       writes are refused, for 30 s at most   handing, freezeWithoutEnd; copying, unfreeze
//	old   handing   HandingOver  writes are refused without an end      gone, detach; copying, unfreeze
//	old   gone      Detached     the partner's keys name the new cell   cleaned, CleanUp
//	old   cleaned   Cleaned      the rows are deleted
//	new   arriving  Arriving     rows are written, but not served       here, activate; no row, Cancel
//	new   here      Active       the partner is served
//
// One commit decides which of the two cells serves the partner: that of the new cell's last transaction (commit). It
// adds the partner, its clients and its keys, and sets the step here. Before, the old cell has the step handing, and
// refuses writes until the outcome of that transaction is known (detach or unfreeze). When a partner moves back, the
// step of its old cell goes from here to copying, and that of its new cell from gone or cleaned to arriving.
//
// While a partner is frozen its clients are suspended: their emails, events and other work wait (db.SuspendedClients).
// db.Audit refuses the writes of a frozen partner. Suspend ends the work of a detached partner in the old cell.
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
	// drainFor is how long freeze waits for emails and deliveries that are being sent. An email or delivery that takes
	// longer may be sent twice, as when a process is killed.
	drainFor = 5 * time.Second
	// pollEvery is the interval of waitUntil.
	pollEvery = 20 * time.Millisecond
	// shortPass is the duration of a pass after which writes are frozen. Within the freeze, the last pass copies the
	// rows written during the pass, and compares all tables a second time. If a pass copied at most littleLeft rows,
	// comparing took most of its time; then it is enough that two comparisons fit into the freeze.
	shortPass  = 10 * time.Second
	littleLeft = 2000
	// maxPasses bounds the passes before the freeze: a partner who writes as much as a pass copies cannot be moved now.
	maxPasses = 10
	// lastPasses bounds the passes within a freeze. A second pass is needed after a unique violation.
	lastPasses = 4
	// maxFreezes bounds the freezes that end before all rows are copied.
	maxFreezes = 3
)

// Step is the state of a move in one of its cells.
type Step string

// The steps of a move, in the order of the table above: five of the old cell, two of the new cell.
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
	// From and To are the databases of the two cells. The connections must not go through a pooler in transaction mode:
	// the locks of a move belong to sessions.
	From, To *db.DB
	Partner  domain.PartnerID
	// Keep is how long the old cell keeps the rows.
	Keep time.Duration
	// Reseal opens a secret of the old cell and seals it with the new cell's key. uuid is the object it is sealed for.
	Reseal func(c db.SealedColumn, uuid string, sealed []byte) ([]byte, error)
	// CheckKeys returns an error if Reseal's key is not the new cell's or, if the partner has secrets, if those of the
	// old cell cannot be opened. The contexts are for the two databases, and may hold their transactions. Nil checks
	// nothing.
	CheckKeys func(source, target context.Context, secrets bool) error
	// CopyFile copies the file of a report, unless the new cell has it. It is called before the freeze, and during the
	// freeze for reports created since then.
	CopyFile func(context.Context, domain.Report) error
	// Logf logs progress for the operator.
	Logf func(format string, args ...any)
	// tables are the tables that both cells have, as Check found them.
	tables []shapedTable
	// copied are the reports whose files were copied.
	copied map[domain.ReportID]bool
	// onTestPoint is called at each point at which a test may interrupt the move. It may be nil.
	onTestPoint func(point string)
}

func (m *Move) testPoint(point string) {
	if m.onTestPoint != nil {
		m.onTestPoint(point)
	}
}

// lockName returns the name of the advisory lock that is held to move a partner, or to delete its kept rows.
func lockName(partner domain.PartnerID) string { return "move of partner " + partner.UUID() }

// errMoving reports that another command has the lock.
var errMoving = errors.New("another command is moving this partner, or a process is deleting the partner's old rows; wait and try again")

// withLock runs fn while holding the partner's lock in both cells. If another command has one, it returns errMoving.
func (m *Move) withLock(ctx context.Context, fn func(context.Context) error) error {
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

// Run moves the partner, or resumes a move that was interrupted. If the new cell serves the partner already, it only
// detaches the partner from the old cell.
func (m *Move) Run(ctx context.Context) error {
	cells, err := m.readCells(ctx)
	if err != nil {
		return err
	}
	return m.withLock(ctx, func(ctx context.Context) error {
		active, err := m.isActive(ctx)
		if err == nil && !active {
			err = m.transfer(ctx, cells)
		}
		if err != nil {
			return err
		}
		return m.detach(ctx)
	})
}

// cellPair is the cells of the two databases, and the public URL of the new one.
type cellPair struct {
	from, to  domain.Cell
	publicURL *string
}

// readCells returns the cells of the two databases, and the public URL of the new cell, which may be nil. It returns an
// error unless they are two cells of one installation.
func (m *Move) readCells(ctx context.Context) (c cellPair, err error) {
	if c.from, err = m.From.Cell(ctx); err != nil {
		return c, err
	}
	if c.to, err = m.To.Cell(ctx); err != nil {
		return c, err
	}
	switch {
	case c.from.Count == 1 || c.to.Count == 1:
		return c, errors.New("a partner can only move between cells; start both services with --cell and --cell-count first")
	case c.from.Count != c.to.Count:
		return c, fmt.Errorf("the cells belong to different installations: %s and %s", c.from, c.to)
	case c.from == c.to:
		return c, fmt.Errorf("both databases belong to cell %s", c.from)
	}
	c.publicURL, err = pg.One[*string](ctx, m.To, "read the cell", pg.SQL("SELECT public_url FROM cell"))
	return c, err
}

// isActive reports whether the new cell serves the partner. If the last transaction of an earlier run is still in
// progress, it waits for it, up to 30 seconds.
func (m *Move) isActive(ctx context.Context) (bool, error) {
	var steps []Step
	err := m.To.Tx(ctx, func(ctx context.Context) (err error) {
		if err := pg.Run(ctx, m.To, "bound waits", pg.SQL("SET LOCAL lock_timeout = '30s'")); err != nil {
			return err
		}
		steps, err = pg.All[Step](ctx, m.To, "look at the move", pg.SQL("SELECT step FROM moves WHERE partner_id = ? FOR UPDATE", m.Partner))
		return err
	})
	return slices.Contains(steps, Active), err
}

// transfer copies the partner's rows and files and hands the partner over, in up to maxFreezes freezes. If it
// returns nil, the new cell serves the partner. After an error writes are unfrozen, if the cells can be reached.
func (m *Move) transfer(ctx context.Context, c cellPair) error {
	if err := m.Check(ctx); err != nil {
		return err
	}
	notes, err := m.notes(ctx)
	if err != nil {
		return err
	}
	for _, note := range notes {
		m.Logf("%s", note)
	}
	if err := m.unfreeze(ctx); err != nil { // an earlier run may have left a freeze
		return err
	}
	if err := m.start(ctx, c); err != nil {
		return err
	}
	for freeze := 1; ; freeze++ {
		if err := m.copyPasses(ctx); err != nil {
			return err
		}
		if err := m.copyFiles(ctx); err != nil {
			return err
		}
		m.testPoint("copied")
		err := m.handOver(ctx, c)
		if err == nil {
			return nil
		}
		// If only the response to the commit was lost, the new cell serves the partner.
		switch active, activeErr := m.isActive(context.WithoutCancel(ctx)); {
		case activeErr != nil:
			return errors.Join(err, activeErr)
		case active:
			return nil
		}
		if unfreezeErr := m.unfreeze(context.WithoutCancel(ctx)); unfreezeErr != nil {
			return errors.Join(err, unfreezeErr)
		}
		if !errors.Is(err, errFreezeEnded) || freeze == maxFreezes {
			return err
		}
		m.Logf("%v; copying again", err)
	}
}

// start records the move in both cells, and notifies the processes of the new cell. It returns errNotServedByOld if the
// old cell does not serve the partner, and errServedByNew if the new cell serves it or moves it to a third cell.
func (m *Move) start(ctx context.Context, c cellPair) error {
	err := pg.RunOr(ctx, m.From, errNotServedByOld, "note that the partner moves", pg.SQL(`
		INSERT INTO moves AS m (partner_id, step, cell, public_url) VALUES (?partner, ?copying, ?cell, ?publicURL)
		ON CONFLICT (partner_id) DO UPDATE SET step = excluded.step, cell = excluded.cell, public_url = excluded.public_url,
			held_until = NULL, moved_at = NULL, keep_until = NULL,
			began_at = CASE WHEN m.step = excluded.step THEN m.began_at ELSE now() END
		WHERE m.step IN (?copying, ?active)`, pg.Named{
		"partner": m.Partner, "copying": Copying, "cell": c.to.Code(), "publicURL": c.publicURL, "active": Active,
	}))
	if err != nil {
		return err
	}
	err = pg.RunOr(ctx, m.To, errServedByNew, "note that the partner arrives", pg.SQL(`
		INSERT INTO moves AS m (partner_id, step, cell) VALUES (?partner, ?arriving, ?cell)
		ON CONFLICT (partner_id) DO UPDATE SET step = excluded.step, cell = excluded.cell, began_at = now(),
			held_until = NULL, moved_at = NULL, keep_until = NULL
		WHERE m.step IN (?arriving, ?detached, ?cleaned)`, pg.Named{
		"partner": m.Partner, "arriving": Arriving, "cell": c.from.Code(), "detached": Detached, "cleaned": Cleaned,
	}))
	if err != nil {
		return err
	}
	return pg.Run(ctx, m.To, "notify of the arrival", pg.SQL("SELECT pg_notify(?, '')", db.MovesChannel))
}

// copyPasses copies the tables that are not marked last (table.last), pass after pass, until a pass is short enough for
// a freeze. It returns an error after maxPasses.
func (m *Move) copyPasses(ctx context.Context) error {
	for pass := 1; ; pass++ {
		began := time.Now()
		total, err := m.copyPass(ctx)
		if err != nil {
			return err
		}
		took := time.Since(began).Round(10 * time.Millisecond)
		m.Logf("pass %d: %d rows in %s", pass, total, took)
		// A pass of few rows spends its time on comparing, and a freeze compares twice.
		if took <= shortPass || total <= littleLeft && 2*took <= db.FreezeFor {
			return nil
		}
		if pass == maxPasses {
			return fmt.Errorf("after %d passes, a pass of %d rows still takes %s, but writes may be rejected for at most %s. "+
				"The partner has too many rows or currently makes too many writes; run the command again later", pass, total, took, db.FreezeFor)
		}
	}
}

// copyPass copies the differing rows of all tables that are not marked last, and returns their number.
func (m *Move) copyPass(ctx context.Context) (total int64, err error) {
	o, err := readOwnedIDs(ctx, m.From, m.Partner)
	if err != nil {
		return 0, err
	}
	for _, t := range m.tables {
		if t.last {
			continue
		}
		var rows int64
		err := m.From.Snapshot(ctx, func(source context.Context) (err error) {
			_, rows, err = m.copyTable(ctx, side{ctx: source, DB: m.From}, t, o)
			return err
		})
		if err != nil {
			return total, err
		}
		if total += rows; rows > 0 {
			m.Logf("%s: %d rows", t.name, rows)
		}
		m.testPoint("copied " + t.name)
	}
	return total, nil
}

// copyFiles copies the files of the partner's reports that were not yet copied.
func (m *Move) copyFiles(ctx context.Context) error {
	reports, err := pg.All[domain.Report](ctx, m.From, "list reports", pg.SQL(`
		SELECT r.client_id, r.id, r.format FROM reports AS r JOIN clients AS c ON c.id = r.client_id
		WHERE c.partner_id = ? AND r.status = ?`, m.Partner, domain.ReportReady))
	if err != nil {
		return err
	}
	if m.copied == nil {
		m.copied = map[domain.ReportID]bool{}
	}
	for _, r := range reports {
		if m.copied[r.ID] {
			continue
		}
		if err := m.CopyFile(ctx, r); err != nil {
			return err
		}
		m.copied[r.ID] = true
	}
	return nil
}

// Cancel undoes a move that is not committed: the old cell accepts writes again, and the copies in the new cell are
// deleted. It returns an error if the new cell serves the partner, or if no move from the old cell is recorded.
func (m *Move) Cancel(ctx context.Context) error {
	return m.withLock(ctx, func(ctx context.Context) error {
		active, err := m.isActive(ctx)
		if err != nil {
			return err
		}
		if active {
			return errors.New("the new cell already serves the partner; run the move again to finish it, or move the partner back")
		}
		steps, err := pg.All[Step](ctx, m.From, "look at the move", pg.SQL("SELECT step FROM moves WHERE partner_id = ?", m.Partner))
		if err != nil {
			return err
		}
		if len(steps) == 0 || !slices.Contains([]Step{Copying, Frozen, HandingOver}, steps[0]) {
			return errors.New("this partner is not being moved from this cell")
		}
		if err := m.unfreeze(ctx); err != nil {
			return err
		}
		o, err := readOwnedIDs(ctx, m.From, m.Partner)
		if err != nil {
			return err
		}
		if err := m.dropAllCopies(ctx, o); err != nil {
			return err
		}
		if err := m.cancelArrival(ctx); err != nil {
			return err
		}
		return pg.Run(ctx, m.From, "forget the move", pg.SQL("DELETE FROM moves WHERE partner_id = ?", m.Partner))
	})
}

// cancelArrival deletes the record of the move in the new cell. If the new cell still has the partner's own row, from a
// time when it served the partner, cancelArrival sets the step Detached instead, so that CleanUp deletes the rows.
func (m *Move) cancelArrival(ctx context.Context) error {
	return pg.Run(ctx, m.To, "forget the move", pg.SQL(`
		WITH kept AS (
			UPDATE moves SET step = ?1, keep_until = clock_timestamp() WHERE partner_id = ?0 AND EXISTS (SELECT FROM partners WHERE id = ?0)
			RETURNING partner_id
		)
		DELETE FROM moves WHERE partner_id = ?0 AND NOT EXISTS (SELECT FROM kept)`, m.Partner, Detached))
}

// dropAllCopies deletes the partner's rows from the new cell, except those of tables marked last: their copies are
// committed only with the whole move.
func (m *Move) dropAllCopies(ctx context.Context, o ownedIDs) error {
	existing, err := shapes(ctx, m.To, tables)
	if err != nil {
		return err
	}
	for _, t := range existing {
		if t.last {
			continue
		}
		if err := m.dropCopies(ctx, t.name, o.condition(t.table)); err != nil {
			return err
		}
	}
	return nil
}
