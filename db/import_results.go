package db

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"partnerapi/db/pg"
	"partnerapi/domain"
)

// Imports of results of simulations.

// lateSend is how long ago a mail that is still to be sent may have been due. One
// that waited longer is history that lacks its end.
const lateSend = domain.MailCauseLife

// ImportResults adds the simulated mails of records and updates those that are there,
// in one transaction, and returns what became of each record. Status and reports only
// move forward (decisions 7.2). A new result has its user scored and its mail counted,
// and it writes no event; one that is still to be sent goes out when it is due. A
// change of one that is there is an event. No mails of the service's own follow from
// either (decisions 7.11). It takes the same number of statements for any number of
// records, and must not be called in a transaction.
func (d *DB) ImportResults(ctx context.Context, batch []domain.ResultRecord) ([]domain.ImportResult, error) {
	return importBatch(ctx, d, batch, (*Change).importResults)
}

// reached is how far people got with a mail, by its times.
func reached(r *domain.Result) domain.ResultStatus {
	switch {
	case r.FailedAt != nil:
		return domain.ResultFailed
	case r.SentAt == nil:
		return domain.ResultScheduled
	case r.CredentialsSubmittedAt != nil:
		return domain.ResultCredentialsSubmitted
	case r.ClickedAt != nil:
		return domain.ResultClicked
	case r.AttachmentOpenedAt != nil:
		return domain.ResultAttachmentOpened
	case r.OpenedAt != nil:
		return domain.ResultOpened
	}
	return domain.ResultSent
}

// consistent says what is wrong with a result as a record leaves it.
func consistent(r *domain.Result, at time.Time) error {
	switch {
	case (r.FailedAt != nil) != (r.Failure != ""):
		return errors.New("failed_at and failure: a mail that failed has both")
	case r.FailedAt != nil && r.SentAt != nil:
		return errors.New("failed_at: the mail was sent")
	case r.ReportedAt != nil && !r.Reported:
		return errors.New("reported is false, and reported_at is given")
	case r.SentAt == nil && r.Reported:
		return errors.New("reported: the mail was not sent")
	case r.SentAt == nil && r.Automated:
		return errors.New("automated_reason: the mail was not sent")
	}
	latest := at.Add(domain.SignalLead)
	for _, f := range []struct {
		name string
		at   *time.Time
	}{
		{"sent_at", r.SentAt}, {"failed_at", r.FailedAt},
		{"opened_at", r.OpenedAt}, {"attachment_opened_at", r.AttachmentOpenedAt}, {"clicked_at", r.ClickedAt},
		{"credentials_submitted_at", r.CredentialsSubmittedAt}, {"reported_at", r.ReportedAt},
	} {
		switch {
		case f.at == nil:
		case f.at.After(latest):
			return fmt.Errorf("%s is in the future", f.name)
		case f.at == r.FailedAt:
		case r.SentAt == nil:
			return fmt.Errorf("%s: the mail was not sent", f.name)
		case f.at.Before(*r.SentAt):
			return fmt.Errorf("%s is before sent_at", f.name)
		}
	}
	if r.Status == domain.ResultScheduled && at.Sub(r.SendAt) > lateSend {
		return errors.New("send_at was more than 7 days ago: a mail of then needs sent_at, or failed_at and failure")
	}
	return nil
}

// movesBack says how a record would take back what happened (decisions 7.2).
func movesBack(before, after *domain.Result) error {
	switch {
	case before.Status.Beyond(after.Status), // failed is beyond all, and of unsent mails only
		before.Status != after.Status && before.Status != domain.ResultScheduled && after.Status == domain.ResultFailed:
		return fmt.Errorf("would move the result from %s back to %s", before.Status, after.Status)
	case before.Reported && !after.Reported:
		return errors.New("reported: the mail was reported already")
	}
	return nil
}

// importingResults is a batch of records of results being applied.
type importingResults struct {
	*Change
	rows      map[any]*resultRow
	users     map[domain.UserID]domain.ClientID
	templates map[domain.TemplateID]bool
	called    map[domain.TemplateName]domain.TemplateID
}

type appliedResult = applied[domain.ResultRecord, resultRow]

func (c *Change) importResults(
	ctx context.Context, batch []domain.ResultRecord, results []domain.ImportResult,
) error {
	c.NoMail()
	m := &importingResults{Change: c}
	if err := m.read(ctx, batch); err != nil {
		return err
	}
	k := kind[domain.ResultRecord, resultRow]{
		Change: c, rows: m.rows, refuse: m.refusal, finish: m.finish,
		fresh: func(r *domain.ResultRecord) resultRow {
			template, _ := m.template(r) // it was not refused
			return resultRow{ClientID: m.users[r.User.Value.ID], TemplateID: template, UpdatedAt: c.At}
		},
		then: func(a *appliedResult) { a.after.UpdatedAt = latest(a.after.UpdatedAt, c.At) },
	}
	made, changed, err := k.settle(ctx, batch, results)
	if err != nil {
		return err
	}
	if err := k.store(ctx, made, changed); err != nil {
		return err
	}
	if err := c.addedResults(ctx, resultChanges(made)); err != nil {
		return err
	}
	return c.changedResults(ctx, resultChanges(changed))
}

// resultChanges are the results of records, before and after them.
func resultChanges(list []*appliedResult) []resultChange {
	changes := make([]resultChange, len(list))
	for i, a := range list {
		changes[i] = resultChange{client: a.after.ClientID, after: a.after.result()}
		if a.before != nil {
			changes[i].before = a.before.result()
		}
	}
	return changes
}

func (m *importingResults) refusal(r *domain.ResultRecord, before *resultRow) domain.ImportResult {
	template, err := m.template(r)
	switch {
	case err != nil:
		return refused(err)
	case before != nil && !template.IsZero() && template != before.TemplateID:
		return cannotChange("template")
	case before != nil && before.SentAt != nil && r.SentAt.Given && !r.SentAt.Value.Time.Equal(*before.SentAt):
		return cannotChange("sent_at")
	case before == nil && template.IsZero():
		return missing("template")
	}
	if _, found := m.users[r.User.Value.ID]; before == nil && !found {
		return noSuch("user", "user")
	}
	return domain.ImportResult{}
}

// finish sets what follows from the times of a record, and refuses what cannot be.
func (m *importingResults) finish(a *appliedResult) (beside bool, err error) {
	in, r := a.record, a.after
	r.Automated = r.Automated && !in.AutomatedReason.Given || in.AutomatedReason.Value != nil
	if r.Failure != nil && *r.Failure == "" {
		r.Failure = nil
	}
	if !in.Reported.Given && r.ReportedAt != nil {
		r.Reported = true
	}
	if r.Reported && r.ReportedAt == nil {
		r.ReportedAt = r.SentAt // scores count reports by their times
	}
	if a.before == nil {
		if err := m.begin(in, r); err != nil {
			return false, err
		}
	}

	now := r.result()
	r.Status = reached(&now)
	now.Status = r.Status
	if err = consistent(&now, m.At); err == nil && a.before != nil {
		before := a.before.result()
		err = movesBack(&before, &now)
	}
	return false, err
}

// begin sets when a new result was to be sent and was asked for, where its record does
// not say it.
func (m *importingResults) begin(in *domain.ResultRecord, r *resultRow) error {
	switch {
	case in.SendAt.Given:
	case r.SentAt != nil:
		r.SendAt = *r.SentAt
	case r.FailedAt != nil:
		r.SendAt = *r.FailedAt
	default:
		return errors.New("send_at is missing, as are sent_at and failed_at")
	}
	if !in.CreatedAt.Given {
		r.CreatedAt = r.SendAt
		if m.At.Before(r.CreatedAt) {
			r.CreatedAt = m.At
		}
	}
	return nil
}

// template is the template that a record names; zero where it names none.
func (m *importingResults) template(in *domain.ResultRecord) (id domain.TemplateID, err error) {
	const first = "; import the templates first: partnerapi templates import"
	if called := in.TemplateName.Value; in.TemplateName.Given {
		id, found := m.called[called]
		if !found {
			err = fmt.Errorf("template_name: there is no imported template %q in %s%s", called.Name, called.Language, first)
		}
		return id, err
	}
	if id = in.Template.Value.ID; in.Template.Given && !m.templates[id] {
		err = errors.New("template: " + domain.NoSuchObject(id.Noun()) + first)
	}
	return id, err
}

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
		if in := &batch[i]; in.TemplateName.Given {
			names = append(names, in.TemplateName.Value)
		} else if in.Template.Given {
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
