package db

import (
	"context"
	"time"

	"github.com/uptrace/bun"

	"partnerapi/db/pg"
	"partnerapi/domain"
)

type reportedEmailRow struct {
	bun.BaseModel `bun:"table:reported_emails,alias:e"`

	ClientID       domain.ClientID        `bun:"client_id,pk"`
	ID             domain.ReportedEmailID `bun:"id,pk"`
	UserID         domain.UserID
	Subject        string
	Sender         string
	Classification domain.EmailClass
	MailboxAction  *domain.MailboxAction
	ReportedAt     time.Time
	ClassifiedAt   *time.Time
	UpdatedAt      time.Time
}

func (r *reportedEmailRow) reported() domain.ReportedEmail {
	return domain.ReportedEmail{
		ID: r.ID, Client: r.ClientID, User: r.UserID, ReportedAt: r.ReportedAt, Subject: r.Subject, Sender: r.Sender,
		Classification: domain.Classification{Class: r.Classification, Action: pg.Or(r.MailboxAction, "")},
		ClassifiedAt:   r.ClassifiedAt, UpdatedAt: r.UpdatedAt,
	}
}

// ReportedEmails reads a page of the real mails that the client's users reported,
// by the time of reporting.
func (t *Tenant) ReportedEmails(
	ctx context.Context, f domain.ReportedEmailFilter, w domain.Window,
) (domain.Slice[domain.ReportedEmail], error) {
	k := pg.Keyset[reportedEmailRow]{
		Table: "reported_emails AS e", Key: "e.reported_at", Cast: "timestamptz", ID: "e.id",
		Where: pg.Conditions{pg.SQL("e.client_id = ?", t.ID)},
		Position: func(r *reportedEmailRow) domain.Position {
			return domain.Position{Key: pg.TimeKey(r.ReportedAt), ID: r.ID.UUID()}
		},
	}
	if f.Class != nil {
		k.Where.Add("e.classification = ?", *f.Class)
	}
	if f.Since != nil {
		k.Where.Add("e.reported_at >= ?", *f.Since)
	}
	if f.Until != nil {
		k.Where.Add("e.reported_at < ?", *f.Until)
	}
	if f.UpdatedSince != nil {
		k.Where.Add("e.updated_at >= ?", *f.UpdatedSince)
	}
	rows, err := pg.CountedPage(ctx, t.db, k, w)
	return pg.Map(rows, (*reportedEmailRow).reported), err
}
