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
// and nothing is told of it; one that is still to be sent goes out when it is due. A
// change of one that is there is an event. No mails of the service's own follow from
// either (decisions 7.11). It takes the same number of statements for any number of
// records, and must not be called in a transaction.
func (d *DB) ImportResults(ctx context.Context, batch []domain.ResultRecord) ([]domain.ImportResult, error) {
	return importBatch(ctx, d, batch, (*Change).importResults)
}

// resultAfter is a result after a record, or why that is refused. at is the time of
// the import.
func resultAfter(r domain.Result, in *domain.ResultRecord, isNew bool, at time.Time) (domain.Result, error) {
	for _, f := range []struct {
		from domain.Field[domain.Moment]
		to   **time.Time
	}{
		{in.SentAt, &r.SentAt}, {in.OpenedAt, &r.OpenedAt}, {in.AttachmentOpenedAt, &r.AttachmentOpenedAt},
		{in.ClickedAt, &r.ClickedAt}, {in.CredentialsSubmittedAt, &r.CredentialsSubmittedAt},
		{in.ReportedAt, &r.ReportedAt}, {in.FailedAt, &r.FailedAt},
	} {
		applyMoment(f.to, f.from)
	}
	if in.Failure.Given {
		r.Failure = in.Failure.Value
	}
	if in.AutomatedReason.Given {
		r.AutomatedReason = in.AutomatedReason.Value
		r.Automated = r.AutomatedReason != ""
	}
	switch {
	case in.Reported.Has():
		r.Reported = in.Reported.Value
	case r.ReportedAt != nil:
		r.Reported = true
	}
	if r.Reported && r.ReportedAt == nil {
		r.ReportedAt = r.SentAt // scores count reports by their times
	}

	switch {
	case in.SendAt.Has():
		moveTime(&r.SendAt, in.SendAt.Value.Time)
	case isNew && r.SentAt != nil:
		r.SendAt = *r.SentAt
	case isNew && r.FailedAt != nil:
		r.SendAt = *r.FailedAt
	case isNew:
		return r, errors.New("send_at is missing, as are sent_at and failed_at")
	}
	switch {
	case in.CreatedAt.Has():
		moveTime(&r.CreatedAt, in.CreatedAt.Value.Time)
	case isNew:
		r.CreatedAt = r.SendAt
		if at.Before(r.CreatedAt) {
			r.CreatedAt = at
		}
	}
	r.Status = reached(&r)
	return r, consistent(&r, at)
}

// applyMoment sets a time to that of a field that is given. An equal one keeps its
// pointer, so that objects can be compared.
func applyMoment(to **time.Time, from domain.Field[domain.Moment]) {
	switch {
	case !from.Given:
	case from.Null:
		*to = nil
	case *to == nil || !(*to).Equal(from.Value.Time):
		*to = &from.Value.Time
	}
}

// moveTime sets a time, unless it is the same one.
func moveTime(to *time.Time, at time.Time) {
	if !at.Equal(*to) {
		*to = at
	}
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

// importedResult is a result that a record names.
type importedResult struct {
	resultChange
	isNew bool
}

func (c *Change) importResults(
	ctx context.Context, batch []domain.ResultRecord, results []domain.ImportResult,
) error {
	c.NoMail()
	known, err := c.lockForResults(ctx, batch)
	if err != nil {
		return err
	}
	var added, changed []resultChange
	for i := range batch {
		r, refusal := known.after(&batch[i], c.At)
		if r == nil {
			results[i] = refusal
			continue
		}
		results[i].Outcome = outcomeOf(r.isNew, r.before != r.after)
		switch results[i].Outcome {
		case domain.ImportCreated:
			added = append(added, r.resultChange)
		case domain.ImportUpdated:
			changed = append(changed, r.resultChange)
		}
	}
	if err := c.addResults(ctx, added); err != nil {
		return err
	}
	return c.changeResults(ctx, changed)
}

// namedByResults are the objects that records of results name.
type namedByResults struct {
	results   map[domain.ResultID]*importedResult
	users     map[domain.UserID]domain.ClientID
	templates map[domain.TemplateID]bool
	called    map[domain.TemplateName]domain.TemplateID
}

// after is the result that a record names, as it leaves it; nil where the record is
// refused.
func (n *namedByResults) after(in *domain.ResultRecord, at time.Time) (*importedResult, domain.ImportResult) {
	r := n.results[in.ID.ID]
	template, err := n.template(in)
	switch {
	case err != nil:
		return nil, refused(err)
	case r != nil && in.User.Has() && in.User.Value.ID != r.before.User:
		return nil, cannotChange("user")
	case r != nil && !template.IsZero() && template != r.before.Template:
		return nil, cannotChange("template")
	case r != nil && r.before.SentAt != nil && in.SentAt.Has() && !in.SentAt.Value.Equal(*r.before.SentAt):
		return nil, cannotChange("sent_at")
	case r == nil && in.Missing != "":
		return nil, missing(in.Missing)
	case r == nil && template.IsZero():
		return nil, missing("template")
	case r == nil:
		user := in.User.Value.ID
		client, found := n.users[user]
		if !found {
			return nil, noSuch("user", user.Noun())
		}
		r = &importedResult{isNew: true, resultChange: resultChange{
			client: client, after: domain.Result{ID: in.ID.ID, User: user, Template: template},
		}}
	}

	if r.after, err = resultAfter(r.after, in, r.isNew, at); err == nil && !r.isNew {
		err = movesBack(&r.before, &r.after)
	}
	if err != nil {
		return nil, refused(err)
	}
	return r, domain.ImportResult{}
}

func refused(err error) domain.ImportResult { return domain.RefuseImport("%s", err) }

// template is the template that a record names; zero where it names none.
func (n *namedByResults) template(in *domain.ResultRecord) (id domain.TemplateID, err error) {
	const first = "; import the templates first: partnerapi templates import"
	if called := in.TemplateName.Value; in.TemplateName.Has() {
		id, found := n.called[called]
		if !found {
			err = fmt.Errorf("template_name: there is no imported template %q in %s%s", called.Name, called.Language, first)
		}
		return id, err
	}
	if id = in.Template.Value.ID; in.Template.Has() && !n.templates[id] {
		err = errors.New("template: " + domain.NoSuchObject(id.Noun()) + first)
	}
	return id, err
}
