package db

import (
	"context"
	"database/sql"
	"net/netip"
	"sync"
	"time"

	"github.com/uptrace/bun"

	"partnerapi/db/pg"
	"partnerapi/domain"
)

// auditPage is how many entries are read at a time.
const auditPage = 1000

// Audit adds an entry to the audit trail, in the transaction of ctx. At may be
// zero: it is the present time then. Every write that a caller or an operator is answered
// for has an entry, so this is where those of a partner are refused who is being moved,
// with Unavailable, or has left: the entry comes last in its transaction.
func (d *DB) Audit(ctx context.Context, e domain.AuditEntry) error {
	refused, err := pg.One[bool](ctx, d, "write the audit trail", pg.Prepared(pg.SQL(`
		? RETURNING EXISTS (
			SELECT 1 FROM moves AS m WHERE `+heldMove+` AND m.partner_id IN (audit_entries.partner_id, (
				SELECT c.partner_id FROM clients AS c WHERE c.id = audit_entries.client_id)))`, d.auditSQL(e))))
	if err == nil && refused {
		err = errMoving()
	}
	return err
}

// AuditTx is Audit in a transaction of database/sql, for imports of numbers. These may
// concern any partner, so they are refused while one is handed over.
func (d *DB) AuditTx(ctx context.Context, tx *sql.Tx, e domain.AuditEntry) error {
	text, args := pg.Bound(pg.SQL("? RETURNING "+anyHeld, d.auditSQL(e)))
	var held bool
	err := tx.QueryRowContext(ctx, text, args...).Scan(&held)
	if err == nil && held {
		err = errMoving()
	}
	return err
}

func (d *DB) auditSQL(e domain.AuditEntry) pg.Query {
	if e.At.IsZero() {
		e.At = d.Now()
	}
	return pg.Insert(auditRow{
		At: e.At, PartnerID: e.Partner, KeyID: e.Key, KeyPrefix: e.Prefix, Address: known(e.Address),
		Operation: e.Operation, Method: e.Method, Path: e.Path,
		ClientID: known(e.Client), UserID: known(e.User), RequestID: e.RequestID,
		SystemUser: known(e.SystemUser), SudoUser: known(e.SudoUser),
		ObjectKind: known(e.Object.Kind), ObjectID: known(e.Object.ID), Fields: e.Fields,
	})
}

// WithEntry returns a context whose first change that is committed writes an entry
// to the audit trail in its transaction: for work that takes several of them.
func WithEntry(ctx context.Context, e domain.AuditEntry) context.Context {
	return context.WithValue(ctx, owedKey{}, &owedEntry{entry: e})
}

type owedKey struct{}

// owedEntry is an entry that a change is to write.
type owedEntry struct {
	mu      sync.Mutex // held by the change that tries to write it
	entry   domain.AuditEntry
	written bool
}

// write runs a change, which writes the entry unless one before it did.
func (o *owedEntry) write(ctx context.Context, d *DB, fn func(context.Context, *Change) error) error {
	ctx = context.WithValue(ctx, owedKey{}, (*owedEntry)(nil))
	o.mu.Lock()
	if o.written {
		o.mu.Unlock()
		return d.change(ctx, fn)
	}
	defer o.mu.Unlock()
	err := d.Tx(ctx, func(ctx context.Context) error {
		if err := d.change(ctx, fn); err != nil {
			return err
		}
		return d.Audit(ctx, o.entry)
	})
	o.written = err == nil
	return err
}

// known is the value, or nil for the zero one.
func known[T comparable](value T) *T {
	var zero T
	if value == zero {
		return nil
	}
	return &value
}

// auditRow is an entry as it is stored.
type auditRow struct {
	bun.BaseModel `bun:"table:audit_entries,alias:e"`

	At        time.Time
	PartnerID domain.PartnerID
	KeyID     domain.KeyID
	KeyPrefix string
	Address   *netip.Addr
	Operation string
	Method    string
	Path      string
	ClientID  *domain.ClientID
	UserID    *domain.UserID
	RequestID string

	// Null in the entries of the releases before.
	SystemUser           *string `bun:"os_user"` // system_user is a word of SQL
	SudoUser             *string
	ObjectKind, ObjectID *string
	Fields               []string `bun:"fields,array"`
}

// foundEntry is an entry with its place in the trail.
type foundEntry struct {
	auditRow
	ID int64
}

func (r *auditRow) entry() domain.AuditEntry {
	return domain.AuditEntry{
		At: r.At, Partner: r.PartnerID, Key: r.KeyID, Prefix: r.KeyPrefix, Address: pg.Or(r.Address, netip.Addr{}),
		Operation: r.Operation, Method: r.Method, Path: r.Path,
		Client: pg.Or(r.ClientID, domain.ClientID{}), User: pg.Or(r.UserID, domain.UserID{}), RequestID: r.RequestID,
		SystemUser: pg.Or(r.SystemUser, ""), SudoUser: pg.Or(r.SudoUser, ""),
		Object: domain.AuditObject{Kind: pg.Or(r.ObjectKind, ""), ID: pg.Or(r.ObjectID, "")}, Fields: r.Fields,
	}
}

// EachAuditEntry gives the entries that the filter chooses to yield, the oldest
// first, until it returns an error.
func (d *DB) EachAuditEntry(ctx context.Context, f domain.AuditFilter, yield func(domain.AuditEntry) error) error {
	after := foundEntry{auditRow: auditRow{At: f.Since}}
	for {
		q := pg.From("audit_entries AS e").Columns(pg.Columns[auditRow]()+", e.id").
			Where("(e.at, e.id) > (?, ?)", after.At, after.ID).OrderBy("e.at, e.id").Limit(auditPage)
		if !f.Client.IsZero() {
			q.Where("e.client_id = ?", f.Client)
		}
		if f.Prefix != "" {
			q.Where("e.key_prefix = ?", f.Prefix)
		}
		rows, err := pg.All[foundEntry](ctx, d, "read the audit trail", q)
		if err != nil {
			return err
		}

		for i := range rows {
			if err := yield(rows[i].entry()); err != nil {
				return err
			}
		}
		if len(rows) < auditPage {
			return nil
		}
		after = rows[len(rows)-1]
	}
}
