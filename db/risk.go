package db

import (
	"cmp"
	"context"
	"strings"
	"time"

	"github.com/uptrace/bun"

	"partnerapi/db/pg"
	"partnerapi/domain"
)

// Scores, and the signals from which they are computed.

// storedRisk is a row of user_risks without its keys and times. The JSON names are the names of the columns.
type storedRisk struct {
	Model    int   `json:"model"`
	Baseline int   `json:"baseline"`
	Deltas   []int `json:"deltas" bun:",array"`
	domain.Tallies
}

// riskRow is storedRisk with the name of its table.
type riskRow struct {
	bun.BaseModel `bun:"table:user_risks,alias:r"`
	storedRisk
}

// riskColumns is the list of the columns of storedRisk, without an alias.
var riskColumns = strings.ReplaceAll(pg.Columns[riskRow](), "r.", "")

func (r *storedRisk) assessment(role domain.Role) domain.Assessment {
	a := domain.Assessment{Role: role, Baseline: r.Baseline, Tallies: r.Tallies}
	copy(a.Deltas[:], r.Deltas)
	a.Score = a.Baseline + a.Deltas.Sum() // within the scale: the last delta is the correction to its bounds
	a.Grade = domain.GradeOf(a.Score)
	return a
}

// score computes the risks of locked users from the stored signals and stores them, with the next due course. If two
// transactions add signals of a user, the second one waits for the lock, and then reads the signals of both.
func (c *Change) score(ctx context.Context, keys []domain.UserKey) error {
	if len(keys) == 0 {
		return nil
	}
	today := cmp.Or(c.users.day, domain.DateOf(c.At)) // only the daily refresh sets a day
	signals, err := c.readSignals(ctx, keys, today)
	if err != nil {
		return err
	}

	risks := make([]riskRecord, len(signals))
	updates := []scoreRecord{}
	for i := range signals {
		s := &signals[i]
		a := domain.Assess(s.Role, s.domain(today), today)
		client, user := s.ClientID.UUID(), s.UserID.UUID()
		risks[i] = riskRecord{
			ClientID: client, UserID: user, ComputedOn: today, ComputedAt: c.At,
			storedRisk: storedRisk{
				Model: domain.RiskModelVersion, Baseline: a.Baseline, Deltas: a.Deltas[:], Tallies: a.Tallies,
			},
		}

		// A caller can see the score, the counts and, once a risk is stored (s.Deltas), the factors. The counts of a
		// year also change as days pass, and such a change is not to set updated_at.
		visible := a.Score != s.Score || s.Current.Sent != s.Stored.Sent || s.Current.Clicked != s.Stored.Clicked ||
			len(s.Deltas) > 0 && a != s.assessment(s.Role)
		_, dueChanged := c.users.due[domain.UserKey{Client: s.ClientID, User: s.UserID}]
		if !visible && !dueChanged && s.Current == s.Stored {
			continue // the user's row stays as it is
		}
		record := scoreRecord{
			ClientID: client, ID: user, Score: a.Score, Sent: s.Current.Sent, Clicked: s.Current.Clicked,
			SentYear: s.Current.SentYear, ClickedYear: s.Current.ClickedYear,
		}
		if visible {
			record.UpdatedAt = c.At
		}
		updates = append(updates, record)
	}
	return pg.Run(ctx, c, "store scores", pg.SQL(storeRisksSQL, pg.Named{"risks": risks, "updates": updates, "now": c.At}))
}

// riskRecord is a row of user_risks, and scoreRecord the changed columns of a row of users. Both are passed to
// PostgreSQL as JSON with the names of the columns.
type (
	riskRecord struct {
		ClientID string `json:"client_id"`
		UserID   string `json:"user_id"`
		storedRisk
		ComputedOn domain.Date `json:"computed_on"`
		ComputedAt time.Time   `json:"computed_at"`
	}
	scoreRecord struct {
		ClientID    string    `json:"client_id"`
		ID          string    `json:"id"`
		Score       int       `json:"score"`
		Sent        int       `json:"phished_sent"`
		Clicked     int       `json:"phished_clicked"`
		SentYear    int       `json:"phished_sent_year"`
		ClickedYear int       `json:"phished_clicked_year"`
		UpdatedAt   time.Time `json:"updated_at,omitzero"` // zero if nothing visible changed
	}
)

// storeRisksSQL stores ?risks and the changes of users, ?updates, as of ?now, and their next due courses.
var storeRisksSQL = strings.NewReplacer(
	"{columns}", riskColumns, "{excluded}", strings.ReplaceAll(pg.Columns[riskRow](), "r.", "excluded."),
).Replace(`
	WITH risks AS (
		INSERT INTO user_risks AS r SELECT * FROM json_populate_recordset(NULL::user_risks, ?risks::json)
		ON CONFLICT (client_id, user_id) DO UPDATE SET ({columns}, computed_on, computed_at) =
			({excluded}, excluded.computed_on, excluded.computed_at)
	)
	UPDATE users AS u SET score = n.score,
		phished_sent = n.phished_sent, phished_clicked = n.phished_clicked,
		phished_sent_year = n.phished_sent_year, phished_clicked_year = n.phished_clicked_year,
		next_due_on = due.due_on, next_course_id = due.course_id,
		updated_at = greatest(u.updated_at, n.updated_at, CASE
			WHEN (u.next_due_on, u.next_course_id) IS DISTINCT FROM (due.due_on, due.course_id) THEN ?now::timestamptz END)
	FROM json_populate_recordset(NULL::users, ?updates::json) AS n LEFT JOIN LATERAL (` + nextDueSQL + `) AS due ON true
	WHERE u.client_id = n.client_id AND u.id = n.id`)

// Risk reads the user's score and its factors. It returns NotFound if the user has no score.
func (u *User) Risk(ctx context.Context) (domain.UserRisk, error) {
	type scored struct {
		Role domain.Role
		storedRisk
		ComputedAt time.Time
	}
	row, err := pg.Find[scored](ctx, u.db, u.ID.Noun(), pg.Prepared(pg.From("users AS u").
		ColumnExpr("u.role, r.computed_at, "+pg.Columns[riskRow]()).
		Join("JOIN user_risks AS r ON r.client_id = u.client_id AND r.user_id = u.id").
		Apply(pg.Where("u.client_id = ?", u.Client)).Apply(pg.Where("u.id = ?", u.ID))))
	if err != nil {
		return domain.UserRisk{}, err
	}
	return domain.UserRisk{Assessment: row.assessment(row.Role), ComputedAt: row.ComputedAt}, nil
}

// ages are the ages of events, in days.
type ages []int

// days returns the dates of the events whose ages on the day today are a.
func (a ages) days(today domain.Date) []domain.Date {
	return pg.MapRows(a, func(age *int) domain.Date { return today.AddDays(-*age) })
}

// signalRow is a user with the stored signals and the stored risk. Without a stored risk, Deltas are empty.
type signalRow struct {
	ClientID  domain.ClientID
	UserID    domain.UserID
	Role      domain.Role
	CreatedAt time.Time

	// The stored score and numbers of simulated emails, and the current numbers.
	Score   int
	Stored  domain.UserPhishing `bun:"embed:stored_"`
	Current domain.UserPhishing `bun:"embed:phished_"`

	domain.RiskSignals      // the counts of exposures
	ClickAges          ages `bun:",array"`
	AttachmentAges     ages `bun:",array"`
	CredentialAges     ages `bun:",array"`
	ReportAges         ages `bun:",array"`
	RealPhishingAges   ages `bun:",array"`
	RealPendingAges    ages `bun:",array"`
	RealHarmlessAges   ages `bun:",array"`
	CompletionAges     ages `bun:",array"`
	Incomplete         bool

	storedRisk
}

// domain converts the row to the signals as of a day.
func (r *signalRow) domain(today domain.Date) domain.RiskSignals {
	s := r.RiskSignals
	s.Clicks, s.Attachments = r.ClickAges.days(today), r.AttachmentAges.days(today)
	s.Credentials, s.Reports = r.CredentialAges.days(today), r.ReportAges.days(today)
	s.RealPhishing, s.RealPending = r.RealPhishingAges.days(today), r.RealPendingAges.days(today)
	s.RealHarmless, s.Completions = r.RealHarmlessAges.days(today), r.CompletionAges.days(today)
	s.Dormant = domain.DormantOnTraining(r.Incomplete, s.Completions, domain.DateOf(r.CreatedAt), today)
	return s
}

// signalsSQL reads the signals of ?users of ?clients as of the day ?today, without events older than a year. Ages are
// in days of the session's time zone, which is UTC. Every subquery reads the rows of one user by an index.
//
// The times of simulated emails do not include actions of mail scanners. Exposures count only if the client has Dark
// Web Monitoring.
var signalsSQL = strings.ReplaceAll(`
	SELECT w.client_id, w.user_id, u.role, u.created_at, u.score,
		u.phished_sent AS stored_sent, u.phished_clicked AS stored_clicked,
		u.phished_sent_year AS stored_sent_year, u.phished_clicked_year AS stored_clicked_year,
		phished.*, reported.*, trained.*, exposed.*, stored.*
	FROM unnest(?clients::uuid[], ?users::uuid[]) AS w (client_id, user_id)
	`+probeUser+`
	CROSS JOIN LATERAL (
		SELECT count(p.sent) AS phished_sent,
			count(p.sent) FILTER (WHERE p.fell) AS phished_clicked,
			count(p.sent) FILTER (WHERE p.sent > ?today::date - 365) AS phished_sent_year,
			count(p.sent) FILTER (WHERE p.fell AND p.sent > ?today::date - 365) AS phished_clicked_year,
			array_agg(?today::date - p.clicked) FILTER (WHERE p.clicked >= ?today::date - 365) AS click_ages,
			array_agg(?today::date - p.attached) FILTER (WHERE p.attached >= ?today::date - 365) AS attachment_ages,
			array_agg(?today::date - p.submitted) FILTER (WHERE p.submitted >= ?today::date - 365) AS credential_ages,
			array_agg(?today::date - p.reported) FILTER (WHERE p.reported >= ?today::date - 365) AS report_ages
		FROM (
			SELECT sent_at::date AS sent, reported_at::date AS reported,
				coalesce(clicked_at, credentials_submitted_at)::date AS clicked, attachment_opened_at::date AS attached,
				credentials_submitted_at::date AS submitted,
				coalesce(clicked_at, credentials_submitted_at, attachment_opened_at) IS NOT NULL AS fell
			FROM phishing_results WHERE client_id = w.client_id AND user_id = w.user_id
		) AS p
	) AS phished
	CROSS JOIN LATERAL (
		SELECT array_agg(?today::date - reported_at::date) FILTER (WHERE classification = 'phishing') AS real_phishing_ages,
			array_agg(?today::date - reported_at::date) FILTER (WHERE classification = 'pending') AS real_pending_ages,
			array_agg(?today::date - reported_at::date) FILTER (WHERE classification IN ('spam', 'safe')) AS real_harmless_ages
		FROM reported_emails
		WHERE client_id = w.client_id AND user_id = w.user_id AND reported_at >= ?today::date - 365
	) AS reported
	CROSS JOIN LATERAL (
		SELECT array_agg(?today::date - completed_at::date) FILTER (WHERE completed_at >= ?today::date - 365) AS completion_ages,
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
			SELECT severity, resolved_at IS NULL AS open, first_seen_at >= ?today::date - 365 AS seen
			FROM exposures WHERE client_id = w.client_id AND user_id = w.user_id
				AND EXISTS (SELECT 1 FROM clients WHERE id = w.client_id AND dark_web_monitoring)
		) AS e
	) AS exposed
	CROSS JOIN LATERAL ( -- the constant row, if no risk is stored
		SELECT {columns} FROM user_risks WHERE client_id = w.client_id AND user_id = w.user_id
		UNION ALL SELECT 0, 0, '{}', 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, false
		LIMIT 1
	) AS stored`, "{columns}", riskColumns)

// readSignals reads the stored signals and risks of the users with keys. The ages of events are those on the day today.
func (c *Change) readSignals(ctx context.Context, keys []domain.UserKey, today domain.Date) ([]signalRow, error) {
	clients, users := KeyArrays(keys)
	return pg.All[signalRow](ctx, c, "read signals", pg.SQL(signalsSQL, pg.Named{"today": today, "clients": clients, "users": users}))
}

// historyDays is the number of days of a client's risk history, including today.
const historyDays = 90

// clientRiskRow is a client's risk, as of the client's summary, with the counts from which the rest of it is computed.
type clientRiskRow struct {
	domain.ClientRisk
	Grades       []gradeCount
	FactorTotals []int `bun:",array"`
	FactorUsers  []int `bun:",array"`
}

// gradeCount is the number of active users with a role and a grade, and the sum of their scores.
type gradeCount struct {
	Role   domain.Role  `json:"role"`
	Grade  domain.Grade `json:"grade"`
	Users  int          `json:"users"`
	Scores int          `json:"scores"`
}

// Risk reads the risk of all of the client's active users, as of the client's summary (decisions 4). A client that was
// never summarized has the risk of a client without users.
func (t *Tenant) Risk(ctx context.Context) (domain.ClientRisk, error) {
	row, err := pg.One[clientRiskRow](ctx, t.db, "read a client's risk", pg.Prepared(pg.SQL(`
		SELECT c.summarized_at AS computed_at, c.average_score, c.high_risk_users, coalesce(r.grades, '[]') AS grades,
			coalesce(r.factor_totals, '{}') AS factor_totals, coalesce(r.factor_users, '{}') AS factor_users,
			coalesce((
				SELECT json_agg(h ORDER BY h.date) FROM (
					SELECT day AS date, average_score, active_users FROM risk_history WHERE client_id = c.id AND day > ?1
				) AS h), '[]') AS history
		FROM clients AS c LEFT JOIN client_risks AS r ON r.client_id = c.id WHERE c.id = ?0`,
		t.ID, domain.DateOf(t.db.Now()).AddDays(-historyDays))))
	return row.risk(), err
}

// risk returns the stored risk with what follows from its counts: the grade, the top factors, the distribution of
// grades and the average score of each role that has users.
func (r *clientRiskRow) risk() domain.ClientRisk {
	risk := r.ClientRisk
	risk.Grade, risk.ByRole = domain.GradeOf(r.AverageScore), []domain.RoleRisk{}
	var totals domain.Deltas
	var users [domain.NumFactors]int
	copy(totals[:], r.FactorTotals) // the stored arrays of a newer model may be longer
	copy(users[:], r.FactorUsers)
	risk.TopFactors = domain.FactorTotals(totals, users)

	byRole := map[domain.Role]gradeCount{}
	for _, g := range r.Grades {
		risk.Distribution.Add(g.Grade, g.Users)
		sum := byRole[g.Role]
		byRole[g.Role] = gradeCount{Users: sum.Users + g.Users, Scores: sum.Scores + g.Scores}
	}
	for _, name := range domain.Role("").Values() {
		role := domain.Role(name)
		if sum := byRole[role]; sum.Users > 0 {
			risk.ByRole = append(risk.ByRole, domain.RoleRisk{
				Role: role, Users: sum.Users, AverageScore: domain.AverageScore(sum.Scores, sum.Users),
			})
		}
	}
	return risk
}
