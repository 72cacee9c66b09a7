package db

import (
	"context"
	"slices"
	"time"

	"partnerapi/db/pg"
	"partnerapi/domain"
)

// read finds and locks what records of results name, archived clients' objects too: the
// mails of the outbox, the results, and their users.
func (m *importingResults) read(ctx context.Context, batch []domain.ResultRecord) error {
	rows, err := m.lockNamedResults(ctx, idsOf(batch))
	if err != nil {
		return err
	}
	m.rows = rowsByID(rows)
	users := refsOf(batch, func(r *domain.ResultRecord) userRef { return r.User })
	for i := range rows {
		users = append(users, rows[i].UserID)
	}
	if m.users, err = m.lockAnyUsers(ctx, users); err != nil {
		return err
	}

	var templates []domain.TemplateID
	var names []domain.TemplateName
	for i := range batch {
		if in := &batch[i]; in.TemplateName.Has() {
			names = append(names, in.TemplateName.Value)
		} else if in.Template.Has() {
			templates = append(templates, in.Template.Value.ID)
		}
	}
	m.templates, err = existing(ctx, m.Change, "look for templates", "phishing_templates WHERE", sortedUnique(templates))
	if err != nil {
		return err
	}
	m.called, err = m.templatesCalled(ctx, names)
	return err
}

// lockNamedResults locks the results that are there of those with the ids, and their
// mails in the outbox, and returns them. Most are not there while a platform is first
// imported, which one look tells.
func (c *Change) lockNamedResults(ctx context.Context, of [][16]byte) ([]resultRow, error) {
	ids, err := pg.All[domain.ResultID](ctx, c, "look for results", pg.SQL(
		"SELECT id FROM phishing_results WHERE id = ANY(?::uuid[])", of))
	if err != nil || len(ids) == 0 {
		return nil, err
	}
	c.Lock(OutboxLocks)
	_, err = pg.Exec(ctx, c, "lock mails that wait", pg.SQL(`
		SELECT FROM outbox AS o JOIN phishing_results AS r ON r.client_id = o.client_id AND r.id = o.id
		WHERE r.id = ANY(?::uuid[]) ORDER BY o.client_id, o.id FOR UPDATE OF o`, pg.IDs(ids)))
	if err != nil {
		return nil, err
	}
	c.Lock(ResultLocks)
	return pg.All[resultRow](ctx, c, "lock results", pg.Rows[resultRow]().
		Where("r.id = ANY(?::uuid[])", pg.IDs(ids)).OrderBy("r.id").For("NO KEY UPDATE"))
}

// lockAnyUsers locks users, those of archived clients too, and returns whose they
// are.
func (c *Change) lockAnyUsers(ctx context.Context, users []domain.UserID) (map[domain.UserID]domain.ClientID, error) {
	keys, err := c.lockUsers(ctx, pg.SQL("u.id = ANY(?::uuid[])", pg.IDs(sortedUnique(slices.Clone(users)))))
	return ownersOf(keys), err
}

// anyUsers is lockAnyUsers without a lock.
func (c *Change) anyUsers(ctx context.Context, users []domain.UserID) (map[domain.UserID]domain.ClientID, error) {
	keys, err := pg.All[domain.UserKey](ctx, c, "look for users", pg.SQL(`
		SELECT client_id AS client, id AS "user" FROM users WHERE id = ANY(?::uuid[])`, pg.IDs(sortedUnique(slices.Clone(users)))))
	return ownersOf(keys), err
}

func ownersOf(keys []domain.UserKey) map[domain.UserID]domain.ClientID {
	owners := make(map[domain.UserID]domain.ClientID, len(keys))
	for _, k := range keys {
		owners[k.User] = k.Client
	}
	return owners
}

// templatesCalled finds imported templates by their names and languages.
func (c *Change) templatesCalled(
	ctx context.Context, list []domain.TemplateName,
) (map[domain.TemplateName]domain.TemplateID, error) {
	if len(list) == 0 {
		return nil, nil
	}
	names, languages := make([]string, len(list)), make([]string, len(list))
	for i, n := range list {
		names[i], languages[i] = n.Name, string(n.Language)
	}
	rows, err := pg.All[templateRow](ctx, c, "look for templates by name", pg.SQL(`
		SELECT id, name, language FROM phishing_templates
		WHERE NOT own AND (name, language) IN (SELECT * FROM unnest(?::text[], ?::text[]))`, names, languages))
	found := make(map[domain.TemplateName]domain.TemplateID, len(rows))
	for _, r := range rows {
		found[domain.TemplateName{Name: r.Name, Language: r.Language}] = r.ID
	}
	return found, err
}

// addedResults does what follows from new results of locked users: those that are to be
// sent wait in the outbox.
func (c *Change) addedResults(ctx context.Context, added []resultChange) error {
	if len(added) == 0 {
		return nil
	}
	var waiting []resultChange
	for i := range added {
		r := &added[i]
		c.countResult(r)
		if r.after.Status == domain.ResultScheduled {
			waiting = append(waiting, *r)
		}
		if r.after.SentAt != nil {
			c.Rescore(domain.UserKey{Client: r.client, User: r.after.User})
		}
	}
	if err := c.awaitResults(ctx, waiting); err != nil {
		return err
	}
	return c.countTemplates(ctx, added)
}

// countResult moves the counters of the day on which a mail was sent, which stays.
func (c *Change) countResult(r *resultChange) {
	if r.after.SentAt != nil {
		c.CountMails(r.client, domain.DateOf(*r.after.SentAt), r.after.Counts().Minus(r.before.Counts()))
	}
}

// awaitResults has mails sent when they are due, also those that are in the outbox
// already. One that is being handed over goes out.
func (c *Change) awaitResults(ctx context.Context, waiting []resultChange) error {
	if len(waiting) == 0 {
		return nil
	}
	clients, ids := make([]domain.ClientID, len(waiting)), make([]domain.ResultID, len(waiting))
	due := make([]time.Time, len(waiting))
	for i := range waiting {
		clients[i], ids[i], due[i] = waiting[i].client, waiting[i].after.ID, waiting[i].after.SendAt
	}
	return c.insertOutbox(ctx, pg.SQL(""), pg.SQL(`
		SELECT client_id, id, ?0, 2, due_at FROM unnest(?1::uuid[], ?2::uuid[], ?3::timestamptz[]) AS r (client_id, id, due_at)
		ON CONFLICT (client_id, id) DO UPDATE SET due_at = excluded.due_at WHERE outbox.lease IS NULL`,
		SimulatedMail, pg.IDs(clients), pg.IDs(ids), due))
}

// countTemplates counts the uses of the templates of new results.
func (c *Change) countTemplates(ctx context.Context, added []resultChange) error {
	clients, templates := make([]domain.ClientID, len(added)), make([]domain.TemplateID, len(added))
	for i := range added {
		clients[i], templates[i] = added[i].client, added[i].after.Template
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

// changedResults does what follows from results that records changed.
func (c *Change) changedResults(ctx context.Context, changed []resultChange) error {
	if len(changed) == 0 {
		return nil
	}
	clients := make([]domain.ClientID, len(changed))
	for i := range changed {
		clients[i] = changed[i].client
	}
	archived, err := existing(ctx, c, "look for archived clients", "clients WHERE archived_at IS NOT NULL AND",
		sortedUnique(clients))
	if err != nil {
		return err
	}

	var waiting []resultChange
	var settled []domain.ResultID
	for i := range changed {
		r := &changed[i]
		user := domain.UserKey{Client: r.client, User: r.after.User}
		c.countResult(r)
		if r.byPerson() && !archived[r.client] {
			c.ObjectEvent(domain.ResultUpdated, user, r.after.ID.UUID())
		}
		if r.scored() {
			c.Rescore(user)
		}
		switch {
		case r.after.Status == domain.ResultScheduled && r.after.SendAt != r.before.SendAt:
			waiting = append(waiting, *r)
		case r.before.Status == domain.ResultScheduled && r.after.Status != domain.ResultScheduled:
			settled = append(settled, r.after.ID)
		}
	}
	_, err = pg.Exec(ctx, c, "take mails out of the outbox", pg.SQL(
		"DELETE FROM outbox WHERE client_id = ANY(?::uuid[]) AND id = ANY(?::uuid[])", pg.IDs(clients), pg.IDs(settled)))
	if err != nil {
		return err
	}
	return c.awaitResults(ctx, waiting)
}
