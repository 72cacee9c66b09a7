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

// errFreezeEnded reports that a freeze had to end before everything was copied.
var errFreezeEnded = errors.New("what was left took longer than writes may be refused")

// handOver freezes the partner's writes, copies the last differences, checks them, and has
// the new cell serve the partner. Where it fails, the writes may still be frozen: see
// unfreeze.
func (m *Move) handOver(ctx context.Context, c cellPair) error {
	began := time.Now()
	ctx, cancel := context.WithTimeoutCause(ctx, db.FreezeFor, errFreezeEnded)
	defer cancel()
	err := m.freeze(ctx)
	if err == nil {
		m.at("frozen")
		err = m.From.Snapshot(ctx, func(old context.Context) error {
			return m.copyDifferences(ctx, side{ctx: old, DB: m.From, cache: map[string][]digest{}}, c)
		})
	}
	if err != nil && errors.Is(context.Cause(ctx), errFreezeEnded) {
		return errors.Join(errFreezeEnded, err)
	}
	if err == nil {
		m.Logf("the new cell serves the partner; its writes were refused for %s", time.Since(began).Round(10*time.Millisecond))
	}
	return err
}

// freeze refuses the partner's writes, suspends its clients, and waits for transactions and
// sends that had begun. It does so twice: the second freeze includes clients that were being
// created at the first.
func (m *Move) freeze(ctx context.Context) error {
	for range 2 {
		if err := m.freezeKnown(ctx); err != nil {
			return err
		}
	}
	draining, cancel := context.WithTimeout(ctx, drainFor)
	defer cancel()
	err := m.waitUntil(draining, `
		SELECT NOT EXISTS (SELECT FROM outbox AS o LEFT JOIN clients AS c ON c.id = o.client_id
				WHERE (c.partner_id = ?0 OR o.client_id = ?0) AND o.lease IS NOT NULL AND o.due_at > now())
			AND NOT EXISTS (SELECT FROM webhooks AS w JOIN webhook_deliveries AS d ON d.webhook_id = w.id
				WHERE w.partner_id = ?0 AND d.status = 'waiting' AND d.lease IS NOT NULL AND d.due_at > now())`, m.Partner)
	if err != nil && draining.Err() != nil && ctx.Err() == nil {
		m.Logf("a mail or a delivery is being sent for longer than %s: it may be sent twice", drainFor)
		return nil
	}
	return err
}

// freezeKnown is freeze for the clients that exist. Once it commits, transactions that saw no
// freeze have numbers below the next one: when none of them runs, no accepted write is
// outstanding.
func (m *Move) freezeKnown(ctx context.Context) error {
	err := m.From.Tx(ctx, func(ctx context.Context) error {
		_, err := pg.Exec(ctx, m.From, "freeze the partner's writes", pg.SQL(`
			WITH frozen AS (
				UPDATE moves SET step = ?1, held_until = coalesce(held_until, clock_timestamp() + ?2::interval) WHERE partner_id = ?0
				RETURNING partner_id, held_until
			)
			INSERT INTO resting_clients (client_id, until)
			SELECT c.id, frozen.held_until FROM frozen JOIN clients AS c ON c.partner_id = frozen.partner_id
			ON CONFLICT (client_id) DO UPDATE SET until = excluded.until`, m.Partner, Frozen, db.FreezeFor))
		return err
	})
	if err != nil {
		return err
	}
	next, err := pg.One[int64](ctx, m.From, "number the transactions of before", pg.SQL("SELECT pg_current_xact_id()::text::bigint"))
	if err != nil {
		return err
	}
	if err := m.waitUntil(ctx, "SELECT pg_snapshot_xmin(pg_current_snapshot())::text::bigint >= ?", next); err != nil {
		return fmt.Errorf("wait for writes that had begun: %w", err)
	}
	return nil
}

// waitUntil polls the old cell until a statement returns true.
func (m *Move) waitUntil(ctx context.Context, text string, args ...any) error {
	for {
		done, err := pg.One[bool](ctx, m.From, "wait for transactions that had begun", pg.SQL(text, args...))
		if err != nil || done {
			return err
		}
		if err := domain.Pause(ctx, pollEvery); err != nil {
			return err
		}
	}
}

// copyDifferences copies what is left, as of the snapshot of the old side, and commits the
// move. The new cell repeats the background work of the old one after the snapshot: no caller
// was answered for it.
func (m *Move) copyDifferences(ctx context.Context, old side, c cellPair) error {
	if err := m.checkShapes(ctx); err != nil {
		return err
	}
	o, err := ownedBy(old.ctx, m.From, m.Partner)
	if err != nil {
		return err
	}
	if err := m.copyFiles(old.ctx); err != nil {
		return err
	}
	left := slices.DeleteFunc(slices.Clone(m.tables), func(t shaped) bool { return t.last })
	for pass := 1; ; pass++ {
		var differed []shaped
		for _, t := range left {
			differs, _, err := m.copySnapshot(ctx, old, t, o)
			if err != nil {
				return err
			}
			if differs {
				differed = append(differed, t)
			}
		}
		m.at("differences copied")
		if left = differed; len(left) == 0 {
			break
		}
		if pass == lastPasses {
			return errors.New("the copies do not become equal: the new cell's own work changes them, or a unique key is held by another partner's row")
		}
	}
	return m.To.Tx(ctx, func(now context.Context) error { return m.commit(ctx, old, side{ctx: now, DB: m.To}, o, c) })
}

// commit is the transaction that makes the partner appear in the new cell.
func (m *Move) commit(ctx context.Context, old, now side, o owned, c cellPair) error {
	if _, err := pg.One[Step](now.ctx, m.To, "lock the move", pg.SQL("SELECT step FROM moves WHERE partner_id = ? FOR UPDATE", m.Partner)); err != nil {
		return err
	}
	for _, t := range m.tables {
		if !t.last {
			continue
		}
		found, err := compare(old, now, t, o)
		if err == nil && found.differs() {
			err = m.replace(old, now, found)
		}
		if err != nil {
			return err
		}
	}
	if err := m.checkEqual(old, now, o); err != nil {
		return err
	}
	if err := m.checkKeys(old.ctx, now.ctx); err != nil {
		return err
	}
	for _, activate := range m.extended().activations {
		if err := activate(m, old, now); err != nil {
			return err
		}
	}
	if err := m.activate(old, now, c); err != nil {
		return err
	}
	m.at("checked")
	if err := m.freezeWithoutEnd(ctx); err != nil {
		return err
	}
	m.at("frozen without end")
	return nil
}

// checkEqual compares all tables as the last transaction has them, and checks that the new
// cell has the objects of catalogues: references were not checked.
func (m *Move) checkEqual(old, now side, o owned) error {
	for _, t := range m.tables {
		c, err := compare(old, now, t, o)
		if err != nil {
			return err
		}
		if c.differs() {
			return fmt.Errorf("%s differs between the two cells, in %d rows or more", t.name, c.rows)
		}
	}
	return m.checkCatalogues(old, now, o)
}

// activate writes what the new cell needs beside the rows to serve the partner: positions of
// events continue behind those of the old cell, cursors and links that the old one made are
// accepted, and the keys are no longer another cell's.
func (m *Move) activate(old, now side, c cellPair) error {
	head, err := pg.One[int64](old.ctx, m.From, "read the head of the events", pg.SQL("SELECT position FROM event_head"))
	if err != nil {
		return err
	}
	secrets, err := m.From.SharedSecrets(old.ctx, c.from)
	if err != nil {
		return err
	}
	if err := m.To.AcceptSecrets(now.ctx, secrets); err != nil {
		return err
	}
	if err := resume(now.ctx, m.To, m.Partner); err != nil { // from an earlier move from there that was cut short
		return err
	}
	for _, q := range []pg.Query{
		pg.SQL("UPDATE event_head SET position = ? WHERE position < ?0", head),
		pg.SQL("DELETE FROM moved_keys WHERE partner_id = ?", m.Partner),
		pg.SQL("UPDATE moves SET step = ?1, moved_at = clock_timestamp() WHERE partner_id = ?0", m.Partner, Active),
		// The leases are of the old cell's processes, which mark nothing here.
		pg.SQL(`UPDATE reports SET lease = NULL, due_at = NULL WHERE status = 'pending' AND lease IS NOT NULL
			AND client_id IN (SELECT id FROM clients WHERE partner_id = ?)`, m.Partner),
		pg.SQL(`UPDATE sync_runs SET lease = NULL, leased_until = NULL WHERE status IN ('queued', 'running') AND lease IS NOT NULL
			AND client_id IN (SELECT id FROM clients WHERE partner_id = ?)`, m.Partner),
		pg.SQL("SELECT pg_notify(channel, '') FROM unnest(?::text[]) AS channel",
			[]string{db.MovesChannel, db.ReportChannel, db.OutboxChannel}),
	} {
		if _, err := pg.Exec(now.ctx, m.To, "activate the partner", q); err != nil {
			return err
		}
	}
	return nil
}

// freezeWithoutEnd has the old cell refuse writes until the move is resolved, unless its
// freeze has ended: a write after that was accepted. It checks the end again in a second
// transaction, for writers saw the old end until the first committed.
func (m *Move) freezeWithoutEnd(ctx context.Context) error {
	const ended = "AND held_until > clock_timestamp()"
	if err := m.updateFrozen(ctx, "UPDATE moves SET step = ?1 WHERE partner_id = ?0 AND step = ?2 "+ended, HandingOver, Frozen); err != nil {
		return err
	}
	if _, err := pg.Exec(ctx, m.From, "suspend the clients without an end", pg.SQL(
		"UPDATE resting_clients AS r SET until = 'infinity' FROM clients AS c WHERE c.id = r.client_id AND c.partner_id = ?", m.Partner)); err != nil {
		return err
	}
	return m.updateFrozen(ctx, "UPDATE moves SET step = step WHERE partner_id = ?0 AND step = ?1 "+ended, HandingOver)
}

// updateFrozen runs a statement that updates the move if its freeze has not ended. Otherwise
// it returns errFreezeEnded.
func (m *Move) updateFrozen(ctx context.Context, text string, steps ...any) error {
	n, err := pg.Exec(ctx, m.From, "hand the partner over", pg.SQL(text, append([]any{m.Partner}, steps...)...))
	if err == nil && n == 0 {
		err = errFreezeEnded
	}
	return err
}

// unfreeze ends the freeze of a partner that the new cell does not serve.
func (m *Move) unfreeze(ctx context.Context) error {
	return m.From.Tx(ctx, func(ctx context.Context) error {
		if err := resume(ctx, m.From, m.Partner); err != nil {
			return err
		}
		_, err := pg.Exec(ctx, m.From, "accept writes again", pg.SQL(
			"UPDATE moves SET step = ?1, held_until = NULL WHERE partner_id = ?0 AND step IN (?2, ?3)", m.Partner, Copying, Frozen, HandingOver))
		return err
	})
}

// resume ends the suspension of a partner's clients in a cell.
func resume(ctx context.Context, in *db.DB, partner domain.PartnerID) error {
	_, err := pg.Exec(ctx, in, "resume the clients", pg.SQL(
		"DELETE FROM resting_clients WHERE client_id IN (SELECT id FROM clients WHERE partner_id = ?)", partner))
	return err
}

// detach has the old cell answer the partner's keys with the new cell's code.
func (m *Move) detach(ctx context.Context) error {
	err := m.From.Tx(ctx, func(ctx context.Context) error {
		n, err := pg.Exec(ctx, m.From, "detach the partner", pg.SQL(`
			UPDATE moves SET step = ?1, moved_at = clock_timestamp(), held_until = NULL, keep_until = clock_timestamp() + ?2::interval
			WHERE partner_id = ?0 AND step NOT IN (?1, ?3)`, m.Partner, Detached, m.Keep, Cleaned))
		if err != nil || n == 0 {
			return err
		}
		for _, q := range []pg.Query{
			pg.SQL(`INSERT INTO moved_keys (digest, prefix, cell, partner_id)
				SELECT k.digest, k.prefix, m.cell, k.partner_id FROM api_keys AS k JOIN moves AS m ON m.partner_id = k.partner_id
				WHERE k.partner_id = ? ON CONFLICT (digest) DO UPDATE SET cell = excluded.cell`, m.Partner),
			pg.SQL("SELECT pg_notify(?, '')", db.MovesChannel),
		} {
			if _, err := pg.Exec(ctx, m.From, "publish the move", q); err != nil {
				return err
			}
		}
		return nil
	})
	m.at("detached")
	return err
}
