package db

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/uptrace/bun"

	"partnerapi/db/pg"
	"partnerapi/domain"
)

// The content of simulated emails, and their templates.

// Simulation reads a simulated email of any client, to send it or to show the landing page to its reader. It checks no
// caller's access.
func (d *DB) Simulation(ctx context.Context, id domain.ResultID) (domain.Simulation, error) {
	return pg.Find[domain.Simulation](ctx, d, id.Noun(), pg.Prepared(pg.SQL(`
		SELECT r.id AS result, r.client_id AS client, r.user_id AS "user", r.send_at, r.sent_at, u.email, u.first_name,
			u.last_name, coalesce(u.job_title, '') AS job_title, u.preferred_language AS language, c.name AS client_name, c.report_link, CASE
				WHEN c.archived_at IS NOT NULL THEN 'the client is archived'
				WHEN u.status <> 'active' THEN 'the user is inactive'
				ELSE '' END AS unwanted,
			t.id AS template_id, t.name AS template_name, t.language AS template_language, t.subject AS template_subject,
			t.from_address AS template_from_address, t.html AS template_html, t.body AS template_body,
			t.indicators AS template_indicators, t.difficulty AS template_difficulty, t.landing AS template_landing
		FROM phishing_results AS r
		JOIN clients AS c ON c.id = r.client_id
		JOIN users AS u ON u.client_id = r.client_id AND u.id = r.user_id
		JOIN phishing_templates AS t ON t.id = r.template_id
		WHERE r.id = ?`, id)))
}

// LockTargets locks the client's users among ids, in the order of their ids, and returns the data needed to choose a
// template for each.
func (t *Tenant) LockTargets(
	ctx context.Context, c *Change, ids []domain.UserID,
) (map[domain.UserID]domain.Target, error) {
	type target struct {
		ID       domain.UserID
		Active   bool
		Language domain.Language
	}
	c.WillLock(UserLocks)
	users, err := pg.All[target](ctx, c, "lock users", pg.SQL(`
		SELECT id, status = 'active' AS active, preferred_language AS language FROM users
		WHERE client_id = ? AND id = ANY(?::uuid[]) ORDER BY id FOR NO KEY UPDATE`, t.ID, pg.IDs(ids)))
	if err != nil {
		return nil, err
	}
	type lastSent struct {
		UserID     domain.UserID
		TemplateID domain.TemplateID
		At         time.Time
	}
	// Failed emails do not count: the user did not see them.
	seen, err := pg.All[lastSent](ctx, c, "look for templates that were seen", pg.SQL(`
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

// TemplateOptions reads the templates of the categories that are enabled for the client, in the order of creation, with
// the number of times that the client has used each.
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

// ScheduleResults inserts the results, at least one, of simulated emails that are to be sent. It puts the emails into
// the outbox, with urgency 2, as no one waits for them. It also counts them by label and by template. Their labels get
// the spelling of the first send.
func (t *Tenant) ScheduleResults(ctx context.Context, c *Change, results []domain.Result) error {
	changes := pg.MapRows(results, func(r *domain.Result) ResultChange { return ResultChange{Client: t.ID, After: *r} })
	spellings, err := c.CountLabels(ctx, changes)
	if err != nil {
		return err
	}
	rows := pg.MapRows(results, func(r *domain.Result) ResultRow {
		row := ResultRow{ClientID: t.ID, Result: *r}
		row.Label = spellings[LabelOf{t.ID, r.LabelKey}]
		row.Status, row.CreatedAt, row.UpdatedAt = domain.ResultScheduled, c.At, c.At
		return row
	})
	if err := pg.Run(ctx, c, "schedule simulated emails", pg.Insert(rows...)); err != nil {
		return err
	}
	ids := pg.MapRows(results, func(r *domain.Result) domain.ResultID { return r.ID })
	now := c.Now()
	due := pg.MapRows(results, func(r *domain.Result) time.Time {
		if r.SendAt.After(c.At) {
			return r.SendAt
		}
		return now // the stamp lies ahead after a step of the clock back
	})
	err = c.InsertOutbox(ctx, pg.SQL("" /* with */), pg.SQL(`
		SELECT ?client::uuid, id, ?simulatedMail, 2 AS urgency, due_at FROM unnest(?ids::uuid[], ?due::timestamptz[]) AS r (id, due_at)`,
		pg.Named{"client": t.ID, "simulatedMail": SimulatedMail, "ids": pg.IDs(ids), "due": due}))
	if err != nil {
		return err
	}
	return c.countTemplateUses(ctx, changes)
}

// countTemplateUses counts the uses of the templates of new and changed results. A cancelled result is no use.
func (c *Change) countTemplateUses(ctx context.Context, results []ResultChange) error {
	var clients, templates [][16]byte
	var uses []int
	for i := range results {
		if n := results[i].uses(); n != 0 {
			clients, templates = append(clients, results[i].Client), append(templates, results[i].After.Template)
			uses = append(uses, n)
		}
	}
	if len(uses) == 0 {
		return nil
	}
	c.WillLock(TemplateLocks)
	return pg.Run(ctx, c, "count the uses of templates", pg.SQL(`
		INSERT INTO template_uses AS u (client_id, template_id, used)
		SELECT client_id, template_id, sum(n) FROM unnest(?clients::uuid[], ?templates::uuid[], ?uses::integer[]) AS t (client_id, template_id, n)
		GROUP BY client_id, template_id ORDER BY client_id, template_id
		ON CONFLICT (client_id, template_id) DO UPDATE SET used = u.used + excluded.used`,
		pg.Named{"clients": clients, "templates": templates, "uses": uses}))
}

// templateRow is a row of phishing_templates.
type templateRow struct {
	bun.BaseModel `bun:"table:phishing_templates"`
	domain.Template
	Own bool
}

// LoadTemplates stores the service's own templates of this release. Processes call it after migrate.Up, concurrently.
func (d *DB) LoadTemplates(ctx context.Context) error {
	list, err := OwnTemplates()
	if err != nil {
		return err
	}
	_, _, err = d.storeTemplates(ctx, list, true /* own */, "(id)" /* conflict */)
	return err
}

// ImportTemplates inserts templates into the catalogue, with new ids that it sets in list. It updates earlier imports
// with the same name and language, which no two in list may share. It returns how many were added and how many changed.
func (d *DB) ImportTemplates(ctx context.Context, list []domain.Template) (added, changed int, err error) {
	err = d.Stamped(ctx, func(ctx context.Context, now time.Time) (err error) {
		for i := range list {
			list[i].ID, list[i].CreatedAt = NewID[domain.TemplateKind](), now
		}
		added, changed, err = d.storeTemplates(ctx, list, false /* own */, "(name, language) WHERE NOT own")
		return err
	})
	return added, changed, err
}

// storeTemplates inserts templates, the service's own if own is true. conflict is an SQL conflict target: an existing
// template with the same values in its columns is updated if it differs. It returns how many were added and changed.
func (d *DB) storeTemplates(
	ctx context.Context, list []domain.Template, own bool, conflict string,
) (added, changed int, err error) {
	if len(list) == 0 {
		return 0, 0, nil
	}
	rows := pg.MapRows(list, func(t *domain.Template) templateRow { return templateRow{Template: *t, Own: own} })
	const columns = "id, name, language, category, subject, from_address, html, body, created_at, " +
		"indicators, difficulty, landing, own"
	const content = "name, language, category, subject, from_address, html, body, indicators, difficulty, landing"
	excluded := "excluded." + strings.ReplaceAll(content, ", ", ", excluded.")
	stored := "t." + strings.ReplaceAll(content, ", ", ", t.")
	var outcomes []bool
	err = d.Stamped(ctx, func(ctx context.Context, now time.Time) (err error) {
		outcomes, err = pg.All[bool](ctx, d, "store templates", pg.SQL(`
			INSERT INTO phishing_templates AS t (`+columns+`)
			SELECT `+columns+` FROM json_populate_recordset(NULL::phishing_templates, ?::json) ORDER BY created_at, id
			ON CONFLICT `+conflict+` DO UPDATE SET (`+content+`, changed_at) = (`+excluded+`, ?::timestamptz)
			WHERE (`+stored+`) IS DISTINCT FROM (`+excluded+`)
			RETURNING xmax = 0 AS added -- xmax is 0 unless the row existed`, pg.Objects(rows), now))
		return err
	})
	for _, isNew := range outcomes {
		added += pg.Number(isNew)
	}
	return added, len(outcomes) - added, err
}

// templateChanged is the time at which a template, alias t, was added or last changed.
const templateChanged = "greatest(t.created_at, t.changed_at)"

// Templates reads a page of the catalogue of simulated emails, in the order of creation. If since is not nil, it
// selects only templates that were added or changed at or after since.
func (d *DB) Templates(ctx context.Context, since *time.Time, w domain.Window) (domain.Slice[domain.Template], error) {
	k := pg.ByTime("t.created_at", "t.id", func(t *domain.Template) (time.Time, domain.TemplateID) { return t.CreatedAt, t.ID })
	k.Table, k.Select = "phishing_templates AS t", func(q *bun.SelectQuery) {
		q.ColumnExpr(`t.id, t.name, t.language, t.category, t.subject, t.from_address, t.created_at`).
			ColumnExpr(templateChanged + " AS updated_at")
	}
	delta, err := pg.DeltaOf(ctx, d.DB, since, &w)
	if err != nil {
		return domain.Slice[domain.Template]{}, err
	}
	k.Where.Changed(delta, templateChanged)
	return pg.CountedPage(ctx, d, k, w)
}

// TemplateCategories reads the categories that templates have, sorted.
func (d *DB) TemplateCategories(ctx context.Context) ([]string, error) {
	return pg.All[string](ctx, d, "read the categories of templates", pg.SQL(
		`SELECT DISTINCT category COLLATE "C" AS category FROM phishing_templates ORDER BY category`))
}

// TemplateSenders reads the addresses from which simulated emails of all templates come, sorted. A send may name any
// template, so the enabled categories of a client do not matter.
func (d *DB) TemplateSenders(ctx context.Context) ([]string, error) {
	names, err := pg.All[string](ctx, d, "read the senders of templates", pg.SQL(
		"SELECT DISTINCT from_address FROM phishing_templates"))
	addresses := pg.MapRows(names, func(from *string) string { return (&domain.Template{From: *from}).FromEmail() })
	slices.Sort(addresses)
	return slices.Compact(addresses), err
}

// EnableCategories sets the enabled categories of templates of a client; nil enables all. It returns NotFound if the
// client does not exist or is archived. It is for the command line, and checks no caller's access.
func (d *DB) EnableCategories(ctx context.Context, client domain.ClientID, categories []string) error {
	return pg.RunOr(ctx, d, domain.ErrNotFound(client.Noun()), "enable categories", pg.SQL(
		"UPDATE clients SET phishing_categories = ? WHERE id = ? AND archived_at IS NULL", categories, client))
}
