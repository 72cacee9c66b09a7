package db

import (
	"context"
	"time"

	"github.com/uptrace/bun"

	"partnerapi/db/pg"
	"partnerapi/domain"
)

// Simulations, and the sending of their mails.

// simulationRow is what a simulation is read from.
type simulationRow struct {
	bun.BaseModel `bun:"table:phishing_results,alias:r"`

	ID                domain.ResultID
	ClientID          domain.ClientID
	UserID            domain.UserID
	SendAt            time.Time
	SentAt            *time.Time
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
	Indicators  []domain.Indicator
	Difficulty  int
	Landing     domain.Landing
}

// Simulation reads a simulated mail, whoever's it is: for those who send it, and
// for its reader's page.
func (d *DB) Simulation(ctx context.Context, id domain.ResultID) (domain.Simulation, error) {
	row, err := pg.Find[simulationRow](ctx, d, id.Noun(), pg.Prepared(pg.SQL(`
		SELECT r.send_at, r.sent_at, c.archived_at, c.name AS client_name, u.email, u.first_name, u.last_name,
			u.status AS user_status, u.preferred_language, r.id, r.client_id, r.user_id,
			t.id AS template_id, t.name, t.language, t.subject, t.from_address, t.html, t.body,
			t.indicators, t.difficulty, t.landing
		FROM phishing_results AS r
		JOIN clients AS c ON c.id = r.client_id
		JOIN users AS u ON u.client_id = r.client_id AND u.id = r.user_id
		JOIN phishing_templates AS t ON t.id = r.template_id
		WHERE r.id = ?`, id)))
	return row.simulation(), err
}

func (r *simulationRow) simulation() domain.Simulation {
	s := domain.Simulation{
		Result: r.ID, Client: r.ClientID, User: r.UserID, SendAt: r.SendAt, SentAt: r.SentAt,
		Email: r.Email, FirstName: r.FirstName, LastName: r.LastName, Language: r.PreferredLanguage, ClientName: r.ClientName,
		Template: domain.Template{
			ID: r.TemplateID, Name: r.Name, Language: r.Language, Subject: r.Subject, From: r.FromAddress,
			TemplateContent: domain.TemplateContent{
				HTML: r.HTML, Text: r.Body, Indicators: r.Indicators, Difficulty: r.Difficulty, Landing: r.Landing,
			},
		},
	}
	switch {
	case r.ArchivedAt != nil:
		s.Unwanted = "the client is archived"
	case r.UserStatus != domain.Active:
		s.Unwanted = "the user is inactive"
	}
	return s
}

// targetRow is a user whom a simulated mail is to be sent to.
type targetRow struct {
	ID       domain.UserID
	Active   bool
	Language domain.Language
}

// seenRow says when a user was sent a template last.
type seenRow struct {
	UserID     domain.UserID
	TemplateID domain.TemplateID
	At         time.Time
}

// LockTargets locks users of the client, in the order of their ids, and returns
// what choosing a template for them needs. Users that are not the client's are
// left out.
func (t *Tenant) LockTargets(
	ctx context.Context, c *Change, ids []domain.UserID,
) (map[domain.UserID]domain.Target, error) {
	c.Lock(UserLocks)
	users, err := pg.All[targetRow](ctx, c, "lock users", pg.SQL(`
		SELECT id, status = 'active' AS active, preferred_language AS language FROM users
		WHERE client_id = ? AND id = ANY(?::uuid[]) ORDER BY id FOR NO KEY UPDATE`, t.ID, pg.IDs(ids)))
	if err != nil {
		return nil, err
	}
	// A mail that could not be delivered was not seen.
	seen, err := pg.All[seenRow](ctx, c, "look for templates that were seen", pg.SQL(`
		SELECT user_id, template_id, max(coalesce(sent_at, send_at)) AS at FROM phishing_results
		WHERE client_id = ? AND user_id = ANY(?::uuid[]) AND failed_at IS NULL
		GROUP BY user_id, template_id`, t.ID, pg.IDs(ids)))
	if err != nil {
		return nil, err
	}

	targets := make(map[domain.UserID]domain.Target, len(users))
	for _, u := range users {
		targets[u.ID] = domain.Target{User: u.ID, Active: u.Active, Language: u.Language,
			Seen: map[domain.TemplateID]time.Time{}}
	}
	for _, s := range seen {
		if to, ok := targets[s.UserID]; ok {
			to.Seen[s.TemplateID] = s.At
		}
	}
	return targets, nil
}

// TemplateOptions reads the templates of the categories that the client has
// enabled, by creation, and how often the client used each.
func (t *Tenant) TemplateOptions(ctx context.Context) ([]domain.TemplateOption, error) {
	return pg.All[domain.TemplateOption](ctx, t.db, "read templates", pg.SQL(`
		SELECT t.id, t.language, coalesce(u.used, 0) AS used
		FROM phishing_templates AS t JOIN clients AS c ON c.id = ?
		LEFT JOIN template_uses AS u ON u.client_id = c.id AND u.template_id = t.id
		WHERE c.phishing_categories IS NULL OR t.category = ANY(c.phishing_categories)
		ORDER BY t.created_at, t.id`, t.ID))
}

// TemplateExists reports whether the catalogue has a template.
func (d *DB) TemplateExists(ctx context.Context, id domain.TemplateID) (bool, error) {
	return pg.One[bool](ctx, d, "look for a template",
		pg.SQL("SELECT EXISTS (SELECT 1 FROM phishing_templates WHERE id = ?)", id))
}

// ScheduleResults adds simulated mails that are to be sent, at least one, and
// counts the uses of their templates.
func (t *Tenant) ScheduleResults(ctx context.Context, c *Change, results []domain.Result) error {
	rows := make([]resultRow, len(results))
	for i, r := range results {
		rows[i] = resultRow{
			ClientID: t.ID, ID: r.ID, UserID: r.User, TemplateID: r.Template, Status: domain.ResultScheduled,
			SendAt: r.SendAt, CreatedAt: c.At, UpdatedAt: c.At,
		}
	}
	if _, err := pg.Exec(ctx, c, "schedule simulated mails", pg.Insert(rows...)); err != nil {
		return err
	}
	if err := c.sendSimulations(ctx, t.ID, results); err != nil {
		return err
	}
	return c.countTemplates(ctx, rows)
}

// countTemplates counts the uses of the templates of new results.
func (c *Change) countTemplates(ctx context.Context, added []resultRow) error {
	clients, templates := make([]domain.ClientID, len(added)), make([]domain.TemplateID, len(added))
	for i := range added {
		clients[i], templates[i] = added[i].ClientID, added[i].TemplateID
	}
	c.Lock(TemplateLocks)
	_, err := pg.Exec(ctx, c, "count the uses of templates", pg.SQL(`
		INSERT INTO template_uses AS u (client_id, template_id, used)
		SELECT client_id, template_id, count(*) FROM unnest(?::uuid[], ?::uuid[]) AS t (client_id, template_id)
		GROUP BY client_id, template_id ORDER BY client_id, template_id
		ON CONFLICT (client_id, template_id) DO UPDATE SET used = u.used + excluded.used`,
		pg.IDs(clients), pg.IDs(templates)))
	return err
}
