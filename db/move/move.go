// Package move moves a partner from the database of one cell to that of another
// (decisions 13.5 to 13.7).
//
// Both databases keep a row of the table moves. The old one's steps are copying, holding,
// handing, gone and cleaned, the new one's arriving and here. Which of the two serves the
// partner is decided by one commit: that of the new one's last transaction, which makes
// the partner, its clients and its keys appear, and sets here. The old one refuses writes
// before that, by holding for a bounded time and then by handing, until it is told what
// became of that transaction.
//
// What a writer must know of a move is in db: db.Audit refuses writes of a partner that
// holds, and what sends mails and events leaves out db.Resting clients.
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
	// drainFor is how long a hold waits for mails and deliveries that are being sent. One
	// that takes longer may be sent twice, as where a process is killed.
	drainFor = 5 * time.Second
	// lookEvery is how often a hold looks whether what it waits for has ended.
	lookEvery = 20 * time.Millisecond
	// shortPass is how long a pass may take, while the rows are in use, for the next to be
	// the last: that one brings over what was written meanwhile, and compares everything a
	// second time. Where a pass brought over no more than littleLeft rows, the comparison
	// took the time, and the last one may follow as long as the hold has room for both
	// comparisons.
	shortPass  = 10 * time.Second
	littleLeft = 2000
	// maxPasses bounds the passes before the hold: a partner who writes as much as a pass
	// brings over is moved at another time.
	maxPasses = 10
	// lastPasses bounds those within a hold: a second one is needed where a unique key was
	// in the way.
	lastPasses = 4
	// maxHolds is how often a hold is tried that ended before everything was over.
	maxHolds = 3
)

// Step is how far a move is.
type Step string

// The steps of the old cell, and of the new one.
const (
	Copying  Step = "copying"
	Holding  Step = "holding"
	Handing  Step = "handing"
	Gone     Step = "gone"
	Cleaned  Step = "cleaned"
	Arriving Step = "arriving"
	Here     Step = "here"
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
	// CheckKeys reports that secrets of this cell cannot be opened, where the partner has
	// some, or that Reseal's key is not the new cell's. The contexts are of the two cells,
	// and may have transactions of theirs. Nil checks nothing.
	CheckKeys func(old, now context.Context, secrets bool) error
	// File copies the file of a report, unless the new cell has it. It is called before the
	// hold, and within it for reports that were made meanwhile.
	File func(context.Context, domain.Report) error
	// Say is told what is done, for an operator.
	Say func(format string, args ...any)
	// tables are those that both cells have, as Check found them.
	tables []shaped
	// copied are the reports whose files were copied.
	copied map[domain.ReportID]bool
	// reached is called at each point where a test ends the move; nil is none.
	reached func(point string)
}

func (m *Move) at(point string) {
	if m.reached != nil {
		m.reached(point)
	}
}

// lockName is the advisory lock of who moves a partner, or deletes what is kept of it.
func lockName(partner domain.PartnerID) string { return "move of partner " + partner.UUID() }

// errMoving says that another command is at it.
var errMoving = errors.New("this partner is being moved by another command, or its rows are being deleted: wait for that, or end it")

// alone runs fn unless another command moves the partner, or its rows are deleted in a
// cell that it left.
func (m *Move) alone(ctx context.Context, fn func(context.Context) error) error {
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

// Run moves the partner, or goes on where an earlier run was cut short.
func (m *Move) Run(ctx context.Context) error {
	cells, err := m.cells(ctx)
	if err != nil {
		return err
	}
	return m.alone(ctx, func(ctx context.Context) error {
		here, err := m.arrived(ctx)
		if err != nil {
			return err
		}
		if !here {
			if here, err = m.bring(ctx, cells); err != nil || !here {
				return err
			}
		}
		return m.leave(ctx)
	})
}

// cells are those of the two databases, and where the new one's links begin.
type cells struct {
	from, to  domain.Cell
	publicURL *string
}

// cells checks that the two databases are of two of the same cells.
func (m *Move) cells(ctx context.Context) (c cells, err error) {
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

// arrived reports whether the new cell serves the partner. It waits for a last transaction
// of an earlier run that is still under way.
func (m *Move) arrived(ctx context.Context) (bool, error) {
	var steps []Step
	err := m.To.Tx(ctx, func(ctx context.Context) (err error) {
		if _, err := pg.Exec(ctx, m.To, "bound waits", pg.SQL("SET LOCAL lock_timeout = '30s'")); err != nil {
			return err
		}
		steps, err = pg.All[Step](ctx, m.To, "look at the move", pg.SQL("SELECT step FROM moves WHERE partner_id = ? FOR UPDATE", m.Partner))
		return err
	})
	return slices.Contains(steps, Here), err
}

// bring copies everything and hands the partner over.
func (m *Move) bring(ctx context.Context, c cells) (here bool, err error) {
	if err := m.Check(ctx); err != nil {
		return false, err
	}
	notes, err := m.notes(ctx)
	if err != nil {
		return false, err
	}
	for _, note := range notes {
		m.Say("%s", note)
	}
	if err := m.release(ctx); err != nil { // a hold of an earlier run
		return false, err
	}
	if err := m.begin(ctx, c); err != nil {
		return false, err
	}
	for hold := 1; ; hold++ {
		if err := m.copy(ctx); err != nil {
			return false, err
		}
		if err := m.files(ctx); err != nil {
			return false, err
		}
		m.at("copied")
		err := m.handOver(ctx, c)
		if err == nil {
			return true, nil
		}
		// Where the commit's answer was lost, the new cell may have the partner.
		switch here, looked := m.arrived(context.WithoutCancel(ctx)); {
		case looked != nil:
			return false, errors.Join(err, looked)
		case here:
			return true, nil
		}
		if released := m.release(context.WithoutCancel(ctx)); released != nil {
			return false, errors.Join(err, released)
		}
		if !errors.Is(err, errHoldEnded) || hold == maxHolds {
			return false, err
		}
		m.Say("%v: copying again", err)
	}
}

// begin notes the move on both sides, unless the old one has not got the partner, or the
// new one serves it.
func (m *Move) begin(ctx context.Context, c cells) error {
	n, err := pg.Exec(ctx, m.From, "note that the partner moves", pg.SQL(`
		INSERT INTO moves AS m (partner_id, step, cell, public_url) VALUES (?0, ?1, ?2, ?3)
		ON CONFLICT (partner_id) DO UPDATE SET step = excluded.step, cell = excluded.cell, public_url = excluded.public_url,
			held_until = NULL, moved_at = NULL, keep_until = NULL,
			began_at = CASE WHEN m.step = excluded.step THEN m.began_at ELSE now() END
		WHERE m.step IN (?1, ?4)`, m.Partner, Copying, c.to.Code(), c.publicURL, Here))
	if err == nil && n == 0 {
		err = errNotHere
	}
	if err != nil {
		return err
	}
	n, err = pg.Exec(ctx, m.To, "note that the partner arrives", pg.SQL(`
		INSERT INTO moves AS m (partner_id, step, cell) VALUES (?0, ?1, ?2)
		ON CONFLICT (partner_id) DO UPDATE SET step = excluded.step, cell = excluded.cell, began_at = now(),
			held_until = NULL, moved_at = NULL, keep_until = NULL
		WHERE m.step IN (?1, ?3, ?4)`, m.Partner, Arriving, c.from.Code(), Gone, Cleaned))
	if err == nil && n == 0 {
		err = errThere
	}
	if err != nil {
		return err
	}
	_, err = pg.Exec(ctx, m.To, "tell that the partner arrives", pg.SQL("SELECT pg_notify(?, '')", db.MovesChannel))
	return err
}

// copy brings over what may come before the last transaction, pass after pass, until one
// is short.
func (m *Move) copy(ctx context.Context) error {
	for pass := 1; ; pass++ {
		began := time.Now()
		total, err := m.copyOnce(ctx)
		if err != nil {
			return err
		}
		took := time.Since(began).Round(10 * time.Millisecond)
		m.Say("pass %d: %d rows in %s", pass, total, took)
		if took <= shortPass || total <= littleLeft && 2*took <= db.HoldFor {
			return nil
		}
		if pass == maxPasses {
			return fmt.Errorf("after %d passes a pass of %d rows still takes %s, and writes may be refused for %s at the most: "+
				"the partner writes too much to be moved now, or has too many rows; run the command again", pass, total, took, db.HoldFor)
		}
	}
}

// copyOnce is a pass over all tables. It returns how many rows it brought over.
func (m *Move) copyOnce(ctx context.Context) (total int64, err error) {
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
			m.Say("%s: %d rows", t.name, rows)
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

// files copies the files of the partner's reports, each once.
func (m *Move) files(ctx context.Context) error {
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

// Cancel takes a move back, until its last step: the old cell takes writes again, and what
// was copied is deleted.
func (m *Move) Cancel(ctx context.Context) error {
	return m.alone(ctx, func(ctx context.Context) error {
		here, err := m.arrived(ctx)
		if err != nil {
			return err
		}
		if here {
			return errors.New("the new cell serves the partner already: run the move again to finish it, or move it back")
		}
		steps, err := pg.All[Step](ctx, m.From, "look at the move", pg.SQL("SELECT step FROM moves WHERE partner_id = ?", m.Partner))
		if err != nil {
			return err
		}
		if len(steps) == 0 || !slices.Contains([]Step{Copying, Holding, Handing}, steps[0]) {
			return errors.New("this partner is not being moved from here")
		}
		if err := m.release(ctx); err != nil {
			return err
		}
		o, err := ownedBy(ctx, m.From, m.Partner)
		if err != nil {
			return err
		}
		if err := m.dropCopied(ctx, o); err != nil {
			return err
		}
		if err := m.forgetArrival(ctx); err != nil {
			return err
		}
		_, err = pg.Exec(ctx, m.From, "forget the move", pg.SQL("DELETE FROM moves WHERE partner_id = ?", m.Partner))
		return err
	})
}

// forgetArrival ends the move in the new cell. What that one keeps of an earlier stay of
// the partner is deleted like what others left.
func (m *Move) forgetArrival(ctx context.Context) error {
	_, err := pg.Exec(ctx, m.To, "forget the move", pg.SQL(`
		WITH kept AS (
			UPDATE moves SET step = ?1, keep_until = clock_timestamp() WHERE partner_id = ?0 AND EXISTS (SELECT FROM partners WHERE id = ?0)
			RETURNING partner_id
		)
		DELETE FROM moves WHERE partner_id = ?0 AND NOT EXISTS (SELECT FROM kept)`, m.Partner, Gone))
	return err
}

// dropCopied deletes what was copied, table by table.
func (m *Move) dropCopied(ctx context.Context, o owned) error {
	there, err := shapes(ctx, m.To, tables)
	if err != nil {
		return err
	}
	for _, t := range there {
		if t.last {
			continue
		}
		err := m.To.Tx(ctx, func(now context.Context) error {
			if err := replaceAs(side{ctx: now, DB: m.To}); err != nil {
				return err
			}
			_, err := pg.Exec(now, m.To, "drop rows of "+t.name, pg.Raw("DELETE FROM "+t.name+" AS t WHERE "+o.condition(t.table), nil))
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}
