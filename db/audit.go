package db

import (
	"context"
	"net/netip"
	"time"

	"github.com/uptrace/bun"

	"partnerapi/db/pg"
	"partnerapi/domain"
)

const (
	// auditPage is how many entries are read at a time.
	auditPage = 1000
	// auditBatch is how many old entries are deleted in one transaction.
	auditBatch = 10_000
)

// Audit adds an entry to the audit trail, in the transaction of ctx. At may be
// zero: it is the present time then.
func (d *DB) Audit(ctx context.Context, e domain.AuditEntry) error {
	row := auditRow{
		At: e.At, PartnerID: e.Partner, KeyID: e.Key, KeyPrefix: e.Prefix, Operation: e.Operation, Method: e.Method,
		Path: e.Path, RequestID: e.RequestID,
	}
	if row.At.IsZero() {
		row.At = d.Now()
	}
	if e.Address.IsValid() {
		row.Address = &e.Address
	}
	if !e.Client.IsZero() {
		row.ClientID = &e.Client
	}
	if !e.User.IsZero() {
		row.UserID = &e.User
	}
	_, err := pg.Exec(ctx, d, "write the audit trail", pg.Insert(row))
	return err
}

// auditRow is an entry as it is stored.
type auditRow struct {
	bun.BaseModel `bun:"table:audit_entries,alias:a"`

	ID        int64 `bun:"id,scanonly"`
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
	after := auditRow{At: f.Since}
	for {
		q := pg.From("audit_entries AS a").Columns("a.id, "+pg.Columns[auditRow]()).
			Where("(a.at, a.id) > (?, ?)", after.At, after.ID).OrderBy("a.at, a.id").Limit(auditPage)
		if !f.Client.IsZero() {
			q.Where("a.client_id = ?", f.Client)
		}
		if f.Prefix != "" {
			q.Where("a.key_prefix = ?", f.Prefix)
		}
		rows, err := pg.All[auditRow](ctx, d, "read the audit trail", q)
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

// DropAudit deletes the entries that are older than domain.AuditLife, a batch in
// each transaction. It may be repeated, and must not be called in a transaction.
func (d *DB) DropAudit(ctx context.Context) error {
	before := d.Now().Add(-domain.AuditLife)
	for {
		dropped, err := pg.Exec(ctx, d, "drop old entries of the audit trail", pg.SQL(`
			DELETE FROM audit_entries
			WHERE id = ANY (ARRAY(SELECT id FROM audit_entries WHERE at < ? ORDER BY at, id LIMIT ?))`, before, auditBatch))
		if err != nil || dropped < auditBatch {
			return err
		}
	}
}
