package db

import (
	"context"
	"encoding/json"
	"time"

	"github.com/uptrace/bun"
	"github.com/uptrace/bun/dialect/pgdialect"

	"partnerapi/domain"
)

// LockTargets locks users of a client, in the order of their ids, and returns
// what choosing a template for them needs. Users that are not the client's are
// left out.
func (d *DB) LockTargets(ctx context.Context, client domain.ClientID, ids []domain.UserID) (map[domain.UserID]domain.Target, error) {
	var users []struct {
		ID       domain.UserID
		Active   bool
		Language domain.Language
	}
	err := d.conn(ctx).NewRaw(`
		SELECT id, status = 'active' AS active, preferred_language AS language FROM users
		WHERE client_id = ? AND id = ANY(?::uuid[]) ORDER BY id FOR NO KEY UPDATE`, client, uuids(ids)).Scan(ctx, &users)
	if err != nil {
		return nil, d.bad("lock users", err)
	}
	var seen []struct {
		UserID     domain.UserID
		TemplateID domain.TemplateID
		At         time.Time
	}
	// A mail that could not be delivered was not seen.
	err = d.conn(ctx).NewRaw(`
		SELECT user_id, template_id, max(coalesce(sent_at, send_at)) AS at FROM phishing_results
		WHERE client_id = ? AND user_id = ANY(?::uuid[]) AND failed_at IS NULL GROUP BY user_id, template_id`, client, uuids(ids)).Scan(ctx, &seen)
	if err != nil {
		return nil, d.bad("look for templates that were seen", err)
	}
	targets := make(map[domain.UserID]domain.Target, len(users))
	for _, u := range users {
		targets[u.ID] = domain.Target{User: u.ID, Active: u.Active, Language: u.Language, Seen: map[domain.TemplateID]time.Time{}}
	}
	for _, s := range seen {
		if t, ok := targets[s.UserID]; ok {
			t.Seen[s.TemplateID] = s.At
		}
	}
	return targets, nil
}

// TemplateOptions reads the templates of the categories that a client has
// enabled, by creation, and how often the client used each.
func (d *DB) TemplateOptions(ctx context.Context, client domain.ClientID) ([]domain.TemplateOption, error) {
	var options []domain.TemplateOption
	err := d.conn(ctx).NewRaw(`
		SELECT t.id, t.language, coalesce(u.used, 0) AS used
		FROM phishing_templates AS t JOIN clients AS c ON c.id = ?0
		LEFT JOIN template_uses AS u ON u.client_id = c.id AND u.template_id = t.id
		WHERE c.phishing_categories IS NULL OR t.category = ANY(c.phishing_categories)
		ORDER BY t.created_at, t.id`, client).Scan(ctx, &options)
	return options, d.bad("read templates", err)
}

// TemplateCategories reads the categories that templates have, sorted.
func (d *DB) TemplateCategories(ctx context.Context) (categories []string, err error) {
	err = d.conn(ctx).NewRaw(`SELECT DISTINCT category COLLATE "C" AS category FROM phishing_templates ORDER BY category`).Scan(ctx, &categories)
	return categories, d.bad("read the categories of templates", err)
}

// EnableCategories sets the categories of templates that a client may be sent;
// nil for all. NotFound where there is no such client.
func (d *DB) EnableCategories(ctx context.Context, client domain.ClientID, categories []string) error {
	done, err := d.conn(ctx).NewRaw("UPDATE clients SET phishing_categories = ? WHERE id = ? AND archived_at IS NULL", pgdialect.Array(categories), client).Exec(ctx)
	if err != nil {
		return d.bad("enable categories", err)
	}
	if n, _ := done.RowsAffected(); n == 0 {
		return domain.ErrNotFound(client.Noun())
	}
	return nil
}

// TemplateExists reports whether the catalogue has a template.
func (d *DB) TemplateExists(ctx context.Context, id domain.TemplateID) (exists bool, err error) {
	err = d.conn(ctx).NewRaw("SELECT EXISTS (SELECT 1 FROM phishing_templates WHERE id = ?)", id).Scan(ctx, &exists)
	return exists, d.bad("look for a template", err)
}

// ScheduleResults adds simulated mails that are to be sent.
func (d *DB) ScheduleResults(ctx context.Context, client domain.ClientID, results []domain.Result) error {
	now := d.Now()
	rows := make([]resultRow, len(results))
	for i, r := range results {
		rows[i] = resultRow{
			ClientID: client, ID: r.ID, UserID: r.User, TemplateID: r.Template, Status: domain.ResultScheduled,
			SendAt: r.SendAt, CreatedAt: now, UpdatedAt: now,
		}
	}
	if _, err := d.conn(ctx).NewInsert().Model(&rows).Exec(ctx); err != nil {
		return d.bad("schedule simulated mails", err)
	}
	return d.countUses(ctx, client, results)
}

// countUses counts the templates of new mails, in the order of their ids, so
// that those who send at a time cannot deadlock.
func (d *DB) countUses(ctx context.Context, client domain.ClientID, results []domain.Result) error {
	templates := make([]domain.TemplateID, len(results))
	for i, r := range results {
		templates[i] = r.Template
	}
	_, err := d.conn(ctx).NewRaw(`
		INSERT INTO template_uses AS u (client_id, template_id, used)
		SELECT ?, id, count(*) FROM unnest(?::uuid[]) AS id GROUP BY id ORDER BY id
		ON CONFLICT (client_id, template_id) DO UPDATE SET used = u.used + excluded.used`, client, uuids(templates)).Exec(ctx)
	return d.bad("count the uses of templates", err)
}

// simulationRow is what a simulation is read from.
type simulationRow struct {
	bun.BaseModel `bun:"table:phishing_results,alias:r"`

	ID                domain.ResultID
	ClientID          domain.ClientID
	UserID            domain.UserID
	Busy              bool
	Status            domain.ResultStatus
	SendAt            time.Time
	SentAt, FailedAt  *time.Time
	ArchivedAt        *time.Time
	ClientName        string
	Email             string
	FirstName         string
	LastName          string
	UserStatus        domain.UserStatus
	PreferredLanguage domain.Language

	TemplateID  domain.TemplateID
	Name        string
	Language    domain.Language
	Subject     string
	FromAddress string
	HTML        string `bun:"html"`
	Body        string
	Indicators  json.RawMessage
	Difficulty  int
	Landing     domain.Landing
}

// simulationSQL reads a simulation; what may change while it waits for a lock
// comes from held.
const simulationSQL = `
	SELECT h.id IS NULL AS busy, coalesce(h.status, r.status) AS status, r.send_at, coalesce(h.sent_at, r.sent_at) AS sent_at,
		coalesce(h.failed_at, r.failed_at) AS failed_at, c.archived_at, c.name AS client_name, u.email, u.first_name, u.last_name,
		u.status AS user_status, u.preferred_language, r.id, r.client_id, r.user_id,
		t.id AS template_id, t.name, t.language, t.subject, t.from_address, t.html, t.body, t.indicators, t.difficulty, t.landing
	FROM phishing_results AS r LEFT JOIN held AS h ON true
	JOIN clients AS c ON c.id = r.client_id
	JOIN users AS u ON u.client_id = r.client_id AND u.id = r.user_id
	JOIN phishing_templates AS t ON t.id = r.template_id
	WHERE r.id = $1`

// Simulation reads a simulated mail, whoever's it is: for its reader's page.
func (d *DB) Simulation(ctx context.Context, id domain.ResultID) (domain.Simulation, error) {
	s, _, err := d.simulation(ctx, "WITH held AS (SELECT id, status, sent_at, failed_at FROM phishing_results WHERE id = $1)"+simulationSQL, id)
	return s, err
}

// HoldSimulation reads a simulated mail that is to be sent, and holds it for the
// transaction of ctx. It reports false where another transaction holds it; it
// does not wait.
func (d *DB) HoldSimulation(ctx context.Context, id domain.ResultID) (domain.Simulation, bool, error) {
	return d.simulation(ctx, `
		WITH held AS MATERIALIZED (
			SELECT id, status, sent_at, failed_at FROM phishing_results WHERE id = $1 FOR NO KEY UPDATE SKIP LOCKED
		)`+simulationSQL, id)
}

func (d *DB) simulation(ctx context.Context, query string, id domain.ResultID) (domain.Simulation, bool, error) {
	var values binds
	values.add(id)
	row, err := readOne[simulationRow](ctx, d, query, values)
	if err != nil {
		return domain.Simulation{}, false, d.found(err, id.Noun())
	}
	s, err := row.simulation()
	return s, !row.Busy, err
}

func (r *simulationRow) simulation() (domain.Simulation, error) {
	s := domain.Simulation{
		Result: r.ID, Client: r.ClientID, User: r.UserID, Status: r.Status, SendAt: r.SendAt, SentAt: r.SentAt, Email: r.Email, FirstName: r.FirstName, LastName: r.LastName,
		Language: r.PreferredLanguage, ClientName: r.ClientName,
		Settled: r.Status != domain.ResultScheduled || r.FailedAt != nil,
		Template: domain.Template{
			ID: r.TemplateID, Name: r.Name, Language: r.Language, Subject: r.Subject, From: r.FromAddress,
			TemplateContent: domain.TemplateContent{HTML: r.HTML, Text: r.Body, Difficulty: r.Difficulty, Landing: r.Landing},
		},
	}
	switch {
	case r.ArchivedAt != nil:
		s.Unwanted = "the client is archived"
	case r.UserStatus != domain.Active:
		s.Unwanted = "the user is inactive"
	}
	return s, json.Unmarshal(r.Indicators, &s.Template.Indicators)
}

// SimulationSent marks a simulated mail that HoldSimulation holds as sent, and
// moves with it what depends on that: the user's record of mails, counters and
// score, the client's day, and the events. The record's id is the result's.
func (d *DB) SimulationSent(ctx context.Context, s domain.Simulation, from, subject string) error {
	now := d.Now()
	_, err := d.conn(ctx).NewRaw(`
		WITH marked AS (
			UPDATE phishing_results SET status = ?2, sent_at = ?3, updated_at = ?3 WHERE client_id = ?0 AND id = ?1
			RETURNING client_id, user_id, id
		), recorded AS (
			INSERT INTO sent_emails (client_id, user_id, id, sent_at, from_email, subject, send_method, message_type)
			SELECT client_id, user_id, id, ?3, ?4, ?5, ?6, ?7 FROM marked
		)
		INSERT INTO events (client_id, id, type, user_id, object_id, created_at)
		SELECT client_id, uuid_v7(?3), ?8, user_id, id, ?3 FROM marked`,
		s.Client, s.Result, domain.ResultSent, now, from, subject, domain.BySMTP, domain.PhishingMail, domain.ResultUpdated).Exec(ctx)
	if err != nil {
		return d.bad("mark a simulated mail as sent", err)
	}
	if err := d.Rescore(ctx, s.Client, []domain.UserID{s.User}); err != nil {
		return err
	}
	return d.countDays(ctx, map[dayKey]domain.PhishingCounts{{s.Client, domain.DateOf(now)}: {Sent: 1}})
}

// SimulationFailed records that a simulated mail will never be sent, and why.
func (d *DB) SimulationFailed(ctx context.Context, s domain.Simulation, failure string) error {
	_, err := d.conn(ctx).NewRaw("UPDATE phishing_results SET failed_at = ?, failure = ? WHERE client_id = ? AND id = ?",
		d.Now(), failure, s.Client, s.Result).Exec(ctx)
	return d.bad("mark a simulated mail as failed", err)
}
