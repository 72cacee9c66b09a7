package records

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/uptrace/bun"

	"partnerapi/db"
	"partnerapi/db/pg"
	"partnerapi/domain"
)

// Imports and exports of results of simulations.

// lateSend is how long ago a mail that is still to be sent may have been due. One
// that waited longer is history that lacks its end.
const lateSend = domain.MailCauseLife

// importedResult is a result with its template's name, where that was imported.
type importedResult struct {
	bun.BaseModel `bun:"table:phishing_results,alias:r"`
	db.ResultRow

	TemplateOwn      bool            `bun:",scanonly"`
	TemplateName     string          `bun:",scanonly"`
	TemplateLanguage domain.Language `bun:",scanonly"`
}

// Results are simulated mails. Status and reports only move forward (decisions
// 7.2). A new result has its user scored and its mail counted, and it writes no event;
// one that is still to be sent goes out when it is due. A change of one that is there is
// an event. No mails of the service's own follow from either (decisions 7.11). An export
// has them user by user: an import scores each user once or twice then.
var Results Kind = &kind[domain.ResultRecord, importedResult]{
	object: "phishing_result", partner: ofPartner("r"), order: "r.client_id, r.user_id, r.sent_at, r.id",
	listed: func(q *pg.Select) {
		q.Columns("t.own AS template_own, t.name AS template_name, t.language AS template_language").
			Join("JOIN phishing_templates AS t ON t.id = r.template_id")
	},
	exported: func(r *importedResult, out *domain.ResultRecord) error {
		if !r.TemplateOwn {
			out.Template = domain.Optional[domain.Ref[domain.TemplateKind]]{}
			out.TemplateName = domain.Give(domain.TemplateName{Name: r.TemplateName, Language: r.TemplateLanguage})
		}
		return nil
	},
	begin:  beginResults,
	follow: followResults,
}

type (
	importingResults = recordBatch[domain.ResultRecord, importedResult]
	appliedResult    = recordChange[domain.ResultRecord, importedResult]
)

// beginResults locks what records of results name, archived clients' objects too: the
// mails of the outbox, the results, and their users.
func beginResults(ctx context.Context, b *importingResults) error {
	b.NoMail()
	rows, err := lockResults(ctx, b)
	if err != nil {
		return err
	}
	b.keep(rows)
	users := b.found.ids(domain.UserKind{}.Prefix())
	for i := range rows {
		users = append(users, rows[i].UserID)
	}
	if _, err := b.LockUserKeys(ctx, pg.SQL("u.id = ANY(?::uuid[])", users)); err != nil {
		return err
	}

	var names []domain.TemplateName
	for _, a := range b.list {
		if a.record.TemplateName.Given {
			names = append(names, a.record.TemplateName.Value)
		}
	}
	called, err := templatesCalled(ctx, b.Change, names)
	b.kind.finish = func(b *importingResults, a *appliedResult) error {
		if err := finishTemplate(a, called); err != nil {
			return err
		}
		return finishResult(b, a)
	}
	return err
}

// LockResults locks the results that are there, and their mails in the outbox, and returns
// them. Most are not there while a platform is first imported, which one look tells.
func lockResults(ctx context.Context, b *importingResults) ([]importedResult, error) {
	ids, err := pg.All[domain.ResultID](ctx, b, "look for results", pg.SQL(
		"SELECT id FROM phishing_results WHERE id = ANY(?::uuid[])", b.ids()))
	if err != nil || len(ids) == 0 {
		return nil, err
	}
	b.Lock(db.OutboxLocks)
	_, err = pg.Exec(ctx, b, "lock mails that wait", pg.SQL(`
		SELECT FROM outbox AS o JOIN phishing_results AS r ON r.client_id = o.client_id AND r.id = o.id
		WHERE r.id = ANY(?::uuid[]) ORDER BY o.client_id, o.id FOR UPDATE OF o`, pg.IDs(ids)))
	if err != nil {
		return nil, err
	}
	b.Lock(db.ResultLocks)
	return pg.All[importedResult](ctx, b, "lock results", pg.Rows[importedResult]().
		Where("r.id = ANY(?::uuid[])", pg.IDs(ids)).OrderBy("r.id").For("NO KEY UPDATE"))
}

// namedTemplate is a template with its name.
type namedTemplate struct {
	ID       domain.TemplateID
	Name     string
	Language domain.Language
}

// templatesCalled finds imported templates by their names and languages.
func templatesCalled(
	ctx context.Context, c *db.Change, list []domain.TemplateName,
) (map[domain.TemplateName]domain.TemplateID, error) {
	if len(list) == 0 {
		return nil, nil
	}
	names, languages := make([]string, len(list)), make([]string, len(list))
	for i, n := range list {
		names[i], languages[i] = n.Name, string(n.Language)
	}
	rows, err := pg.All[namedTemplate](ctx, c, "look for templates by name", pg.SQL(`
		SELECT id, name, language FROM phishing_templates
		WHERE NOT own AND (name, language) IN (SELECT * FROM unnest(?::text[], ?::text[]))`, names, languages))
	return pg.Index(rows, func(t *namedTemplate) (domain.TemplateName, domain.TemplateID) {
		return domain.TemplateName{Name: t.Name, Language: t.Language}, t.ID
	}), err
}

// finishTemplate sets the template that a record names.
func finishTemplate(a *appliedResult, called map[domain.TemplateName]domain.TemplateID) error {
	if in := a.record.TemplateName; in.Given {
		template, found := called[in.Value]
		switch {
		case !found:
			return fmt.Errorf("template_name: there is no imported template %q in %s%s",
				in.Value.Name, in.Value.Language, importFirst)
		case a.before != nil && template != a.before.TemplateID:
			return cannotChange("template")
		}
		a.after.TemplateID = template
	}
	if a.after.TemplateID.IsZero() {
		return missing("template")
	}
	return nil
}

// finishResult sets what follows from the times of a record, and refuses what cannot be.
func finishResult(b *importingResults, a *appliedResult) error {
	in, r := a.record, a.after
	if a.before != nil && a.before.SentAt != nil && in.SentAt.Given && !r.SentAt.Equal(*a.before.SentAt) {
		return cannotChange("sent_at")
	}
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
		if err := beginResult(in, r, b.At); err != nil {
			return err
		}
	}

	now := r.Result()
	r.Status = reached(&now)
	now.Status = r.Status
	if err := consistent(&now, b.At); err != nil || a.before == nil {
		return err
	}
	before := a.before.Result()
	return movesBack(&before, &now)
}

// beginResult sets when a new result was to be sent and was asked for, where its record
// does not say it.
func beginResult(in *domain.ResultRecord, r *importedResult, now time.Time) error {
	switch {
	case in.SendAt.Given:
	case r.SentAt != nil:
		r.SendAt = *r.SentAt
	case r.FailedAt != nil:
		r.SendAt = *r.FailedAt
	default:
		return errors.New("send_at is required, or sent_at or failed_at")
	}
	if !in.CreatedAt.Given {
		r.CreatedAt = r.SendAt
		if now.Before(r.CreatedAt) {
			r.CreatedAt = now
		}
	}
	return nil
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

// followResults does what follows from results of locked users: those that are to be sent
// wait in the outbox, and those that no longer are leave it.
func followResults(ctx context.Context, b *importingResults) error {
	if len(b.made)+len(b.changed) == 0 {
		return nil
	}
	made, changed := resultChanges(b.made), resultChanges(b.changed)
	clients := pg.MapRows(changed, func(r *db.ResultChange) domain.ClientID { return r.Client })
	archived, err := archivedClients(ctx, b.Change, clients)
	if err != nil {
		return err
	}

	var waiting []db.ResultChange
	var settled []domain.ResultID
	for _, r := range made {
		b.ResultChanged(&r, true)
		if r.After.Status == domain.ResultScheduled {
			waiting = append(waiting, r)
		}
	}
	for _, r := range changed {
		b.ResultChanged(&r, archived[r.Client])
		switch {
		case r.After.Status == domain.ResultScheduled && r.After.SendAt != r.Before.SendAt:
			waiting = append(waiting, r)
		case r.Before.Status == domain.ResultScheduled && r.After.Status != domain.ResultScheduled:
			settled = append(settled, r.After.ID)
		}
	}
	_, err = pg.Exec(ctx, b, "take mails out of the outbox", pg.SQL(
		"DELETE FROM outbox WHERE client_id = ANY(?::uuid[]) AND id = ANY(?::uuid[])", pg.IDs(clients), pg.IDs(settled)))
	if err != nil {
		return err
	}
	if err := awaitResults(ctx, b.Change, waiting); err != nil {
		return err
	}
	return b.CountTemplateUses(ctx, append(made, changed...))
}

// resultChanges are the results of records, before and after them.
func resultChanges(list []*appliedResult) []db.ResultChange {
	return pg.MapRows(list, func(a **appliedResult) db.ResultChange {
		before := pg.Or((*a).before, importedResult{})
		return db.ResultChange{Client: (*a).after.ClientID, Before: before.Result(), After: (*a).after.Result()}
	})
}

// awaitResults has mails sent when they are due, also those that are in the outbox
// already. One that is being handed over goes out.
func awaitResults(ctx context.Context, c *db.Change, waiting []db.ResultChange) error {
	if len(waiting) == 0 {
		return nil
	}
	clients := pg.MapRows(waiting, func(r *db.ResultChange) domain.ClientID { return r.Client })
	ids := pg.MapRows(waiting, func(r *db.ResultChange) domain.ResultID { return r.After.ID })
	due := pg.MapRows(waiting, func(r *db.ResultChange) time.Time { return r.After.SendAt })
	return c.InsertOutbox(ctx, pg.SQL(""), pg.SQL(`
		SELECT client_id, id, ?0, 2, due_at FROM unnest(?1::uuid[], ?2::uuid[], ?3::timestamptz[]) AS r (client_id, id, due_at)
		ON CONFLICT (client_id, id) DO UPDATE SET due_at = excluded.due_at WHERE outbox.lease IS NULL`,
		db.SimulatedMail, pg.IDs(clients), pg.IDs(ids), due))
}
