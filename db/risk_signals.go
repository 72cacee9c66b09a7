package db

import (
	"context"
	"strings"
	"time"

	"partnerapi/db/pg"
	"partnerapi/domain"
)

// ages are events by how many days ago they were.
type ages []int

func (a ages) days(today domain.Date) []domain.Date {
	days := make([]domain.Date, len(a))
	for i, age := range a {
		days[i] = today.AddDays(-age)
	}
	return days
}

// signalRow is a user with what is stored of the user's signals, and the risk
// that was made of earlier ones; its Deltas are empty where there is none.
type signalRow struct {
	ClientID  domain.ClientID
	UserID    domain.UserID
	Role      domain.Role
	CreatedAt time.Time

	// What is stored of the user, and phishedCounts as they are now.
	Score             int
	StoredSent        int
	StoredClicked     int
	StoredSentYear    int
	StoredClickedYear int
	phishedCounts

	Clicks       ages `bun:",array"`
	Attachments  ages `bun:",array"`
	Credentials  ages `bun:",array"`
	Reports      ages `bun:",array"`
	RealPhishing ages `bun:",array"`
	RealPending  ages `bun:",array"`
	RealHarmless ages `bun:",array"`
	Completions  ages `bun:",array"`
	Incomplete   bool

	UnresolvedCritical   int
	UnresolvedHigh       int
	UnresolvedMedium     int
	SeenPasswordActive   int
	SeenPasswordResolved int
	SeenPII              int `bun:"seen_pii"`
	SeenBasic            int

	storedRisk
}

func (r *signalRow) storedCounts() phishedCounts {
	return phishedCounts{r.StoredSent, r.StoredClicked, r.StoredSentYear, r.StoredClickedYear}
}

func (r *signalRow) domain(today domain.Date) domain.RiskSignals {
	completions := r.Completions.days(today)
	return domain.RiskSignals{
		Clicks: r.Clicks.days(today), Attachments: r.Attachments.days(today),
		Credentials: r.Credentials.days(today), Reports: r.Reports.days(today),
		RealPhishing: r.RealPhishing.days(today), RealPending: r.RealPending.days(today),
		RealHarmless: r.RealHarmless.days(today), Completions: completions,
		Dormant:            domain.DormantOnTraining(r.Incomplete, completions, domain.DateOf(r.CreatedAt), today),
		UnresolvedCritical: r.UnresolvedCritical, UnresolvedHigh: r.UnresolvedHigh, UnresolvedMedium: r.UnresolvedMedium,
		SeenPasswordActive: r.SeenPasswordActive, SeenPasswordResolved: r.SeenPasswordResolved,
		SeenPII: r.SeenPII, SeenBasic: r.SeenBasic,
	}
}

// signalsSQL reads the signals of the users with the keys ?1 and ?2 as of the
// day ?0. Events older than a year count for nothing and stay behind; ages are
// in days of the session's zone, which is UTC. Every subquery finds the rows of
// one user by an index, so that the cost follows the users asked for.
//
// The times of simulated mails are those of what people did. Exposures are none where the client has
// no Dark Web Monitoring.
var signalsSQL = strings.ReplaceAll(`
	SELECT w.client_id, w.user_id, u.role, u.created_at, u.score,
		u.phished_sent AS stored_sent, u.phished_clicked AS stored_clicked,
		u.phished_sent_year AS stored_sent_year, u.phished_clicked_year AS stored_clicked_year,
		phished.*, reported.*, trained.*, exposed.*, stored.*
	FROM unnest(?1::uuid[], ?2::uuid[]) AS w (client_id, user_id)
	JOIN users AS u ON u.client_id = w.client_id AND u.id = w.user_id
	CROSS JOIN LATERAL (
		SELECT count(p.sent) AS phished_sent,
			count(p.sent) FILTER (WHERE p.fell) AS phished_clicked,
			count(p.sent) FILTER (WHERE p.sent > ?0::date - 365) AS phished_sent_year,
			count(p.sent) FILTER (WHERE p.fell AND p.sent > ?0::date - 365) AS phished_clicked_year,
			array_agg(?0::date - p.clicked) FILTER (WHERE p.clicked >= ?0::date - 365) AS clicks,
			array_agg(?0::date - p.attached) FILTER (WHERE p.attached >= ?0::date - 365) AS attachments,
			array_agg(?0::date - p.submitted) FILTER (WHERE p.submitted >= ?0::date - 365) AS credentials,
			array_agg(?0::date - p.reported) FILTER (WHERE p.reported >= ?0::date - 365) AS reports
		FROM (
			SELECT sent_at::date AS sent, reported_at::date AS reported,
				coalesce(clicked_at, credentials_submitted_at)::date AS clicked, attachment_opened_at::date AS attached,
				credentials_submitted_at::date AS submitted,
				coalesce(clicked_at, credentials_submitted_at, attachment_opened_at) IS NOT NULL AS fell
			FROM phishing_results WHERE client_id = w.client_id AND user_id = w.user_id
		) AS p
	) AS phished
	CROSS JOIN LATERAL (
		SELECT array_agg(?0::date - reported_at::date) FILTER (WHERE classification = 'phishing') AS real_phishing,
			array_agg(?0::date - reported_at::date) FILTER (WHERE classification = 'pending') AS real_pending,
			array_agg(?0::date - reported_at::date) FILTER (WHERE classification IN ('spam', 'safe')) AS real_harmless
		FROM reported_emails
		WHERE client_id = w.client_id AND user_id = w.user_id AND reported_at >= ?0::date - 365
	) AS reported
	CROSS JOIN LATERAL (
		SELECT array_agg(?0::date - completed_at::date) FILTER (WHERE completed_at >= ?0::date - 365) AS completions,
			count(*) > count(completed_at) AS incomplete
		FROM assignments WHERE client_id = w.client_id AND user_id = w.user_id
	) AS trained
	CROSS JOIN LATERAL (
		SELECT count(*) FILTER (WHERE open AND severity = 'critical') AS unresolved_critical,
			count(*) FILTER (WHERE open AND severity = 'high') AS unresolved_high,
			count(*) FILTER (WHERE open AND severity = 'medium') AS unresolved_medium,
			count(*) FILTER (WHERE seen AND open AND severity = 'critical') AS seen_password_active,
			count(*) FILTER (WHERE seen AND NOT open AND severity = 'critical') AS seen_password_resolved,
			count(*) FILTER (WHERE seen AND open AND severity = 'high') AS seen_pii,
			count(*) FILTER (WHERE seen AND open AND severity = 'medium') AS seen_basic
		FROM (
			SELECT severity, resolved_at IS NULL AS open, first_seen_at >= ?0::date - 365 AS seen
			FROM exposures WHERE client_id = w.client_id AND user_id = w.user_id
				AND EXISTS (SELECT 1 FROM clients WHERE id = w.client_id AND dark_web_monitoring)
		) AS e
	) AS exposed
	CROSS JOIN LATERAL ( -- empty where there is none yet
		SELECT {columns} FROM user_risks WHERE client_id = w.client_id AND user_id = w.user_id
		UNION ALL SELECT 0, 0, '{}', 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, false
		LIMIT 1
	) AS stored`, "{columns}", riskColumns)

func (c *Change) signals(ctx context.Context, keys []domain.UserKey, today domain.Date) ([]signalRow, error) {
	clients, users := keyLists(keys)
	return pg.All[signalRow](ctx, c, "read signals", pg.SQL(signalsSQL, today, clients, users))
}
