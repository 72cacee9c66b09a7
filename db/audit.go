package db

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/uptrace/bun"

	"partnerapi/db/pg"
	"partnerapi/domain"
)

// auditPage is the number of entries that one statement reads.
const auditPage = 1000

// Audit inserts an entry into the audit trail, in the transaction of ctx. A zero At means the time of the change. Audit
// returns Unavailable if the partner of the entry's key or client is frozen (frozenMove): every write of a caller or an
// operator ends with an entry, so that writes of a partner that is being moved, or was moved, are rejected.
func (d *DB) Audit(ctx context.Context, e domain.AuditEntry) error {
	return d.AuditAll(ctx, []domain.AuditEntry{e})
}

// AuditAll inserts entries, at least one and at most a thousand, into the audit trail. It returns Unavailable if the
// partner of an entry's key or client is frozen.
func (d *DB) AuditAll(ctx context.Context, entries []domain.AuditEntry) error {
	return d.Stamped(ctx, func(ctx context.Context, at time.Time) error {
		frozen, err := pg.All[bool](ctx, d, "write the audit trail", pg.Prepared(pg.SQL(`
			? RETURNING EXISTS (
				SELECT 1 FROM moves AS m WHERE `+frozenMove+` AND m.partner_id = audit_entries.partner_id)`, auditSQL(at, entries...))))
		if err == nil && slices.Contains(frozen, true) {
			err = errMoving()
		}
		return err
	})
}

// AuditOfAny inserts the entry of work that may write rows of any partner, such as an import of numbers of version 1.
// It returns Unavailable while any partner moves to another cell.
func (d *DB) AuditOfAny(ctx context.Context, e domain.AuditEntry) error {
	return d.Stamped(ctx, func(ctx context.Context, at time.Time) error {
		frozen, err := pg.One[bool](ctx, d, "write the audit trail", pg.SQL("? RETURNING "+anyFrozen, auditSQL(at, e)))
		if err == nil && frozen {
			err = errMoving()
		}
		return err
	})
}

// auditSQL returns the INSERT of entries. A zero At becomes the time now. A trigger gives an entry that names a user and no
// client the user's client, and one that names a client and no partner, as of a command, the client's partner.
func auditSQL(now time.Time, entries ...domain.AuditEntry) pg.Query {
	rows := pg.MapRows(entries, func(e *domain.AuditEntry) auditRow {
		row := auditRow{AuditEntry: *e}
		row.ID = NewID[domain.AuditKind]()
		if row.At.IsZero() {
			row.At = now
		}
		return row
	})
	return pg.Insert(rows...)
}

// settledEntries is the number of entries that SettleAudit changes per transaction.
const settledEntries = 2000

// successors are the operations that entries name in place of others. Release 1.0 wrote the others.
var successors = map[string]string{
	"v1.send": "phishing.send",           // v1-line
	"v1.move": "collections.members.add", // v1-line
}

// SettleAudit completes the entries that release 1.0 wrote, a batch per transaction: each gets an entry_id, an entry that
// names a user and no client the user's client, one that names a client and no partner the client's partner, and one of
// an operation of successors the other operation.
func (d *DB) SettleAudit(ctx context.Context) error {
	before, after := slices.Collect(maps.Keys(successors)), []string{}
	for _, operation := range before {
		after = append(after, successors[operation])
	}
	for last := new(int64); last != nil; {
		var next *int64
		err := d.RetryChange(ctx, func(ctx context.Context, c *Change) (err error) {
			next, err = pg.One[*int64](ctx, c, "complete audit entries", pg.SQL(`
				WITH batch AS (
					SELECT e.id FROM audit_entries AS e WHERE e.id > ?last ORDER BY e.id LIMIT ?n FOR NO KEY UPDATE
				), settled AS (
					UPDATE audit_entries AS e SET entry_id = coalesce(e.entry_id, uuid_v7(e.at)),
						client_id = coalesce(e.client_id, (SELECT u.client_id FROM users AS u WHERE u.id = e.user_id)),
						partner_id = coalesce((SELECT c.partner_id FROM clients AS c WHERE c.id = e.client_id AND e.partner_id = ?none),
							e.partner_id),
						operation = coalesce((SELECT o.after FROM unnest(?before::text[], ?after::text[]) AS o (before, after)
							WHERE o.before = e.operation), e.operation)
					FROM batch AS b WHERE e.id = b.id AND (e.entry_id IS NULL OR e.operation = ANY(?before::text[]))
				)
				SELECT max(id) FROM batch`, pg.Named{
				"last": *last, "n": settledEntries, "none": domain.PartnerID{}, "before": before, "after": after,
			}))
			return err
		})
		if err != nil {
			return err
		}
		last = next
	}
	return nil
}

// WithEntry returns a context for work of several changes that is to have one entry in the audit trail: the first
// change that commits writes it.
func WithEntry(ctx context.Context, e domain.AuditEntry) context.Context {
	return context.WithValue(ctx, entryKey{}, &pendingEntry{entry: e})
}

type entryKey struct{}

// pendingEntry is the entry of WithEntry. The first change that commits writes it.
type pendingEntry struct {
	mu      sync.Mutex // held by a change while the entry is not written
	entry   domain.AuditEntry
	written bool
}

// change runs a change by fn. Unless the entry is already written, it holds mu and writes the entry in the same
// transaction. The context of fn has no entry: changes within fn do not write it.
func (p *pendingEntry) change(ctx context.Context, d *DB, fn func(context.Context, *Change) error) error {
	ctx = context.WithValue(ctx, entryKey{}, (*pendingEntry)(nil))
	p.mu.Lock()
	if p.written {
		p.mu.Unlock()
		return d.change(ctx, fn)
	}
	defer p.mu.Unlock()
	err := d.Tx(ctx, func(ctx context.Context) error {
		if err := d.change(ctx, fn); err != nil {
			return err
		}
		return d.Audit(ctx, p.entry)
	})
	p.written = err == nil
	return err
}

// auditRow is a row of audit_entries. Its primary key, a number that another cell would assign again, is not read: ID is
// in the column entry_id.
type auditRow struct {
	bun.BaseModel `bun:"table:audit_entries,alias:e"`
	domain.AuditEntry
}

// ofKey returns the condition that an entry, alias e, is of the key with a prefix, whichever of its texts was used, or
// has the prefix.
func ofKey(prefix string) pg.Query {
	return pg.SQL("e.key_prefix = ANY(ARRAY(SELECT t.prefix FROM "+KeyTexts+" AS t WHERE t.key_id = ?) || ?::text)", KeyOfPrefix(prefix), prefix)
}

// EachAuditEntry calls yield with each entry that matches a filter, the oldest first, until yield returns an error.
func (d *DB) EachAuditEntry(ctx context.Context, f domain.AuditFilter, yield func(domain.AuditEntry) error) error {
	type entryWithID struct {
		auditRow
		ID int64
	}
	var after entryWithID
	after.At = f.Since
	for {
		q := pg.From("audit_entries AS e").ColumnExpr(pg.Columns[auditRow]() + ", e.id").
			Apply(pg.Where("(e.at, e.id) > (?, ?)", after.At, after.ID)).OrderExpr("e.at, e.id")
		if !f.Client.IsZero() {
			q.Apply(pg.Where("e.client_id = ?", f.Client))
		}
		if f.Prefix != "" {
			q.Where("?", ofKey(f.Prefix))
		}
		rows, err := pg.All[entryWithID](ctx, d, "read the audit trail", pg.Limit(q, auditPage))
		if err != nil {
			return err
		}

		for i := range rows {
			if err := yield(rows[i].AuditEntry); err != nil {
				return err
			}
		}
		if len(rows) < auditPage {
			return nil
		}
		after = rows[len(rows)-1]
	}
}
