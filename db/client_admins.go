package db

import (
	"context"
	"time"

	"github.com/uptrace/bun"

	"partnerapi/domain"
)

type adminRow struct {
	bun.BaseModel `bun:"table:admins,alias:a"`

	ID          domain.AdminID `bun:"id,pk"`
	PartnerID   domain.PartnerID
	ClientID    *domain.ClientID
	Email       string
	Name        string
	Role        domain.AdminRole
	LastLoginAt *time.Time
	CreatedAt   time.Time
}

func (r *adminRow) admin() domain.Admin {
	return domain.Admin{ID: r.ID, Email: r.Email, Name: r.Name, Role: r.Role, Client: r.ClientID, LastLoginAt: r.LastLoginAt, CreatedAt: r.CreatedAt}
}

// ClientAdmins reads a page of the admins that see one client only, by their
// creation.
func (d *DB) ClientAdmins(ctx context.Context, client domain.ClientID, w domain.Window) (domain.Slice[domain.Admin], error) {
	k := keyset{
		from: "admins AS a", key: "a.created_at", cast: "timestamptz", id: "a.id",
		where: func(q *bun.SelectQuery, values *binds) *bun.SelectQuery {
			return q.Where("a.client_id = ?", values.add(client))
		},
	}
	rows, err := page(ctx, d, k, w, nil,
		func(r *adminRow) domain.Position {
			return domain.Position{Key: timeKey(r.CreatedAt), ID: r.ID.UUID()}
		})
	if err == nil && w.Total {
		rows.Total, err = k.count(ctx, d)
	}
	return mapped(rows, (*adminRow).admin), err
}

// InsertInvite adds an invite and asks for its mail, whose id it returns.
// Conflict when the email is an admin of the client already or has an open
// invite. The transaction must hold the client (LockClient), so that of two at
// once one is refused.
func (d *DB) InsertInvite(ctx context.Context, in domain.Invite) (domain.MessageID, error) {
	var isAdmin, isInvited bool
	err := d.conn(ctx).NewRaw(`
		SELECT EXISTS (SELECT 1 FROM admins WHERE client_id = ?0 AND email = ?1),
		       EXISTS (SELECT 1 FROM admin_invites WHERE client_id = ?0 AND email = ?1 AND accepted_at IS NULL AND expires_at > ?2)`,
		in.Client, in.Email, in.CreatedAt).Scan(ctx, &isAdmin, &isInvited)
	switch {
	case err != nil:
		return domain.MessageID{}, d.bad("look for an admin or invite", err)
	case isAdmin:
		return domain.MessageID{}, domain.ErrConflict("admin", "this email is already an admin of this client")
	case isInvited:
		return domain.MessageID{}, domain.ErrConflict("invite", "this email already has an open invite to this client")
	}
	id := NewID[domain.MessageKind]()
	_, err = d.conn(ctx).NewRaw(`
		WITH invite AS (
			INSERT INTO admin_invites (client_id, id, email, role, created_at, expires_at) VALUES (?0, ?1, ?2, ?3, ?4, ?5)
			RETURNING client_id, id, created_at
		)
		INSERT INTO mail_requests (client_id, id, type, invite_id, created_at)
		SELECT client_id, ?6, 'admin-invite', id, created_at FROM invite`,
		in.Client, in.ID, in.Email, in.Role, in.CreatedAt, in.ExpiresAt, id).Exec(ctx)
	return id, d.bad("insert an invite", err)
}
