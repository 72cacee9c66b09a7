package db

import (
	"context"
	"time"

	"github.com/uptrace/bun"

	"partnerapi/domain"
)

type sentEmailRow struct {
	bun.BaseModel `bun:"table:sent_emails,alias:e"`

	ClientID    domain.ClientID  `bun:"client_id,pk"`
	UserID      domain.UserID    `bun:"user_id,pk"`
	ID          domain.MessageID `bun:"id,pk"`
	SentAt      time.Time
	FromEmail   string
	Subject     string
	SendMethod  domain.SendMethod
	MessageType domain.MessageType
}

func (r *sentEmailRow) email() domain.SentEmail {
	return domain.SentEmail{
		ID: r.ID, User: r.UserID, SentAt: r.SentAt, From: r.FromEmail, Subject: r.Subject, Method: r.SendMethod, Type: r.MessageType,
	}
}

// SentEmails reads a page of the mails that were sent to some users, newest
// first. That the users are within reach is for its caller to have checked.
func (d *DB) SentEmails(ctx context.Context, to []domain.UserKey, f domain.EmailFilter, w domain.Window) (domain.Slice[domain.SentEmail], error) {
	k := keyset{
		from: "sent_emails AS e", key: "e.sent_at", cast: "timestamptz", id: "e.id", desc: true,
		where: func(q *bun.SelectQuery, values *binds) *bun.SelectQuery {
			return emailsWhere(q, values, to, f)
		},
	}
	rows, err := countedPage(ctx, d, k, w, nil, func(r *sentEmailRow) domain.Position {
		return domain.Position{Key: timeKey(r.SentAt), ID: r.ID.UUID()}
	})
	return mapped(rows, (*sentEmailRow).email), err
}

func emailsWhere(q *bun.SelectQuery, values *binds, to []domain.UserKey, f domain.EmailFilter) *bun.SelectQuery {
	if len(to) == 1 { // in the order of an index
		q = q.Where("e.client_id = ? AND e.user_id = ?", values.add(to[0].Client), values.add(to[0].User))
	} else {
		clients, users := legacyKeyLists(to)
		q = q.Where("(e.client_id, e.user_id) IN (SELECT * FROM unnest(?::text[]::uuid[], ?::text[]::uuid[]))", values.add(texts(clients)), values.add(texts(users)))
	}
	if len(f.Types) > 0 {
		q = q.Where("e.message_type = ANY(?::text[])", values.add(f.Types))
	}
	if f.Since != nil {
		q = q.Where("e.sent_at >= ?", values.add(*f.Since))
	}
	if f.Until != nil {
		q = q.Where("e.sent_at < ?", values.add(*f.Until))
	}
	return q
}

// UsersByEmail finds the users within the caller's reach who have the email,
// in lower case: at the most one in each client.
func (d *DB) UsersByEmail(ctx context.Context, email string) ([]domain.UserKey, error) {
	var keys []domain.UserKey
	q := d.conn(ctx).NewSelect().TableExpr("users AS u").ColumnExpr(`u.client_id AS client, u.id AS "user"`).
		Join("JOIN clients AS c ON c.id = u.client_id").Where("u.email = ?", email).OrderExpr("u.client_id")
	err := legacyReach(ctx, q).Scan(ctx, &keys)
	return keys, d.bad("find users by email", err)
}

// UserExists reports whether any partner's client has the user, within the
// caller's reach or not. What is archived does not exist.
func (d *DB) UserExists(ctx context.Context, id domain.UserID) (exists bool, err error) {
	err = d.conn(ctx).NewRaw(`
		SELECT EXISTS (SELECT 1 FROM users AS u JOIN clients AS c ON c.id = u.client_id
			WHERE u.id = ? AND c.archived_at IS NULL)`, id).Scan(ctx, &exists)
	return exists, d.bad("look for a user", err)
}
