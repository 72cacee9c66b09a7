package db

import (
	"context"
	"database/sql"
	"net/netip"
	"time"

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
	if e.At.IsZero() {
		e.At = d.Now()
	}
	_, err := d.conn(ctx).NewRaw(`
		INSERT INTO audit_entries (at, partner_id, key_id, key_prefix, address, operation, method, path, client_id, user_id, request_id)
		VALUES (?, ?, ?, ?, ?::inet, ?, ?, ?, ?, ?, ?)`,
		e.At, e.Partner, e.Key, e.Prefix, known(e.Address.IsValid(), e.Address.String()), e.Operation, e.Method, e.Path,
		known(!e.Client.IsZero(), e.Client.UUID()), known(!e.User.IsZero(), e.User.UUID()), e.RequestID).Exec(ctx)
	return d.bad("write the audit trail", err)
}

// known is the text, or nil where there is none.
func known(there bool, text string) *string {
	if !there {
		return nil
	}
	return &text
}

// auditRow is an entry as it is stored.
type auditRow struct {
	ID        int64
	At        time.Time
	PartnerID domain.PartnerID
	KeyID     domain.KeyID
	KeyPrefix string
	Address   sql.NullString
	Operation string
	Method    string
	Path      string
	ClientID  *domain.ClientID
	UserID    *domain.UserID
	RequestID string
}

func (r *auditRow) entry() domain.AuditEntry {
	address, _ := netip.ParseAddr(r.Address.String) // the zero Addr for none
	return domain.AuditEntry{
		At: r.At, Partner: r.PartnerID, Key: r.KeyID, Prefix: r.KeyPrefix, Address: address,
		Operation: r.Operation, Method: r.Method, Path: r.Path,
		Client: or(r.ClientID, domain.ClientID{}), User: or(r.UserID, domain.UserID{}), RequestID: r.RequestID,
	}
}

// EachAuditEntry gives the entries that the filter chooses to yield, the oldest
// first, until it returns an error.
func (d *DB) EachAuditEntry(ctx context.Context, f domain.AuditFilter, yield func(domain.AuditEntry) error) error {
	after := auditRow{At: f.Since}
	for {
		q := d.conn(ctx).NewSelect().TableExpr("audit_entries").
			ColumnExpr("id, at, partner_id, key_id, key_prefix, host(address) AS address, operation, method, path, client_id, user_id, request_id").
			Where("(at, id) > (?, ?)", after.At, after.ID).OrderExpr("at, id").Limit(auditPage)
		if !f.Client.IsZero() {
			q = q.Where("client_id = ?", f.Client)
		}
		if f.Prefix != "" {
			q = q.Where("key_prefix = ?", f.Prefix)
		}
		var rows []auditRow
		if err := q.Scan(ctx, &rows); err != nil {
			return d.bad("read the audit trail", err)
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
		dropped, err := d.conn(ctx).NewRaw(`
			DELETE FROM audit_entries
			WHERE id = ANY (ARRAY(SELECT id FROM audit_entries WHERE at < ? ORDER BY at, id LIMIT ?))`, before, auditBatch).Exec(ctx)
		if err != nil {
			return d.bad("drop old entries of the audit trail", err)
		}
		if n, _ := dropped.RowsAffected(); n < auditBatch {
			return nil
		}
	}
}
