package db

import (
	"context"
	"time"

	"github.com/uptrace/bun"

	"partnerapi/db/pg"
	"partnerapi/domain"
)

type resultRow struct {
	bun.BaseModel `bun:"table:phishing_results,alias:r"`

	ClientID               domain.ClientID `bun:"client_id,pk"`
	ID                     domain.ResultID `bun:"id,pk"`
	UserID                 domain.UserID
	TemplateID             domain.TemplateID
	Status                 domain.ResultStatus
	Reported               bool
	Automated              bool
	AutomatedReason        *domain.AutomatedReason
	SendAt                 time.Time
	SentAt                 *time.Time
	OpenedAt               *time.Time
	AttachmentOpenedAt     *time.Time
	ClickedAt              *time.Time
	CredentialsSubmittedAt *time.Time
	ReportedAt             *time.Time
	FailedAt               *time.Time
	Failure                *string
	CreatedAt              time.Time
	UpdatedAt              time.Time
}

func (r *resultRow) result() domain.Result {
	return domain.Result{
		ID: r.ID, User: r.UserID, Template: r.TemplateID, Status: r.Status, Reported: r.Reported,
		Automated: r.Automated, AutomatedReason: pg.Or(r.AutomatedReason, ""),
		SendAt: r.SendAt, SentAt: r.SentAt, OpenedAt: r.OpenedAt, AttachmentOpenedAt: r.AttachmentOpenedAt,
		ClickedAt: r.ClickedAt, CredentialsSubmittedAt: r.CredentialsSubmittedAt, ReportedAt: r.ReportedAt,
		FailedAt: r.FailedAt, Failure: pg.Or(r.Failure, ""), CreatedAt: r.CreatedAt, UpdatedAt: r.UpdatedAt,
	}
}

// Results reads a page of the client's results in the filter's order.
func (t *Tenant) Results(
	ctx context.Context, f domain.ResultFilter, w domain.Window,
) (domain.Slice[domain.Result], error) {
	k := resultList(t.ID, f.Order())
	if f.User != nil {
		k.Where.Add("r.user_id = ?", *f.User)
	}
	if f.Result != nil {
		k.Where.Add("r.id = ?", *f.Result)
	}
	switch len(f.Statuses) {
	case 0:
	case 1: // in the order of an index
		k.Where.Add("r.status = ?", f.Statuses[0])
	default:
		k.Where.Add("r.status = ANY(?::text[])", f.Statuses)
	}
	if f.Since != nil {
		k.Where.Add("r.sent_at >= ?", *f.Since)
	}
	if f.Until != nil {
		k.Where.Add("r.sent_at < ?", *f.Until)
	}
	if f.UpdatedSince != nil {
		k.Where.Add("r.updated_at >= ?", *f.UpdatedSince)
	}
	rows, err := pg.CountedPage(ctx, t.db, k, w)
	return pg.Map(rows, (*resultRow).result), err
}

// resultList is the list of a client's results in an order. One by sending has
// to leave out what was not sent.
func resultList(client domain.ClientID, order domain.ResultOrder) pg.Keyset[resultRow] {
	return pg.Keyset[resultRow]{
		Table: "phishing_results AS r", Key: "r." + string(order), Cast: "timestamptz", ID: "r.id",
		Where: pg.Conditions{pg.SQL("r.client_id = ?", client)},
		Position: func(r *resultRow) domain.Position {
			at := r.CreatedAt
			switch order {
			case domain.BySending:
				at = *r.SentAt
			case domain.ByChange:
				at = r.UpdatedAt
			}
			return domain.Position{Key: pg.TimeKey(at), ID: r.ID.UUID()}
		},
	}
}

// phishingSpan are the counts of simulated mails in a span of days.
type phishingSpan struct {
	domain.PhishingCounts
	RepeatClickers int
}

// PhishingSummary counts the client's simulated mails, in one statement.
func (t *Tenant) PhishingSummary(ctx context.Context) (domain.PhishingSummary, error) {
	// One row for each span of days; null is for ever.
	spans, err := pg.All[phishingSpan](ctx, t.db, "count simulated mails", pg.SQL(`
		SELECT coalesce(sum(p.sent), 0) AS sent, coalesce(sum(p.opened), 0) AS opened, coalesce(sum(p.clicked), 0) AS clicked,
			coalesce(sum(p.reported), 0) AS reported, coalesce(sum(p.credentials_submitted), 0) AS credentials_submitted,
			coalesce(sum(p.attachments_opened), 0) AS attachments_opened,
			(SELECT count(*) FROM (
				SELECT user_id FROM phishing_results
				WHERE client_id = ?0 AND sent_at >= (?1::date - 364)::timestamptz
				AND (clicked_at IS NOT NULL OR credentials_submitted_at IS NOT NULL OR attachment_opened_at IS NOT NULL)
				GROUP BY user_id HAVING count(*) > 1
			) AS repeated) AS repeat_clickers
		FROM (VALUES (30), (90), (365), (NULL)) AS span (days)
		LEFT JOIN phishing_days AS p ON p.client_id = ?0 AND (span.days IS NULL OR p.day > ?1::date - span.days)
		GROUP BY span.days ORDER BY span.days NULLS LAST`, t.ID, domain.DateOf(t.db.Now())))
	if err != nil {
		return domain.PhishingSummary{}, err
	}
	return domain.PhishingSummary{
		Days30: spans[0].PhishingCounts, Days90: spans[1].PhishingCounts, Days365: spans[2].PhishingCounts,
		Total: spans[3].PhishingCounts, RepeatClickers: spans[0].RepeatClickers,
	}, nil
}
