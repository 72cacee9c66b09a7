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

// errHoldEnded says that a hold had to end before everything was over.
var errHoldEnded = errors.New("what was left took longer than writes may be refused")

// handOver holds the partner, brings the last differences over, checks them, and has the
// new cell serve it. Where it fails the partner may still hold: see release.
func (m *Move) handOver(ctx context.Context, c cells) error {
	began := time.Now()
	ctx, cancel := context.WithTimeoutCause(ctx, db.HoldFor, errHoldEnded)
	defer cancel()
	err := m.hold(ctx)
	if err == nil {
		m.at("held")
		err = m.From.Snapshot(ctx, func(old context.Context) error {
			return m.lastDifferences(ctx, side{ctx: old, DB: m.From, known: map[string][]digest{}}, c)
		})
	}
	if err != nil && errors.Is(context.Cause(ctx), errHoldEnded) {
		return errors.Join(errHoldEnded, err)
	}
	if err == nil {
		m.Say("the new cell serves the partner; its writes were refused for %s", time.Since(began).Round(10*time.Millisecond))
	}
	return err
}

// hold has the partner's writes refused, and its mails and events rest, and waits for
// those that had begun. It does so twice: a client that was being made when the first hold
// began is known to the second one.
func (m *Move) hold(ctx context.Context) error {
	for range 2 {
		if err := m.holdKnown(ctx); err != nil {
			return err
		}
	}
	draining, cancel := context.WithTimeout(ctx, drainFor)
	defer cancel()
	err := m.until(draining, `
		SELECT NOT EXISTS (SELECT FROM outbox AS o JOIN clients AS c ON c.id = o.client_id
				WHERE c.partner_id = ?0 AND o.lease IS NOT NULL AND o.due_at > now())
			AND NOT EXISTS (SELECT FROM webhooks AS w JOIN webhook_deliveries AS d ON d.webhook_id = w.id
				WHERE w.partner_id = ?0 AND d.status = 'waiting' AND d.lease IS NOT NULL AND d.due_at > now())`, m.Partner)
	if err != nil && draining.Err() != nil && ctx.Err() == nil {
		m.Say("a mail or a delivery is being sent for longer than %s: it may be sent twice", drainFor)
		return nil
	}
	return err
}

// holdKnown is hold for the clients that are there. A transaction that saw no hold has a
// number by then, below the next one: once none of these is under way, nothing is written
// any more that an answer is given for.
func (m *Move) holdKnown(ctx context.Context) error {
	err := m.From.Tx(ctx, func(ctx context.Context) error {
		_, err := pg.Exec(ctx, m.From, "hold the partner's writes", pg.SQL(`
			WITH held AS (
				UPDATE moves SET step = ?1, held_until = coalesce(held_until, clock_timestamp() + ?2::interval) WHERE partner_id = ?0
				RETURNING partner_id, held_until
			)
			INSERT INTO resting_clients (client_id, until)
			SELECT c.id, held.held_until FROM held JOIN clients AS c ON c.partner_id = held.partner_id
			ON CONFLICT (client_id) DO UPDATE SET until = excluded.until`, m.Partner, Holding, db.HoldFor))
		return err
	})
	if err != nil {
		return err
	}
	next, err := pg.One[int64](ctx, m.From, "number the transactions of before", pg.SQL("SELECT pg_current_xact_id()::text::bigint"))
	if err != nil {
		return err
	}
	if err := m.until(ctx, "SELECT pg_snapshot_xmin(pg_current_snapshot())::text::bigint >= ?", next); err != nil {
		return fmt.Errorf("wait for writes that had begun: %w", err)
	}
	return nil
}

// until waits until a statement says true in the old cell.
func (m *Move) until(ctx context.Context, text string, args ...any) error {
	for {
		done, err := pg.One[bool](ctx, m.From, "wait for what had begun", pg.SQL(text, args...))
		if err != nil || done {
			return err
		}
		if err := domain.Pause(ctx, lookEvery); err != nil {
			return err
		}
	}
}

// lastDifferences brings over what is left, as the snapshot of the old side has it. Work
// of the service's own that goes on there after the snapshot is done again by the new
// cell: nobody was told of it.
func (m *Move) lastDifferences(ctx context.Context, old side, c cells) error {
	if err := m.checkShapes(ctx); err != nil {
		return err
	}
	o, err := ownedBy(old.ctx, m.From, m.Partner)
	if err != nil {
		return err
	}
	if err := m.files(old.ctx); err != nil {
		return err
	}
	left := slices.DeleteFunc(slices.Clone(m.tables), func(t shaped) bool { return t.last })
	for pass := 1; ; pass++ {
		var differed []shaped
		for _, t := range left {
			differs, _, err := m.copySeen(ctx, old, t, o)
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
	return m.To.Tx(ctx, func(now context.Context) error { return m.last(ctx, old, side{ctx: now, DB: m.To}, o, c) })
}

// last is the transaction that makes the partner appear in the new cell.
func (m *Move) last(ctx context.Context, old, now side, o owned, c cells) error {
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
	for _, activate := range activations {
		if err := activate(m, old, now); err != nil {
			return err
		}
	}
	if err := m.appear(old, now, c); err != nil {
		return err
	}
	m.at("checked")
	if err := m.hand(ctx); err != nil {
		return err
	}
	m.at("handing")
	return nil
}

// checkEqual compares all tables as the last transaction has them, and looks for objects
// of catalogues that the new cell has not got: references were not checked.
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

// appear writes what makes the new cell serve the partner beside its rows: positions of
// events go on behind those of the old cell, cursors and links that the old one made are
// read, and its keys are no longer another cell's.
func (m *Move) appear(old, now side, c cells) error {
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
	if err := wake(now.ctx, m.To, m.Partner); err != nil { // of an earlier move from there that was cut short
		return err
	}
	for _, q := range []pg.Query{
		pg.SQL("UPDATE event_head SET position = ? WHERE position < ?0", head),
		pg.SQL("DELETE FROM moved_keys WHERE partner_id = ?", m.Partner),
		pg.SQL("UPDATE moves SET step = ?1, moved_at = clock_timestamp() WHERE partner_id = ?0", m.Partner, Here),
		// The leases are of the old cell's processes, which mark nothing here.
		pg.SQL(`UPDATE reports SET lease = NULL, due_at = NULL WHERE status = 'pending' AND lease IS NOT NULL
			AND client_id IN (SELECT id FROM clients WHERE partner_id = ?)`, m.Partner),
		pg.SQL(`UPDATE sync_runs SET lease = NULL, leased_until = NULL WHERE status IN ('queued', 'running') AND lease IS NOT NULL
			AND client_id IN (SELECT id FROM clients WHERE partner_id = ?)`, m.Partner),
		pg.SQL("SELECT pg_notify(channel, '') FROM unnest(?::text[]) AS channel",
			[]string{db.MovesChannel, db.ReportChannel, db.OutboxChannel}),
	} {
		if _, err := pg.Exec(now.ctx, m.To, "take the partner over", q); err != nil {
			return err
		}
	}
	return nil
}

// hand has the old cell refuse writes without an end, unless its hold has ended: who
// wrote after that was not refused. The time is looked at again after the commit, for a
// writer saw the hold that was before it.
func (m *Move) hand(ctx context.Context) error {
	const ended = "AND held_until > clock_timestamp()"
	if err := m.handed(ctx, "UPDATE moves SET step = ?1 WHERE partner_id = ?0 AND step = ?2 "+ended, Handing, Holding); err != nil {
		return err
	}
	if _, err := pg.Exec(ctx, m.From, "let the clients rest on", pg.SQL(
		"UPDATE resting_clients AS r SET until = 'infinity' FROM clients AS c WHERE c.id = r.client_id AND c.partner_id = ?", m.Partner)); err != nil {
		return err
	}
	return m.handed(ctx, "UPDATE moves SET step = step WHERE partner_id = ?0 AND step = ?1 "+ended, Handing)
}

// handed runs a statement that changes the move where its hold has not ended.
func (m *Move) handed(ctx context.Context, text string, steps ...any) error {
	n, err := pg.Exec(ctx, m.From, "hand the partner over", pg.SQL(text, append([]any{m.Partner}, steps...)...))
	if err == nil && n == 0 {
		err = errHoldEnded
	}
	return err
}

// release ends a hold of a partner whom the new cell does not serve.
func (m *Move) release(ctx context.Context) error {
	return m.From.Tx(ctx, func(ctx context.Context) error {
		if err := wake(ctx, m.From, m.Partner); err != nil {
			return err
		}
		_, err := pg.Exec(ctx, m.From, "take writes again", pg.SQL(
			"UPDATE moves SET step = ?1, held_until = NULL WHERE partner_id = ?0 AND step IN (?2, ?3)", m.Partner, Copying, Holding, Handing))
		return err
	})
}

// wake lets the work of a partner's clients go on in a cell.
func wake(ctx context.Context, in *db.DB, partner domain.PartnerID) error {
	_, err := pg.Exec(ctx, in, "end the rest of the clients", pg.SQL(
		"DELETE FROM resting_clients WHERE client_id IN (SELECT id FROM clients WHERE partner_id = ?)", partner))
	return err
}

// leave has the old cell answer the partner's keys with the new cell's code.
func (m *Move) leave(ctx context.Context) error {
	err := m.From.Tx(ctx, func(ctx context.Context) error {
		n, err := pg.Exec(ctx, m.From, "note that the partner has gone", pg.SQL(`
			UPDATE moves SET step = ?1, moved_at = clock_timestamp(), held_until = NULL, keep_until = clock_timestamp() + ?2::interval
			WHERE partner_id = ?0 AND step NOT IN (?1, ?3)`, m.Partner, Gone, m.Keep, Cleaned))
		if err != nil || n == 0 {
			return err
		}
		for _, q := range []pg.Query{
			pg.SQL(`INSERT INTO moved_keys (digest, prefix, cell, partner_id)
				SELECT k.digest, k.prefix, m.cell, k.partner_id FROM api_keys AS k JOIN moves AS m ON m.partner_id = k.partner_id
				WHERE k.partner_id = ? ON CONFLICT (digest) DO UPDATE SET cell = excluded.cell`, m.Partner),
			pg.SQL("SELECT pg_notify(?, '')", db.MovesChannel),
		} {
			if _, err := pg.Exec(ctx, m.From, "tell of the move", q); err != nil {
				return err
			}
		}
		return nil
	})
	m.at("left")
	return err
}
