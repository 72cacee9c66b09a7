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

// errFreezeEnded reports that a freeze reached its time limit before all rows were copied.
var errFreezeEnded = errors.New("copying the remaining changes took longer than the time for which writes may be rejected")

// handOver freezes the partner's writes, copies and checks the last differences, and makes the new cell serve the
// partner, all within db.FreezeFor. The error is errFreezeEnded if the time was too short. After an error the writes
// may still be frozen: the caller has to call unfreeze.
func (m *Move) handOver(ctx context.Context, c cellPair) error {
	began := time.Now()
	ctx, cancel := context.WithTimeoutCause(ctx, db.FreezeFor, errFreezeEnded)
	defer cancel()
	err := m.freeze(ctx)
	if err == nil {
		m.testPoint("frozen")
		err = m.From.Snapshot(ctx, func(source context.Context) error {
			return m.copyDifferences(ctx, side{ctx: source, DB: m.From, cache: map[string][]digest{}}, c)
		})
	}
	if err != nil && errors.Is(context.Cause(ctx), errFreezeEnded) {
		return errors.Join(errFreezeEnded, err)
	}
	if err == nil {
		m.Logf("the new cell serves the partner; the partner's writes were rejected for %s", time.Since(began).Round(10*time.Millisecond))
	}
	return err
}

// freeze refuses the partner's writes, suspends its clients, and waits for running transactions and, up to drainFor,
// for emails and deliveries that are being sent. It freezes twice, to include clients that a transaction was creating
// at the first freeze.
func (m *Move) freeze(ctx context.Context) error {
	for range 2 {
		if err := m.freezeExisting(ctx); err != nil {
			return err
		}
	}
	drainCtx, cancel := context.WithTimeout(ctx, drainFor)
	defer cancel()
	err := m.waitUntil(drainCtx, `
		SELECT NOT EXISTS (SELECT FROM outbox AS o LEFT JOIN clients AS c ON c.id = o.client_id
				WHERE (c.partner_id = ?0 OR o.client_id = ?0) -- the latter: emails to the partner itself
				AND o.lease IS NOT NULL AND o.due_at > now())
			AND NOT EXISTS (SELECT FROM webhooks AS w JOIN webhook_deliveries AS d ON d.webhook_id = w.id
				WHERE w.partner_id = ?0 AND d.status = 'waiting' AND d.lease IS NOT NULL AND d.due_at > now())`, m.Partner)
	if err != nil && drainCtx.Err() != nil && ctx.Err() == nil {
		m.Logf("an email or a delivery has been in progress for longer than %s; it may be sent twice", drainFor)
		return nil
	}
	return err
}

// freezeExisting refuses the partner's writes, suspends the clients that exist, and waits for running transactions. A
// transaction that did not see the freeze has a number below next, so no accepted write is outstanding when the oldest
// running transaction is next or later.
func (m *Move) freezeExisting(ctx context.Context) error {
	err := m.From.Tx(ctx, func(ctx context.Context) error {
		return pg.Run(ctx, m.From, "freeze the partner's writes", pg.SQL(`
			WITH frozen AS (
				UPDATE moves SET step = ?frozen, held_until = coalesce(held_until, clock_timestamp() + ?freezeFor::interval) WHERE partner_id = ?partner
				RETURNING partner_id, held_until
			)
			INSERT INTO resting_clients (client_id, until)
			SELECT c.id, frozen.held_until FROM frozen JOIN clients AS c ON c.partner_id = frozen.partner_id
			ON CONFLICT (client_id) DO UPDATE SET until = excluded.until`,
			pg.Named{"partner": m.Partner, "frozen": Frozen, "freezeFor": db.FreezeFor}))
	})
	if err != nil {
		return err
	}
	next, err := pg.One[int64](ctx, m.From, "read the next transaction number", pg.SQL("SELECT pg_current_xact_id()::text::bigint"))
	if err != nil {
		return err
	}
	if err := m.waitUntil(ctx, "SELECT pg_snapshot_xmin(pg_current_snapshot())::text::bigint >= ?", next); err != nil {
		return fmt.Errorf("wait for writes in progress: %w", err)
	}
	return nil
}

// waitUntil runs a statement in the old cell every pollEvery until it returns true.
func (m *Move) waitUntil(ctx context.Context, statement string, args ...any) error {
	for {
		done, err := pg.One[bool](ctx, m.From, "wait for transactions that had begun", pg.SQL(statement, args...))
		if err != nil || done {
			return err
		}
		if err := domain.Pause(ctx, pollEvery); err != nil {
			return err
		}
	}
}

// copyDifferences copies the rows that still differ from the source's snapshot, in up to lastPasses passes, and then
// commits the move, which copies the tables marked last. The copy lacks what background work of the old cell writes
// after the snapshot. The new cell repeats that work: no caller got a response for it.
func (m *Move) copyDifferences(ctx context.Context, source side, c cellPair) error {
	if err := m.checkShapes(ctx); err != nil {
		return err
	}
	o, err := readOwnedIDs(source.ctx, m.From, m.Partner)
	if err != nil {
		return err
	}
	if err := m.copyFiles(source.ctx); err != nil {
		return err
	}
	left := slices.DeleteFunc(slices.Clone(m.tables), func(t shapedTable) bool { return t.last })
	for pass := 1; ; pass++ {
		var differed []shapedTable
		for _, t := range left {
			differs, _, err := m.copyTable(ctx, source, t, o)
			if err != nil {
				return err
			}
			if differs {
				differed = append(differed, t)
			}
		}
		m.testPoint("differences copied")
		if left = differed; len(left) == 0 {
			break
		}
		if pass == lastPasses {
			return errors.New("the copies still differ, because the new cell's own work changes them or another partner's row has the same unique key")
		}
	}
	if err := m.waitForClock(ctx, source); err != nil {
		return err
	}
	return m.To.Tx(ctx, func(target context.Context) error { return m.commit(ctx, source, side{ctx: target, DB: m.To}, o, c) })
}

// mostBehind is how far the new cell's clock may be behind the old cell's.
const mostBehind = 30 * time.Second

// waitForClock waits until the new cell's clock has passed the newest stamp of the old cell, which is frozen. Otherwise
// the new cell could stamp a change with a time that pollers have already read past (decisions 3.8).
func (m *Move) waitForClock(ctx context.Context, source side) error {
	newest, err := m.From.NewestStamp(source.ctx)
	if err != nil {
		return err
	}
	behind := newest.Sub(m.To.Now())
	if behind > mostBehind {
		return fmt.Errorf("the new cell's clock is %s behind the newest change in the old cell; correct the clocks", behind)
	}
	return domain.Pause(ctx, behind)
}

// commit does the work of the last transaction, which is target's: it locks the move, which isActive waits for, copies
// the tables marked last, checks that the cells are equal, and makes the new cell serve the partner. ctx has no
// transaction: freezeWithoutEnd commits in the old cell before target does.
func (m *Move) commit(ctx context.Context, source, target side, o ownedIDs, c cellPair) error {
	if _, err := pg.One[Step](target.ctx, m.To, "lock the move", pg.SQL("SELECT step FROM moves WHERE partner_id = ? FOR UPDATE", m.Partner)); err != nil {
		return err
	}
	for _, t := range m.tables {
		if !t.last {
			continue
		}
		result, err := compare(source, target, t, o)
		if err == nil && result.differs() {
			err = m.replace(source, target, result)
		}
		if err != nil {
			return err
		}
	}
	if err := m.checkEqual(source, target, o); err != nil {
		return err
	}
	if err := m.checkKeys(source.ctx, target.ctx); err != nil {
		return err
	}
	for _, x := range m.extensions() {
		if err := x.activate(m, source, target); err != nil {
			return err
		}
	}
	if err := m.activate(source, target, c); err != nil {
		return err
	}
	m.testPoint("checked")
	if err := m.freezeWithoutEnd(ctx); err != nil {
		return err
	}
	m.testPoint("frozen without end")
	return nil
}

// checkEqual returns an error if a table differs between the two sides, or if the target lacks objects of catalogues:
// the foreign keys that would ensure these are turned off.
func (m *Move) checkEqual(source, target side, o ownedIDs) error {
	for _, t := range m.tables {
		c, err := compare(source, target, t, o)
		if err != nil {
			return err
		}
		if c.differs() {
			return fmt.Errorf("%s differs between the two cells in at least %d rows", t.name, c.rows)
		}
	}
	return m.checkCatalogues(source, target, o)
}

// activate makes the new cell serve the partner: positions and numbers of events continue after those of the old
// cell,
// cursors and links of the old cell are accepted, the partner's keys no longer count as moved, leases of the old cell's
// processes end, and the processes of the new cell are notified.
func (m *Move) activate(source, target side, c cellPair) error {
	head, err := pg.One[int64](source.ctx, m.From, "read the head of the events", pg.SQL("SELECT position FROM event_head"))
	if err != nil {
		return err
	}
	number, err := pg.One[int64](source.ctx, m.From, "read the last number of events", pg.SQL("SELECT last_value FROM event_numbers"))
	if err != nil {
		return err
	}
	secrets, err := m.From.SharedSecrets(source.ctx, c.from)
	if err != nil {
		return err
	}
	if err := m.To.AcceptSecrets(target.ctx, secrets); err != nil {
		return err
	}
	if err := resume(target.ctx, m.To, m.Partner); err != nil { // an interrupted move from the new cell left it suspended
		return err
	}
	for _, q := range []pg.Query{
		pg.SQL("UPDATE event_head SET position = ? WHERE position < ?0", head),
		// Beyond the numbers that other transactions draw at the same moment.
		pg.SQL("SELECT setval('event_numbers', greatest(?::bigint, nextval('event_numbers')) + 1000000)", number),
		pg.SQL("DELETE FROM moved_keys WHERE partner_id = ?", m.Partner),
		pg.SQL("UPDATE moves SET step = ?1, moved_at = clock_timestamp() WHERE partner_id = ?0", m.Partner, Active),
		// The leases are held by processes of the old cell, which cannot end them in this database.
		pg.SQL(`UPDATE reports SET lease = NULL, due_at = NULL WHERE status = 'pending' AND lease IS NOT NULL
			AND client_id IN (SELECT id FROM clients WHERE partner_id = ?)`, m.Partner),
		pg.SQL(`UPDATE sync_runs SET lease = NULL, leased_until = NULL WHERE status IN ('queued', 'running') AND lease IS NOT NULL
			AND client_id IN (SELECT id FROM clients WHERE partner_id = ?)`, m.Partner),
		pg.SQL("SELECT pg_notify(channel, '') FROM unnest(?::text[]) AS channel",
			[]string{db.MovesChannel, db.ReportChannel, db.OutboxChannel}),
	} {
		if err := pg.Run(target.ctx, m.To, "activate the partner", q); err != nil {
			return err
		}
	}
	return nil
}

// freezeWithoutEnd makes the old cell refuse writes until detach or unfreeze. If the freeze has already ended, so that
// writes were accepted again, it returns errFreezeEnded. A second transaction checks the end again, because writers saw
// the old end until the first transaction committed.
func (m *Move) freezeWithoutEnd(ctx context.Context) error {
	const notEnded = "AND held_until > clock_timestamp()"
	if err := m.updateFrozen(ctx, "UPDATE moves SET step = ?1 WHERE partner_id = ?0 AND step = ?2 "+notEnded, HandingOver, Frozen); err != nil {
		return err
	}
	if err := pg.Run(ctx, m.From, "suspend the clients without an end", pg.SQL(
		"UPDATE resting_clients AS r SET until = 'infinity' FROM clients AS c WHERE c.id = r.client_id AND c.partner_id = ?", m.Partner)); err != nil {
		return err
	}
	return m.updateFrozen(ctx, "UPDATE moves SET step = step WHERE partner_id = ?0 AND step = ?1 "+notEnded, HandingOver)
}

// updateFrozen runs a statement that updates the partner's move, on the condition that the freeze has not ended. Its
// arguments are the partner and steps. If it updates no row, the error is errFreezeEnded.
func (m *Move) updateFrozen(ctx context.Context, statement string, steps ...any) error {
	q := pg.SQL(statement, append([]any{m.Partner}, steps...)...)
	return pg.RunOr(ctx, m.From, errFreezeEnded, "hand the partner over", q)
}

// unfreeze ends the freeze, if there is one: the old cell accepts writes again, and its clients resume. Call it only if
// the new cell does not serve the partner.
func (m *Move) unfreeze(ctx context.Context) error {
	return m.From.Tx(ctx, func(ctx context.Context) error {
		if err := resume(ctx, m.From, m.Partner); err != nil {
			return err
		}
		return pg.Run(ctx, m.From, "accept writes again", pg.SQL(
			"UPDATE moves SET step = ?copying, held_until = NULL WHERE partner_id = ?partner AND step IN (?frozen, ?handingOver)",
			pg.Named{"partner": m.Partner, "copying": Copying, "frozen": Frozen, "handingOver": HandingOver}))
	})
}

// resume ends the suspension of a partner's clients in a cell.
func resume(ctx context.Context, d *db.DB, partner domain.PartnerID) error {
	return pg.Run(ctx, d, "resume the clients", pg.SQL(
		"DELETE FROM resting_clients WHERE client_id IN (SELECT id FROM clients WHERE partner_id = ?)", partner))
}

// detach makes the old cell answer the partner's keys with the code of the new cell, and sets the time until which it
// keeps the rows. It does nothing if the partner is already detached.
func (m *Move) detach(ctx context.Context) error {
	err := m.From.Tx(ctx, func(ctx context.Context) error {
		n, err := pg.Exec(ctx, m.From, "detach the partner", pg.SQL(`
			UPDATE moves SET step = ?detached, moved_at = clock_timestamp(), held_until = NULL, keep_until = clock_timestamp() + ?keep::interval
			WHERE partner_id = ?partner AND step NOT IN (?detached, ?cleaned)`,
			pg.Named{"partner": m.Partner, "detached": Detached, "keep": m.Keep, "cleaned": Cleaned}))
		if err != nil || n == 0 {
			return err
		}
		for _, q := range []pg.Query{
			pg.SQL(`INSERT INTO moved_keys (digest, prefix, cell, partner_id)
				SELECT t.digest, t.prefix, m.cell, k.partner_id FROM `+db.KeyTexts+` AS t JOIN api_keys AS k ON k.id = t.key_id
				JOIN moves AS m ON m.partner_id = k.partner_id
				WHERE k.partner_id = ? ON CONFLICT (digest) DO UPDATE SET cell = excluded.cell`, m.Partner),
			pg.SQL("SELECT pg_notify(?, '')", db.MovesChannel),
		} {
			if err := pg.Run(ctx, m.From, "publish the move", q); err != nil {
				return err
			}
		}
		return nil
	})
	m.testPoint("detached")
	return err
}
