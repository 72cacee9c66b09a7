package records

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/uptrace/bun"

	"partnerapi/db"
	"partnerapi/db/pg"
	"partnerapi/domain"
)

// lateSend bounds how long ago a new email that was not sent may have been due. A record of an older email needs an
// outcome.
const lateSend = domain.MailCauseLife

// importedResult is a row of phishing_results. For an export it has the name of its template.
type importedResult struct {
	bun.BaseModel `bun:"table:phishing_results,alias:r"`
	db.ResultRow

	TemplateOwn      bool            `bun:",scanonly"`
	TemplateName     string          `bun:",scanonly"`
	TemplateLanguage domain.Language `bun:",scanonly"`
}

// Results is the kind of the results of simulated emails. Their status never goes back, and a report is never undone
// (decisions 7.2). A new result counts its email and recomputes its user's score, without an event; if it is scheduled,
// the email is sent when it is due. A change of an existing result causes an event. Neither causes one of the service's
// own emails (decisions 7.11). An export orders results by user, so that an import computes the score of each user once
// or twice.
var Results = declare[results](kind[domain.ResultRecord, importedResult]{
	object: "phishing_result", partner: ofPartner("r"), order: "r.client_id, r.user_id, r.sent_at, r.id",
})

type results struct {
	batch[domain.ResultRecord, importedResult]
	templates map[domain.TemplateName]domain.TemplateID // those that records name
}

// lock locks the emails of existing results in the outbox, the results, and the users of all records, also if their
// clients are archived. It also looks for the templates that records name.
func (b *results) lock(ctx context.Context) error {
	b.NoMail() // they are history
	rows, err := b.lockResults(ctx)
	if err != nil {
		return err
	}
	b.keep(rows)
	users := b.found.ids(domain.UserID{}.Prefix())
	for i := range rows {
		users = append(users, rows[i].User)
	}
	if _, err := b.LockUserKeys(ctx, pg.SQL("u.id = ANY(?::uuid[])", users)); err != nil {
		return err
	}
	return b.findTemplates(ctx)
}

// lockResults locks the emails of existing results in the outbox and the results, and returns the results. A first
// query looks whether any exist, because in a first import none do.
func (b *results) lockResults(ctx context.Context) ([]importedResult, error) {
	ids, err := pg.All[domain.ResultID](ctx, b, "look for results", pg.SQL(
		"SELECT id FROM phishing_results WHERE id = ANY(?::uuid[])", idsOf(b.list)))
	if err != nil || len(ids) == 0 {
		return nil, err
	}
	b.WillLock(db.OutboxLocks)
	err = pg.Run(ctx, b, "lock waiting emails", pg.SQL(`
		SELECT FROM outbox AS o JOIN phishing_results AS r ON r.client_id = o.client_id AND r.id = o.id
		WHERE r.id = ANY(?::uuid[]) ORDER BY o.client_id, o.id FOR UPDATE OF o`, pg.IDs(ids)))
	if err != nil {
		return nil, err
	}
	b.WillLock(db.ResultLocks)
	return pg.All[importedResult](ctx, b, "lock results", pg.Rows[importedResult]().
		Apply(pg.Where("r.id = ANY(?::uuid[])", pg.IDs(ids))).OrderExpr("r.id").For("NO KEY UPDATE"))
}

// findTemplates sets templates. Those that do not exist are omitted.
func (b *results) findTemplates(ctx context.Context) error {
	var names, languages []string
	for _, a := range b.list {
		if name := a.in.TemplateName; name.Given {
			names, languages = append(names, name.Value.Name), append(languages, string(name.Value.Language))
		}
	}
	if len(names) == 0 {
		return nil
	}
	type template struct {
		ID domain.TemplateID
		domain.TemplateName
	}
	rows, err := pg.All[template](ctx, b, "look for templates by name", pg.SQL(`
		SELECT id, name, language FROM phishing_templates
		WHERE NOT own AND (name, language) IN (SELECT * FROM unnest(?::text[], ?::text[]))`, names, languages))
	b.templates = pg.Index(rows, func(t *template) (domain.TemplateName, domain.TemplateID) { return t.TemplateName, t.ID })
	return err
}

func (b *results) create(in *domain.ResultRecord, r *importedResult) {
	r.ID, r.ClientID, r.CreatedAt, r.UpdatedAt = in.ID.ID, b.found.find(in.User.Value).ClientID, b.At, b.At
}

// apply sets the columns that follow from the record's times, such as the status. It returns an error for an impossible
// result, and for a record that would undo a step.
func (b *results) apply(in *domain.ResultRecord, before, r *importedResult) error {
	if err := b.setTemplate(in, before, r); err != nil {
		return err
	}
	if err := setLabel(in, before, r); err != nil {
		return err
	}
	if before != nil && before.SentAt != nil && in.SentAt.Given && !r.SentAt.Equal(*before.SentAt) {
		return cannotChange("sent_at")
	}
	if in.AutomatedReason.Given {
		r.Automated = in.AutomatedReason.Value != nil
	}
	if !in.Reported.Given && r.ReportedAt != nil {
		r.Reported = true
	}
	if r.Reported && r.ReportedAt == nil {
		r.ReportedAt = r.SentAt // scores need the time of a report
	}
	if before == nil {
		if err := setResultTimes(in, r, b.At); err != nil {
			return err
		}
	}

	r.Status = statusOf(&r.Result)
	b.touch(before, r, &r.UpdatedAt)
	if err := checkResult(&r.Result, b.At); err != nil || before == nil {
		return err
	}
	return checkProgress(&before.Result, &r.Result)
}

// setTemplate sets the template that a record names. It returns an error if there is no such template, if the record
// changes the template of an existing result, or if a new result has none.
func (b *results) setTemplate(in *domain.ResultRecord, before, r *importedResult) error {
	if name := in.TemplateName; name.Given {
		template, found := b.templates[name.Value]
		switch {
		case !found:
			return fmt.Errorf("template_name: there is no imported template %q in the language %s%s",
				name.Value.Name, name.Value.Language, importFirst)
		case before != nil && template != before.Template:
			return cannotChange("template")
		}
		r.Template = template
	}
	if r.Template.IsZero() {
		return missing("template")
	}
	return nil
}

// setLabel sets the key of a new result's label. It returns an error if the record changes the label of an existing
// result, other than its spelling, which is that of the label's first send.
func setLabel(in *domain.ResultRecord, before, r *importedResult) error {
	switch key := domain.SortKey(in.Label.Value); {
	case !in.Label.Given:
	case before == nil:
		r.LabelKey = key
	case before.LabelKey != key:
		return cannotChange("label")
	default:
		r.Label = before.Label
	}
	return nil
}

// setResultTimes sets the send time and the creation time of a new result, if its record leaves them out. The send time
// is that of sending or failing, and the creation time is the send time, if that is not in the future. Without any of
// these times it returns an error.
func setResultTimes(in *domain.ResultRecord, r *importedResult, now time.Time) error {
	switch {
	case in.SendAt.Given: // set already
	case r.SentAt != nil:
		r.SendAt = *r.SentAt
	case r.FailedAt != nil:
		r.SendAt = *r.FailedAt
	default:
		return errors.New("send_at is required unless sent_at or failed_at is set")
	}
	if !in.CreatedAt.Given {
		r.CreatedAt = r.SendAt
		if now.Before(r.CreatedAt) {
			r.CreatedAt = now
		}
	}
	return nil
}

// statusOf returns the status that follows from the times of a result.
func statusOf(r *domain.Result) domain.ResultStatus {
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

// checkResult returns an error if a result contradicts itself, if one of its times is in the future, or if it is
// scheduled for a time more than lateSend before at.
func checkResult(r *domain.Result, at time.Time) error {
	switch {
	case (r.FailedAt != nil) != (r.Failure != ""):
		return errors.New("failed_at and failure must be set together")
	case r.FailedAt != nil && r.SentAt != nil:
		return errors.New("failed_at and sent_at must not both be set")
	case r.ReportedAt != nil && !r.Reported:
		return errors.New("reported is false, but reported_at is set")
	case r.SentAt == nil && r.Reported:
		return errors.New("sent_at is required if the email was reported")
	case r.SentAt == nil && r.Automated:
		return errors.New("sent_at is required if automated_reason is set")
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
		case f.at == r.FailedAt: // a failed email was not sent
		case r.SentAt == nil:
			return fmt.Errorf("sent_at is required if %s is set", f.name)
		case f.at.Before(*r.SentAt):
			return fmt.Errorf("%s is before sent_at", f.name)
		}
	}
	if r.Status == domain.ResultScheduled && at.Sub(r.SendAt) > lateSend {
		return errors.New("send_at was more than 7 days ago; set sent_at, or failed_at and failure")
	}
	return nil
}

// checkProgress returns an error if a record would move the status back or undo a report (decisions 7.2).
func checkProgress(before, after *domain.Result) error {
	switch {
	case before.Status.Beyond(after.Status), // ResultFailed is beyond all others, but only a scheduled email can fail
		before.Status != after.Status && before.Status != domain.ResultScheduled && after.Status == domain.ResultFailed:
		return fmt.Errorf("the status cannot change back from %s to %s", before.Status, after.Status)
	case before.Reported && !after.Reported:
		return errors.New("reported cannot change from true to false")
	}
	return nil
}

// follow adds the effects of new and changed results to the change, and counts them by label and template. Events are
// only of changed results, of clients that are not archived. It puts the emails of scheduled results into the outbox,
// and deletes the emails of results that are no longer scheduled.
func (b *results) follow(ctx context.Context) error {
	if len(b.inserts)+len(b.updates) == 0 {
		return nil
	}
	updated := rowsAfter(b.updates)
	clients := pg.MapRows(updated, func(r *importedResult) domain.ClientID { return r.ClientID })
	archived, err := archivedClients(ctx, b.Change, clients)
	if err != nil {
		return err
	}

	var changes, waiting []db.ResultChange
	var unscheduled []domain.ResultID
	for _, a := range slices.Concat(b.inserts, b.updates) {
		r := db.ResultChange{Client: a.after.ClientID, Before: domain.OrZero(a.before).Result, After: a.after.Result}
		b.ResultChanged(&r, a.before == nil || archived[r.Client] /* no event */)
		changes = append(changes, r)
		switch {
		case r.After.Status == domain.ResultScheduled && r.After.SendAt != r.Before.SendAt:
			waiting = append(waiting, r)
		case r.Before.Status == domain.ResultScheduled && r.After.Status != domain.ResultScheduled:
			unscheduled = append(unscheduled, r.After.ID)
		}
	}
	err = pg.Run(ctx, b, "delete emails from the outbox", pg.SQL(
		"DELETE FROM outbox WHERE client_id = ANY(?::uuid[]) AND id = ANY(?::uuid[])", pg.IDs(clients), pg.IDs(unscheduled)))
	if err != nil {
		return err
	}
	if err := queueMails(ctx, b.Change, waiting); err != nil {
		return err
	}
	spellings, err := b.CountSends(ctx, changes)
	if err != nil {
		return err
	}
	return b.spellLabels(ctx, changes, spellings)
}

// spellLabels gives those of the changed results whose labels are spelled differently the spellings of the labels.
func (b *results) spellLabels(ctx context.Context, changes []db.ResultChange, spellings map[db.LabelOf]string) error {
	var clients, ids [][16]byte
	var labels []string
	for i := range changes {
		r := &changes[i]
		label, counted := spellings[db.LabelOf{Client: r.Client, Key: r.After.LabelKey}]
		if counted && label != r.After.Label {
			clients, ids, labels = append(clients, r.Client), append(ids, r.After.ID), append(labels, label)
		}
	}
	if len(ids) == 0 {
		return nil
	}
	return pg.Run(ctx, b, "spell labels", pg.SQL(`
		UPDATE phishing_results AS r SET label = l.label
		FROM unnest(?clients::uuid[], ?ids::uuid[], ?labels::text[]) AS l (client_id, id, label)
		WHERE r.client_id = l.client_id AND r.id = l.id`, pg.Named{"clients": clients, "ids": ids, "labels": labels}))
}

// queueMails puts the emails of results into the outbox, as not urgent (2), or updates the due times of those that are
// in it already, unless they are leased and so being sent.
func queueMails(ctx context.Context, c *db.Change, waiting []db.ResultChange) error {
	if len(waiting) == 0 {
		return nil
	}
	clients := pg.MapRows(waiting, func(r *db.ResultChange) domain.ClientID { return r.Client })
	ids := pg.MapRows(waiting, func(r *db.ResultChange) domain.ResultID { return r.After.ID })
	due := pg.MapRows(waiting, func(r *db.ResultChange) time.Time { return r.After.SendAt })
	return c.InsertOutbox(ctx, pg.SQL("") /* no WITH */, pg.SQL(`
		SELECT client_id, id, ?simulatedMail, 2 AS urgency, due_at FROM unnest(?clients::uuid[], ?ids::uuid[], ?due::timestamptz[]) AS r (client_id, id, due_at)
		ON CONFLICT (client_id, id) DO UPDATE SET due_at = excluded.due_at WHERE outbox.lease IS NULL`,
		pg.Named{"simulatedMail": db.SimulatedMail, "clients": pg.IDs(clients), "ids": pg.IDs(ids), "due": due}))
}

// extend selects the template.
func (b *results) extend(q *bun.SelectQuery) {
	q.ColumnExpr("t.own AS template_own, t.name AS template_name, t.language AS template_language").
		Join("JOIN phishing_templates AS t ON t.id = r.template_id")
}

// complete replaces an imported template by its name and language.
func (b *results) complete(r *importedResult, out *domain.ResultRecord) error {
	if !r.TemplateOwn {
		out.Template = domain.Optional[domain.Ref[domain.TemplateKind]]{}
		out.TemplateName = domain.Give(domain.TemplateName{Name: r.TemplateName, Language: r.TemplateLanguage})
	}
	return nil
}
