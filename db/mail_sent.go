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
