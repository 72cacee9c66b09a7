package db

import (
	"context"
	"net/netip"
	"time"

	"github.com/uptrace/bun"

	"partnerapi/db/pg"
	"partnerapi/domain"
)

// auditPage is how many entries are read at a time.
const auditPage = 1000

// Audit adds an entry to the audit trail, in the transaction of ctx. At may be
// zero: it is the present time then.
func (d *DB) Audit(ctx context.Context, e domain.AuditEntry) error {
	if e.At.IsZero() {
		e.At = d.Now()
	}
	_, err := pg.Exec(ctx, d, "write the audit trail", pg.Prepared(pg.Insert(auditRow{
		At: e.At, PartnerID: e.Partner, KeyID: e.Key, KeyPrefix: e.Prefix, Address: known(e.Address),
		Operation: e.Operation, Method: e.Method, Path: e.Path,
		ClientID: known(e.Client), UserID: known(e.User), RequestID: e.RequestID,
	})))
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
}

// foundEntry is an entry with its place in the trail.
type foundEntry struct {
	auditRow
	ID int64
}

func (r *auditRow) entry() domain.AuditEntry {
	return domain.AuditEntry{
		At: r.At, Partner: r.PartnerID, Key: r.KeyID, Prefix: r.KeyPrefix, Address: or(r.Address, netip.Addr{}),
		Operation: r.Operation, Method: r.Method, Path: r.Path,
		Client: or(r.ClientID, domain.ClientID{}), User: or(r.UserID, domain.UserID{}), RequestID: r.RequestID,
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
