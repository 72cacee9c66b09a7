package db

import (
	"context"
	"time"

	"github.com/uptrace/bun"

	"partnerapi/db/pg"
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
	return domain.Admin{
		ID: r.ID, Email: r.Email, Name: r.Name, Role: r.Role, Client: r.ClientID,
		LastLoginAt: r.LastLoginAt, CreatedAt: r.CreatedAt,
	}
}

// Admins reads a page of the admins that see this client only, by their creation.
func (t *Tenant) Admins(ctx context.Context, w domain.Window) (domain.Slice[domain.Admin], error) {
	k := pg.Keyset[adminRow]{
		Table: "admins AS a", Key: "a.created_at", Cast: "timestamptz", ID: "a.id", OneIndex: true,
		Where: pg.Conditions{pg.SQL("a.client_id = ?", t.ID)},
		Position: func(r *adminRow) domain.Position {
			return domain.Position{Key: pg.TimeKey(r.CreatedAt), ID: r.ID.UUID()}
		},
	}
	rows, err := pg.CountedPage(ctx, t.db, k, w)
	return pg.Map(rows, (*adminRow).admin), err
}

// Invite adds an invite to the client and asks for its mail, whose id it returns.
// Conflict when the email is an admin of the client already or has an open invite,
// RateLimited where the client or its partner has had as many as it may. The client is
// locked (LockTenant), so that of two at once one is refused.
func (t *Tenant) Invite(ctx context.Context, c *Change, in domain.Invite) (domain.MessageID, error) {
	has, err := pg.One[struct{ Admin, Invite bool }](ctx, c, "look for an admin or invite", pg.SQL(`
		SELECT EXISTS (SELECT 1 FROM admins WHERE client_id = ?0 AND email = ?1) AS admin,
			EXISTS (
				SELECT 1 FROM admin_invites
				WHERE client_id = ?0 AND email = ?1 AND accepted_at IS NULL AND expires_at > ?2
			) AS invite`, t.ID, in.Email, c.At))
	switch {
	case err != nil:
		return domain.MessageID{}, err
	case has.Admin:
		return domain.MessageID{}, clashes["admins_client_email_unique"]
	case has.Invite:
		return domain.MessageID{}, domain.ErrConflict("invite", "this email already has an open invite to this client")
	}

	partner := domain.CallerFrom(ctx).Partner
	if err := c.limitInvites(ctx, partner, t.ID); err != nil {
		return domain.MessageID{}, err
	}
	mail := NewID[domain.MessageKind]()
	_, err = pg.Exec(ctx, c, "insert an invite", pg.SQL(`
		WITH invite AS (
			INSERT INTO admin_invites (client_id, id, email, role, created_at, expires_at, partner_id)
			VALUES (?0, ?1, ?2, ?3, ?4, ?5, ?7) RETURNING client_id, id, created_at
		)
		INSERT INTO mail_requests (client_id, id, type, invite_id, created_at)
		SELECT client_id, ?6, 'admin-invite', id, created_at FROM invite`,
		t.ID, in.ID, in.Email, in.Role, in.CreatedAt, in.ExpiresAt, mail, partner))
	return mail, err
}

// limitInvites reports RateLimited where a client or its partner has had as many
// invites as it may within their sliding times. It locks the partner, so that of
// several at once no more are accepted.
func (c *Change) limitInvites(ctx context.Context, partner domain.PartnerID, client domain.ClientID) error {
	if err := c.LockPartner(ctx, partner); err != nil {
		return err
	}
	// The invite that is to leave its window before there may be another one; null
	// where there are fewer.
	last, err := pg.One[struct{ Client, Partner *time.Time }](ctx, c, "count invites", pg.SQL(`
		SELECT (
			SELECT created_at FROM admin_invites WHERE client_id = ?0 AND created_at > ?1
			ORDER BY created_at DESC OFFSET ?2 LIMIT 1
		) AS client, (
			SELECT created_at FROM admin_invites WHERE partner_id = ?3 AND created_at > ?4
			ORDER BY created_at DESC OFFSET ?5 LIMIT 1
		) AS partner`, client, c.At.Add(-domain.ClientInviteWindow), domain.MaxClientInvites-1,
		partner, c.At.Add(-domain.PartnerInviteWindow), domain.MaxPartnerInvites-1))
	refusal := domain.Error{Code: domain.RateLimited, Object: domain.InviteID{}.Noun()}
	switch {
	case err != nil:
		return err
	case last.Partner != nil:
		refusal.Message = "the partner has sent 100 invites within the last 24 hours, which is as many as it may"
		refusal.RetryAfter = last.Partner.Add(domain.PartnerInviteWindow).Sub(c.At)
	case last.Client != nil:
		refusal.Message = "20 invites to this client were sent within the last hour, which is as many as it may have"
	default:
		return nil
	}
	if last.Client != nil {
		refusal.RetryAfter = max(refusal.RetryAfter, last.Client.Add(domain.ClientInviteWindow).Sub(c.At))
	}
	return &refusal
}
