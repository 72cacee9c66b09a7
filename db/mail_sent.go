package db

import (
	"context"
	"time"

	"github.com/uptrace/bun"

	"partnerapi/db/pg"
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
		ID: r.ID, User: r.UserID, SentAt: r.SentAt, From: r.FromEmail, Subject: r.Subject, Method: r.SendMethod,
		Type: r.MessageType,
	}
}

// SentEmails reads a page of the mails that were sent to the user, newest first.
func (u *User) SentEmails(
	ctx context.Context, f domain.EmailFilter, w domain.Window,
) (domain.Slice[domain.SentEmail], error) {
	return sentEmails(ctx, u.db, pg.SQL("e.client_id = ? AND e.user_id = ?", u.Client, u.ID), f, w)
}

func sentEmails(
	ctx context.Context, d *DB, to pg.Query, f domain.EmailFilter, w domain.Window,
) (domain.Slice[domain.SentEmail], error) {
	k := pg.Keyset[sentEmailRow]{
		Table: "sent_emails AS e", Key: "e.sent_at", Cast: "timestamptz", ID: "e.id", Desc: true,
		Where: pg.Conditions{to},
		Position: func(r *sentEmailRow) domain.Position {
			return domain.Position{Key: pg.TimeKey(r.SentAt), ID: r.ID.UUID()}
		},
	}
	if len(f.Types) > 0 {
		k.Where.Add("e.message_type = ANY(?::text[])", f.Types)
	}
	if f.Since != nil {
		k.Where.Add("e.sent_at >= ?", *f.Since)
	}
	if f.Until != nil {
		k.Where.Add("e.sent_at < ?", *f.Until)
	}
	rows, err := pg.CountedPage(ctx, d, k, w)
	return pg.Map(rows, (*sentEmailRow).email), err
}

// What follows is only v1's: it finds whom mails were sent to by their address.

// Addressees are users who have one email address, at the most one in each
// client, and were found within the caller's reach.
type Addressees struct {
	users []domain.UserKey
	db    *DB
}

// Addressees finds the users who have the email, which is in lower case.
// NotFound where there is none.
func (d *DB) Addressees(ctx context.Context, email string) (*Addressees, error) {
	users, err := pg.All[userKeyRow](ctx, d, "find users by email", pg.From("users AS u").Columns("u.client_id, u.id").
		Join("JOIN clients AS c ON c.id = u.client_id").Where("u.email = ?", email).
		Where("?", reach(ctx)).OrderBy("u.client_id"))
	if err == nil && len(users) == 0 {
		err = domain.ErrNotFound((domain.UserKind{}).Noun())
	}
	to := &Addressees{db: d}
	for _, u := range users {
		to.users = append(to.users, domain.UserKey{Client: u.ClientID, User: u.ID})
	}
	return to, err
}

type userKeyRow struct {
	ClientID domain.ClientID
	ID       domain.UserID
}

// SentEmails reads a page of the mails that were sent to all of them, newest
// first.
func (a *Addressees) SentEmails(
	ctx context.Context, f domain.EmailFilter, w domain.Window,
) (domain.Slice[domain.SentEmail], error) {
	to := pg.SQL("e.client_id = ? AND e.user_id = ?", a.users[0].Client, a.users[0].User) // in the order of an index
	if len(a.users) > 1 {
		clients, users := keyLists(a.users)
		to = pg.SQL("(e.client_id, e.user_id) IN (SELECT * FROM unnest(?::uuid[], ?::uuid[]))", clients, users)
	}
	return sentEmails(ctx, a.db, to, f, w)
}

// UserExists reports whether any partner's client has the user, within the
// caller's reach or not. What is archived does not exist.
func (d *DB) UserExists(ctx context.Context, id domain.UserID) (bool, error) {
	return pg.One[bool](ctx, d, "look for a user", pg.SQL(`
		SELECT EXISTS (SELECT 1 FROM users AS u JOIN clients AS c ON c.id = u.client_id
			WHERE u.id = ? AND c.archived_at IS NULL)`, id))
}
