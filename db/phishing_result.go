package db

import (
	"context"
	"time"

	"github.com/uptrace/bun"

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
	AutomatedReason        *string
	SendAt                 time.Time
	SentAt                 *time.Time
	OpenedAt               *time.Time
	AttachmentOpenedAt     *time.Time
	ClickedAt              *time.Time
	CredentialsSubmittedAt *time.Time
	ReportedAt             *time.Time
	CreatedAt              time.Time
	UpdatedAt              time.Time
}

func (r *resultRow) result() domain.Result {
	out := domain.Result{
		ID: r.ID, User: r.UserID, Template: r.TemplateID, Status: r.Status, Reported: r.Reported, Automated: r.Automated,
		SendAt: r.SendAt, SentAt: r.SentAt, OpenedAt: r.OpenedAt, AttachmentOpenedAt: r.AttachmentOpenedAt, ClickedAt: r.ClickedAt,
		CredentialsSubmittedAt: r.CredentialsSubmittedAt, ReportedAt: r.ReportedAt, CreatedAt: r.CreatedAt, UpdatedAt: r.UpdatedAt,
	}
	if r.AutomatedReason != nil {
		out.AutomatedReason = *r.AutomatedReason
	}
	return out
}

// Results reads a page of a client's results in the filter's order, the newest
// first where it says so. That the client is within reach is for its caller to
// have checked, here and below.
func (d *DB) Results(ctx context.Context, client domain.ClientID, f domain.ResultFilter, w domain.Window) (domain.Slice[domain.Result], error) {
	k := keyset{
		from: "phishing_results AS r", key: "r." + string(f.Order()), cast: "timestamptz", id: "r.id", desc: f.Newest,
		where: func(q *bun.SelectQuery, values *binds) *bun.SelectQuery {
			return resultsWhere(q, values, client, f)
		},
	}
	rows, err := countedPage(ctx, d, k, w, nil, func(r *resultRow) domain.Position {
		at := r.CreatedAt
		switch f.Order() {
		case domain.BySending:
			at = *r.SentAt // the filter leaves out what was not sent
		case domain.ByChange:
			at = r.UpdatedAt
		}
		return domain.Position{Key: timeKey(at), ID: r.ID.UUID()}
	})
	return mapped(rows, (*resultRow).result), err
}

func resultsWhere(q *bun.SelectQuery, values *binds, client domain.ClientID, f domain.ResultFilter) *bun.SelectQuery {
	q = q.Where("r.client_id = ?", values.add(client))
	if f.User != nil {
		q = q.Where("r.user_id = ?", values.add(*f.User))
	}
	if f.Result != nil {
		q = q.Where("r.id = ?", values.add(*f.Result))
	}
	if f.Status != "" {
		q = q.Where("r.status = ?", values.add(f.Status))
	}
	if f.Since != nil {
		q = q.Where("r.sent_at >= ?", values.add(*f.Since))
	}
	if f.Until != nil {
		q = q.Where("r.sent_at < ?", values.add(*f.Until))
	}
	if f.UpdatedSince != nil {
		q = q.Where("r.updated_at >= ?", values.add(*f.UpdatedSince))
	}
	if f.Newest {
		q = q.Where("r.sent_at IS NOT NULL")
	}
	return q
}

// phishingSQL counts the simulated mails of the client ?0 as of the day ?1, for
// each span of days; null is for ever.
const phishingSQL = `
	SELECT coalesce(sum(p.sent), 0) AS sent, coalesce(sum(p.opened), 0) AS opened, coalesce(sum(p.clicked), 0) AS clicked,
		coalesce(sum(p.reported), 0) AS reported, coalesce(sum(p.credentials_submitted), 0) AS credentials_submitted,
		coalesce(sum(p.attachments_opened), 0) AS attachments_opened,
		(SELECT count(*) FROM (
			SELECT user_id FROM phishing_results
			WHERE client_id = ?0 AND sent_at >= (?1::date - 364)::timestamptz AND NOT automated
			AND (clicked_at IS NOT NULL OR credentials_submitted_at IS NOT NULL OR attachment_opened_at IS NOT NULL)
			GROUP BY user_id HAVING count(*) > 1
		) AS repeated) AS repeat_clickers
	FROM (VALUES (30), (90), (365), (NULL)) AS span (days)
	LEFT JOIN phishing_days AS p ON p.client_id = ?0 AND (span.days IS NULL OR p.day > ?1::date - span.days)
	GROUP BY span.days ORDER BY span.days NULLS LAST`

// PhishingSummary counts a client's simulated mails, in one statement.
func (d *DB) PhishingSummary(ctx context.Context, client domain.ClientID) (domain.PhishingSummary, error) {
	var spans []struct {
		domain.PhishingCounts
		RepeatClickers int
	}
	err := d.conn(ctx).NewRaw(phishingSQL, client, domain.DateOf(d.Now())).Scan(ctx, &spans)
	if err != nil || len(spans) != 4 {
		return domain.PhishingSummary{}, d.bad("count simulated mails", err)
	}
	return domain.PhishingSummary{
		Days30: spans[0].PhishingCounts, Days90: spans[1].PhishingCounts, Days365: spans[2].PhishingCounts, Total: spans[3].PhishingCounts,
		RepeatClickers: spans[0].RepeatClickers,
	}, nil
}

type templateRow struct {
	bun.BaseModel `bun:"table:phishing_templates,alias:t"`

	ID          domain.TemplateID `bun:"id,pk"`
	Name        string
	Language    domain.Language
	Category    string
	Subject     string
	FromAddress string
	CreatedAt   time.Time
}

func (r *templateRow) template() domain.Template {
	return domain.Template{
		ID: r.ID, Name: r.Name, Language: r.Language, Category: r.Category, Subject: r.Subject, From: r.FromAddress, CreatedAt: r.CreatedAt,
	}
}

// Templates reads a page of the catalogue of simulated mails, by creation.
// since, if not nil, leaves those that were added or changed at or after it.
func (d *DB) Templates(ctx context.Context, since *time.Time, w domain.Window) (domain.Slice[domain.Template], error) {
	k := keyset{
		from: "phishing_templates AS t", key: "t.created_at", cast: "timestamptz", id: "t.id",
		where: func(q *bun.SelectQuery, values *binds) *bun.SelectQuery {
			if since != nil {
				q = q.Where("greatest(t.created_at, t.changed_at) >= ?", values.add(*since))
			}
			return q
		},
	}
	rows, err := countedPage(ctx, d, k, w, nil, func(r *templateRow) domain.Position {
		return domain.Position{Key: timeKey(r.CreatedAt), ID: r.ID.UUID()}
	})
	return mapped(rows, (*templateRow).template), err
}
