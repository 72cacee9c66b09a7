package db

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"partnerapi/db/pg"
	"partnerapi/domain"
)

// lockForResults finds and locks what records of results name, archived clients'
// objects too: the mails of the outbox, the results, and their users.
func (c *Change) lockForResults(ctx context.Context, batch []domain.ResultRecord) (*namedByResults, error) {
	known := &namedByResults{results: map[domain.ResultID]*importedResult{}}
	ids := make([]domain.ResultID, len(batch))
	var users []domain.UserID
	var templates []domain.TemplateID
	var names []domain.TemplateName
	for i := range batch {
		in := &batch[i]
		ids[i] = in.ID.ID
		if in.User.Has() {
			users = append(users, in.User.Value.ID)
		}
		if in.Template.Has() {
			templates = append(templates, in.Template.Value.ID)
		}
		if in.TemplateName.Has() {
			names = append(names, in.TemplateName.Value)
		}
	}

	rows, err := c.lockNamedResults(ctx, ids)
	if err != nil {
		return nil, err
	}
	for i := range rows {
		r := rows[i].result()
		known.results[r.ID] = &importedResult{resultChange: resultChange{client: rows[i].ClientID, before: r, after: r}}
		users = append(users, r.User)
	}
	if known.users, err = c.lockAnyUsers(ctx, users); err != nil {
		return nil, err
	}
	known.templates, err = existing(ctx, c, "look for templates", "phishing_templates WHERE", sortedUnique(templates))
	if err != nil {
		return nil, err
	}
	known.called, err = c.templatesCalled(ctx, names)
	return known, err
}

// lockNamedResults locks the results that are there of those with the ids, and their
// mails in the outbox, and returns them. Most are not there while a platform is first
// imported, which one look tells.
func (c *Change) lockNamedResults(ctx context.Context, ids []domain.ResultID) ([]resultRow, error) {
	ids, err := pg.All[domain.ResultID](ctx, c, "look for results", pg.SQL(
		"SELECT id FROM phishing_results WHERE id = ANY(?::uuid[])", pg.IDs(ids)))
	if err != nil || len(ids) == 0 {
		return nil, err
	}
	c.lock(outboxLocks)
	_, err = pg.Exec(ctx, c, "lock mails that wait", pg.SQL(`
		SELECT FROM outbox AS o JOIN phishing_results AS r ON r.client_id = o.client_id AND r.id = o.id
		WHERE r.id = ANY(?::uuid[]) ORDER BY o.client_id, o.id FOR UPDATE OF o`, pg.IDs(ids)))
	if err != nil {
		return nil, err
	}
	c.lock(resultLocks)
	return pg.All[resultRow](ctx, c, "lock results", pg.From("phishing_results AS r").
		Columns(pg.Columns[resultRow]()).Where("r.id = ANY(?::uuid[])", pg.IDs(ids)).OrderBy("r.id").For("NO KEY UPDATE"))
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

// resultCopy is a whole row of phishing_results, by its columns.
type resultCopy struct {
	resultRecord
	UserID     string     `json:"user_id"`
	TemplateID string     `json:"template_id"`
	SendAt     time.Time  `json:"send_at"`
	SentAt     *time.Time `json:"sent_at"`
	FailedAt   *time.Time `json:"failed_at"`
	Failure    *string    `json:"failure"`
	CreatedAt  time.Time  `json:"created_at"`
	UpdatedAt  time.Time  `json:"updated_at"`
}

func resultCopies(changes []resultChange, at time.Time) (string, error) {
	records := make([]resultCopy, len(changes))
	for i := range changes {
		r := &changes[i].after
		records[i] = resultCopy{
			resultRecord: changes[i].record(), UserID: r.User.UUID(), TemplateID: r.Template.UUID(),
			SendAt: r.SendAt, SentAt: r.SentAt, FailedAt: r.FailedAt, CreatedAt: r.CreatedAt, UpdatedAt: at,
		}
		if r.Failure != "" {
			records[i].Failure = &r.Failure
		}
	}
	text, err := json.Marshal(records)
	return string(text), err
}

// resultColumns are the columns of resultChange.row.
var resultColumns = []string{
	"client_id", "id", "user_id", "template_id", "status", "reported", "automated", "automated_reason", "send_at",
	"sent_at", "opened_at", "attachment_opened_at", "clicked_at", "credentials_submitted_at", "reported_at", "failed_at",
	"failure", "created_at", "updated_at",
}

// row is a whole new row of phishing_results.
func (c *resultChange) row(at time.Time) []any {
	r := &c.after
	return []any{
		[16]byte(c.client), [16]byte(r.ID), [16]byte(r.User), [16]byte(r.Template), string(r.Status), r.Reported, r.Automated,
		textIf(string(r.AutomatedReason)), r.SendAt, r.SentAt, r.OpenedAt, r.AttachmentOpenedAt, r.ClickedAt,
		r.CredentialsSubmittedAt, r.ReportedAt, r.FailedAt, textIf(r.Failure), r.CreatedAt, at,
	}
}

// textIf is a text, or NULL for an empty one.
func textIf(text string) any {
	if text == "" {
		return nil
	}
	return text
}

// addResults adds results of locked users, and what follows from them: those that
// are to be sent wait in the outbox.
func (c *Change) addResults(ctx context.Context, added []resultChange) error {
	if len(added) == 0 {
		return nil
	}
	err := pg.Copy(ctx, c, "add results", "phishing_results", resultColumns, len(added), func(i int) []any {
		return added[i].row(c.At)
	})
	if err != nil {
		return err
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
		c.countMails(r.client, domain.DateOf(*r.after.SentAt), r.after.Counts().Minus(r.before.Counts()))
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
	c.lock(templateLocks)
	_, err := pg.Exec(ctx, c, "count the uses of templates", pg.SQL(`
		INSERT INTO template_uses AS u (client_id, template_id, used)
		SELECT client_id, template_id, count(*) FROM unnest(?::uuid[], ?::uuid[]) AS t (client_id, template_id)
		GROUP BY client_id, template_id ORDER BY client_id, template_id
		ON CONFLICT (client_id, template_id) DO UPDATE SET used = u.used + excluded.used`,
		pg.IDs(clients), pg.IDs(templates)))
	return err
}

// changeResults stores locked results that lines changed, and what follows from it.
func (c *Change) changeResults(ctx context.Context, changed []resultChange) error {
	if len(changed) == 0 {
		return nil
	}
	text, err := resultCopies(changed, c.At)
	if err != nil {
		return err
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
	var settledClients []domain.ClientID
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
			settledClients, settled = append(settledClients, r.client), append(settled, r.after.ID)
		}
	}

	_, err = pg.Exec(ctx, c, "change results", pg.SQL(`
		WITH settled AS (
			DELETE FROM outbox AS o USING unnest(?1::uuid[], ?2::uuid[]) AS s (client_id, id)
			WHERE o.client_id = s.client_id AND o.id = s.id
		)
		UPDATE phishing_results AS r SET status = n.status, reported = n.reported, automated = n.automated,
			automated_reason = n.automated_reason, send_at = n.send_at, sent_at = n.sent_at, opened_at = n.opened_at,
			attachment_opened_at = n.attachment_opened_at, clicked_at = n.clicked_at,
			credentials_submitted_at = n.credentials_submitted_at, reported_at = n.reported_at, failed_at = n.failed_at,
			failure = n.failure, created_at = n.created_at, updated_at = greatest(r.updated_at, n.updated_at)
		FROM json_populate_recordset(NULL::phishing_results, ?0::json) AS n
		WHERE r.client_id = n.client_id AND r.id = n.id`, text, pg.IDs(settledClients), pg.IDs(settled)))
	if err != nil {
		return err
	}
	return c.awaitResults(ctx, waiting)
}
