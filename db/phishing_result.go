package db

import (
	"context"
	"slices"
	"time"

	"github.com/uptrace/bun"

	"partnerapi/db/pg"
	"partnerapi/domain"
)

// Results of simulated emails: reads and steps.

// ResultRow is a row of phishing_results.
type ResultRow struct {
	bun.BaseModel `bun:"table:phishing_results,alias:r"`

	ClientID domain.ClientID `bun:",pk"`
	domain.Result
}

func (r *ResultRow) result() domain.Result { return r.Result }

// Results reads a page of the client's results in the filter's order.
func (t *Tenant) Results(
	ctx context.Context, f domain.ResultFilter, w domain.Window,
) (domain.Slice[domain.Result], error) {
	k := resultList(t.ID, f.Order())
	k.Desc = f.Sort.Descending()
	pg.AddIf(&k.Where, "r.user_id = ?", f.User)
	pg.AddIf(&k.Where, "r.id = ?", f.Result)
	switch len(f.Statuses) {
	case 0: // any status
	case 1: // an equality, so that PostgreSQL can use the order of an index
		k.Where.Add("r.status = ?", f.Statuses[0])
	default:
		k.Where.Add("r.status = ANY(?::text[])", f.Statuses)
	}
	pg.AddIf(&k.Where, "r.label_key = ?", f.LabelKey)
	pg.AddIf(&k.Where, "r.sent_at >= ?", f.Since)
	pg.AddIf(&k.Where, "r.sent_at < ?", f.Until)
	delta, err := pg.DeltaOf(ctx, t.db.DB, f.UpdatedSince, &w)
	if err != nil {
		return domain.Slice[domain.Result]{}, err
	}
	k.Where.Changed(delta, "r.updated_at")
	rows, err := pg.CountedPage(ctx, t.db, k, w)
	return pg.Map(rows, (*ResultRow).result), err
}

// resultList returns the list of a client's results in an order. With BySending the caller must add a condition that
// excludes results that were not sent.
func resultList(client domain.ClientID, order domain.ResultOrder) pg.Keyset[ResultRow] {
	k := pg.ByTime("r."+string(order), "r.id", func(r *ResultRow) (time.Time, domain.ResultID) {
		switch order {
		case domain.BySending:
			return *r.SentAt, r.ID
		case domain.ByChange:
			return r.UpdatedAt, r.ID
		case domain.BySchedule:
			return r.SendAt, r.ID
		}
		return r.CreatedAt, r.ID
	})
	k.Where = pg.Conditions{pg.SQL("r.client_id = ?", client)}
	return k
}

// phishingSpan holds the counts of simulated emails in a span of days.
type phishingSpan struct {
	domain.PhishingCounts
	RepeatClickers int
}

// FellFor is the condition that the user fell for the simulated email of a result, alias r (domain.Result.FellAt).
const FellFor = "(r.clicked_at IS NOT NULL OR r.credentials_submitted_at IS NOT NULL OR r.attachment_opened_at IS NOT NULL)"

// sumCounts are the columns of domain.PhishingCounts, summed up over rows of phishing_days or phishing_label_days, alias p.
const sumCounts = `coalesce(sum(p.sent), 0) AS sent, coalesce(sum(p.opened), 0) AS opened, coalesce(sum(p.clicked), 0) AS clicked,
	coalesce(sum(p.reported), 0) AS reported, coalesce(sum(p.credentials_submitted), 0) AS credentials_submitted,
	coalesce(sum(p.attachments_opened), 0) AS attachments_opened`

// PhishingSummary counts the client's simulated emails, and the users who fell for two or more in the last 365 days. If
// label is not nil, it counts only emails whose label has this key.
func (t *Tenant) PhishingSummary(ctx context.Context, label *string) (domain.PhishingSummary, error) {
	days, ofLabel := "phishing_days AS p", pg.SQL("")
	counted := pg.SQL("p.client_id = ?", t.ID)
	if label != nil {
		days, ofLabel = "phishing_label_days AS p", pg.SQL("AND label_key = ?", *label)
		counted = pg.SQL("? AND p.label_key = ?", counted, *label)
	}
	// One row for each span of days; NULL means all time. repeat_clickers is the same in each row.
	spans, err := pg.All[phishingSpan](ctx, t.db, "count simulated emails", pg.SQL(`
		SELECT `+sumCounts+`,
			(SELECT count(*) FROM (
				SELECT user_id FROM phishing_results AS r
				WHERE client_id = ?client ?ofLabel AND sent_at >= (?today::date - 364)::timestamptz AND `+FellFor+`
				GROUP BY user_id HAVING count(*) > 1
			) AS repeated) AS repeat_clickers
		FROM (VALUES (30), (90), (365), (NULL)) AS span (days)
		LEFT JOIN `+days+` ON ?counted AND (span.days IS NULL OR p.day > ?today::date - span.days)
		GROUP BY span.days ORDER BY span.days NULLS LAST`, pg.Named{
		"client": t.ID, "ofLabel": ofLabel, "counted": counted, "today": domain.DateOf(t.db.Now()),
	}))
	if err != nil {
		return domain.PhishingSummary{}, err
	}
	return domain.PhishingSummary{
		Days30: spans[0].PhishingCounts, Days90: spans[1].PhishingCounts, Days365: spans[2].PhishingCounts,
		Total: spans[3].PhishingCounts, RepeatClickers: spans[0].RepeatClickers,
	}, nil
}

// AdvanceResults applies steps to simulated emails in a transaction. It is for the public tracking links, so it checks
// no caller's access. It returns Unavailable if a client is suspended because its partner is being moved.
func (d *DB) AdvanceResults(ctx context.Context, steps []domain.ResultStep) error {
	return d.Change(ctx, func(ctx context.Context, c *Change) error {
		rows, err := c.LockResults(ctx, steps)
		if err != nil {
			return err
		}
		clients := pg.MapRows(rows, func(r *ResultRow) domain.ClientID { return r.ClientID })
		if err := c.RejectSuspended(ctx, clients); err != nil {
			return err
		}
		return c.AdvanceResults(ctx, rows, steps)
	})
}

// LockResults locks and returns the results of steps, in the order of their ids, but no results of archived clients.
func (c *Change) LockResults(ctx context.Context, steps []domain.ResultStep) ([]ResultRow, error) {
	if len(steps) == 0 {
		return nil, nil
	}
	ids := pg.MapRows(steps, func(s *domain.ResultStep) domain.ResultID { return s.Result })
	c.WillLock(ResultLocks)
	return pg.All[ResultRow](ctx, c, "lock results", pg.Rows[ResultRow]().Apply(pg.Where("r.id = ANY(?::uuid[])", pg.IDs(ids))).
		Where("EXISTS (SELECT 1 FROM clients AS c WHERE c.id = r.client_id AND c.archived_at IS NULL)").
		OrderExpr("r.id").For("NO KEY UPDATE OF r"))
}

// AdvanceResults applies steps to locked results in the order of their times (domain.Result.Advance), stores the
// results, and adds the effects to the change: counters by day of sending, scores, events, and reminders to users who
// fell for an email. It ignores steps of other results. It takes one statement for any number of steps.
func (c *Change) AdvanceResults(ctx context.Context, rows []ResultRow, steps []domain.ResultStep) error {
	changes := applySteps(steps, rows)
	if len(changes) == 0 {
		return nil
	}
	for i := range changes {
		r := &changes[i]
		c.ResultChanged(r, false /* silent */)
		if at := r.After.FellAt(); at != nil && r.Before.FellAt() == nil {
			user := domain.UserKey{Client: r.Client, User: r.After.User}
			c.RequestMail(user, *at, MailRequest{Type: domain.PhishReminder, ResultID: r.After.ID.UUID()})
		}
	}
	return c.storeResults(ctx, changes)
}

// ResultChanged adds the effects of a new or changed result to the change. If a person's actions changed, it adds an
// event, unless silent is true. If the email was sent, it adds the counters of the day of sending and the user's score.
func (c *Change) ResultChanged(r *ResultChange, silent bool) {
	user := domain.UserKey{Client: r.Client, User: r.After.User}
	if r.byPerson() && !silent {
		c.ObjectEvent(domain.ResultUpdated, user, r.After.ID.UUID())
	}
	if r.After.SentAt == nil {
		return
	}
	c.CountMails(r.Client, r.After.LabelKey, domain.DateOf(*r.After.SentAt), r.After.Counts().Minus(r.Before.Counts()))
	if r.scored() {
		c.Rescore(user)
	}
}

// ResultChange is a result before and after its steps.
type ResultChange struct {
	Client        domain.ClientID
	Before, After domain.Result
}

// CancelledResultChange returns the change by which a client's scheduled result became r, the cancelled result.
func CancelledResultChange(client domain.ClientID, r domain.Result) ResultChange {
	before := r
	before.Status, before.FailedAt, before.Failure = domain.ResultScheduled, nil, ""
	return ResultChange{Client: client, Before: before, After: r}
}

// uses returns the change in the number of uses of the result's template, and of sends of its label: 1, 0 or -1. A cancelled result is no use, nor
// is the zero Result, which is Before of a new one.
func (r *ResultChange) uses() int {
	used := func(r *domain.Result) int { return pg.Number(!r.ID.IsZero() && !r.Cancelled()) }
	return used(&r.After) - used(&r.Before)
}

// cancellations returns the change in the number of cancelled emails: 1, 0 or -1.
func (r *ResultChange) cancellations() int {
	return pg.Number(r.After.Cancelled()) - pg.Number(r.Before.Cancelled())
}

// byPerson reports whether the recorded actions of a person changed, which makes an event. Sending, failing and being
// marked as automated make none (decisions 8.1). A pointer to a time is replaced only if the time changes.
func (r *ResultChange) byPerson() bool {
	b, a := &r.Before, &r.After
	return b.OpenedAt != a.OpenedAt || b.AttachmentOpenedAt != a.AttachmentOpenedAt || b.ClickedAt != a.ClickedAt ||
		b.CredentialsSubmittedAt != a.CredentialsSubmittedAt || b.Reported != a.Reported || b.ReportedAt != a.ReportedAt
}

// scored reports whether the change affects a score. Opening an email and actions of mail scanners do not, and the
// status follows from the times.
func (r *ResultChange) scored() bool {
	before := r.Before
	before.Status, before.OpenedAt = r.After.Status, r.After.OpenedAt
	before.Automated, before.AutomatedReason = r.After.Automated, r.After.AutomatedReason
	return before != r.After
}

// applySteps applies steps to the results in rows, in the order of their times, and returns the results that changed.
func applySteps(steps []domain.ResultStep, rows []ResultRow) []ResultChange {
	results := make(map[domain.ResultID]*ResultChange, len(rows))
	for i := range rows {
		r := rows[i].Result
		results[r.ID] = &ResultChange{Client: rows[i].ClientID, Before: r, After: r}
	}
	ordered := slices.Clone(steps)
	slices.SortStableFunc(ordered, func(a, b domain.ResultStep) int { return a.At.Compare(b.At) })
	for _, s := range ordered {
		if r := results[s.Result]; r != nil {
			s.At = s.At.UTC().Truncate(time.Microsecond) // the precision of PostgreSQL
			r.After, _ = r.After.Advance(s)              // After stays the same if the step has no effect
		}
	}
	var changes []ResultChange
	for i := range rows { // in the lock order
		if r := results[rows[i].ID]; r.After != r.Before {
			changes = append(changes, *r)
		}
	}
	return changes
}

// stepColumns are the columns of a result that steps change.
var stepColumns = []string{
	"status", "reported", "automated", "automated_reason", "opened_at", "attachment_opened_at", "clicked_at",
	"credentials_submitted_at", "reported_at", "updated_at",
}

// storeResults stores the stepColumns of locked results.
func (c *Change) storeResults(ctx context.Context, changes []ResultChange) error {
	rows := pg.MapRows(changes, func(r *ResultChange) ResultRow {
		row := ResultRow{ClientID: r.Client, Result: r.After}
		row.UpdatedAt = domain.Later(row.UpdatedAt, c.At)
		return row
	})
	return pg.UpdateRows(ctx, c, "store results", rows, stepColumns...)
}
