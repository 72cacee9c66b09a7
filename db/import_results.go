package db

import (
	"context"
	"errors"
	"fmt"
	"time"

	"partnerapi/domain"
)

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
	case before != nil && before.SentAt != nil && r.SentAt.Has() && !r.SentAt.Value.Equal(*before.SentAt):
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
	r.Automated = r.Automated && !in.AutomatedReason.Given || in.AutomatedReason.Has()
	if r.Failure != nil && *r.Failure == "" {
		r.Failure = nil
	}
	if !in.Reported.Has() && r.ReportedAt != nil {
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
	case in.SendAt.Has():
	case r.SentAt != nil:
		r.SendAt = *r.SentAt
	case r.FailedAt != nil:
		r.SendAt = *r.FailedAt
	default:
		return errors.New("send_at is missing, as are sent_at and failed_at")
	}
	if !in.CreatedAt.Has() {
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
	if called := in.TemplateName.Value; in.TemplateName.Has() {
		id, found := m.called[called]
		if !found {
			err = fmt.Errorf("template_name: there is no imported template %q in %s%s", called.Name, called.Language, first)
		}
		return id, err
	}
	if id = in.Template.Value.ID; in.Template.Has() && !m.templates[id] {
		err = errors.New("template: " + domain.NoSuchObject(id.Noun()) + first)
	}
	return id, err
}
