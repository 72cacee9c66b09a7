package db

import (
	"context"
	"slices"
	"time"

	"github.com/uptrace/bun"

	"partnerapi/db/pg"
	"partnerapi/domain"
)

// Results of simulated mails: reads, and the steps that they advance by.

type resultRow struct {
	bun.BaseModel `bun:"table:phishing_results,alias:r"`

	ClientID               domain.ClientID `bun:"client_id,pk"`
	ID                     domain.ResultID `bun:"id,pk"`
	UserID                 domain.UserID
	TemplateID             domain.TemplateID
	Status                 domain.ResultStatus
	Reported               bool
	Automated              bool
	AutomatedReason        *domain.AutomatedReason
	SendAt                 time.Time
	SentAt                 *time.Time
	OpenedAt               *time.Time
	AttachmentOpenedAt     *time.Time
	ClickedAt              *time.Time
	CredentialsSubmittedAt *time.Time
	ReportedAt             *time.Time
	FailedAt               *time.Time
	Failure                *string
	CreatedAt              time.Time
	UpdatedAt              time.Time
}

func (r *resultRow) result() domain.Result {
	return domain.Result{
		ID: r.ID, User: r.UserID, Template: r.TemplateID, Status: r.Status, Reported: r.Reported,
		Automated: r.Automated, AutomatedReason: pg.Or(r.AutomatedReason, ""),
		SendAt: r.SendAt, SentAt: r.SentAt, OpenedAt: r.OpenedAt, AttachmentOpenedAt: r.AttachmentOpenedAt,
		ClickedAt: r.ClickedAt, CredentialsSubmittedAt: r.CredentialsSubmittedAt, ReportedAt: r.ReportedAt,
		FailedAt: r.FailedAt, Failure: pg.Or(r.Failure, ""), CreatedAt: r.CreatedAt, UpdatedAt: r.UpdatedAt,
	}
}

// Results reads a page of the client's results in the filter's order.
func (t *Tenant) Results(
	ctx context.Context, f domain.ResultFilter, w domain.Window,
) (domain.Slice[domain.Result], error) {
	k := resultList(t.ID, f.Order())
	if f.User != nil {
		k.Where.Add("r.user_id = ?", *f.User)
	}
	if f.Result != nil {
		k.Where.Add("r.id = ?", *f.Result)
	}
	switch len(f.Statuses) {
	case 0:
	case 1: // in the order of an index
		k.Where.Add("r.status = ?", f.Statuses[0])
	default:
		k.Where.Add("r.status = ANY(?::text[])", f.Statuses)
	}
	if f.Since != nil {
		k.Where.Add("r.sent_at >= ?", *f.Since)
	}
	if f.Until != nil {
		k.Where.Add("r.sent_at < ?", *f.Until)
	}
	if f.UpdatedSince != nil {
		k.Where.Add("r.updated_at >= ?", *f.UpdatedSince)
	}
	rows, err := pg.CountedPage(ctx, t.db, k, w)
	return pg.Map(rows, (*resultRow).result), err
}

// resultList is the list of a client's results in an order. One by sending has
// to leave out what was not sent.
func resultList(client domain.ClientID, order domain.ResultOrder) pg.Keyset[resultRow] {
	return pg.Keyset[resultRow]{
		Table: "phishing_results AS r", Key: "r." + string(order), Cast: "timestamptz", ID: "r.id",
		Where: pg.Conditions{pg.SQL("r.client_id = ?", client)},
		Position: func(r *resultRow) domain.Position {
			at := r.CreatedAt
			switch order {
			case domain.BySending:
				at = *r.SentAt
			case domain.ByChange:
				at = r.UpdatedAt
			}
			return domain.Position{Key: pg.TimeKey(at), ID: r.ID.UUID()}
		},
	}
}

// phishingSpan are the counts of simulated mails in a span of days.
type phishingSpan struct {
	domain.PhishingCounts
	RepeatClickers int
}

// PhishingSummary counts the client's simulated mails, in one statement.
func (t *Tenant) PhishingSummary(ctx context.Context) (domain.PhishingSummary, error) {
	// One row for each span of days; null is for ever.
	spans, err := pg.All[phishingSpan](ctx, t.db, "count simulated mails", pg.SQL(`
		SELECT coalesce(sum(p.sent), 0) AS sent, coalesce(sum(p.opened), 0) AS opened, coalesce(sum(p.clicked), 0) AS clicked,
			coalesce(sum(p.reported), 0) AS reported, coalesce(sum(p.credentials_submitted), 0) AS credentials_submitted,
			coalesce(sum(p.attachments_opened), 0) AS attachments_opened,
			(SELECT count(*) FROM (
				SELECT user_id FROM phishing_results
				WHERE client_id = ?0 AND sent_at >= (?1::date - 364)::timestamptz
				AND (clicked_at IS NOT NULL OR credentials_submitted_at IS NOT NULL OR attachment_opened_at IS NOT NULL)
				GROUP BY user_id HAVING count(*) > 1
			) AS repeated) AS repeat_clickers
		FROM (VALUES (30), (90), (365), (NULL)) AS span (days)
		LEFT JOIN phishing_days AS p ON p.client_id = ?0 AND (span.days IS NULL OR p.day > ?1::date - span.days)
		GROUP BY span.days ORDER BY span.days NULLS LAST`, t.ID, domain.DateOf(t.db.Now())))
	if err != nil {
		return domain.PhishingSummary{}, err
	}
	return domain.PhishingSummary{
		Days30: spans[0].PhishingCounts, Days90: spans[1].PhishingCounts, Days365: spans[2].PhishingCounts,
		Total: spans[3].PhishingCounts, RepeatClickers: spans[0].RepeatClickers,
	}, nil
}

// AdvanceResults applies steps to simulated mails in a transaction of its own.
// It is for the tracked links, which have no caller.
func (d *DB) AdvanceResults(ctx context.Context, steps []domain.ResultStep) error {
	return d.Change(ctx, func(ctx context.Context, c *Change) error {
		rows, err := c.lockResults(ctx, steps)
		if err != nil {
			return err
		}
		clients := make([]domain.ClientID, len(rows))
		for i := range rows {
			clients[i] = rows[i].ClientID
		}
		if err := c.refuseResting(ctx, clients); err != nil {
			return err
		}
		return c.advanceResults(ctx, rows, steps)
	})
}

// lockResults locks the results of steps in the order of their ids. Those of
// archived clients are left out.
func (c *Change) lockResults(ctx context.Context, steps []domain.ResultStep) ([]resultRow, error) {
	if len(steps) == 0 {
		return nil, nil
	}
	ids := make([]domain.ResultID, len(steps))
	for i, s := range steps {
		ids[i] = s.Result
	}
	c.Lock(ResultLocks)
	return pg.All[resultRow](ctx, c, "lock results", pg.From("phishing_results AS r").Columns(pg.Columns[resultRow]()).
		Where("r.id = ANY(?::uuid[])", pg.IDs(ids)).
		Where("EXISTS (SELECT 1 FROM clients AS c WHERE c.id = r.client_id AND c.archived_at IS NULL)").
		OrderBy("r.id").For("NO KEY UPDATE OF r"))
}

// advanceResults applies steps to locked results (domain.Result.Take), in the
// order of their times, and notes what follows: the counters of the days on which
// the mails were sent, the scores of their users, the events, and the reminders of
// those who fell for one. Steps with other results are left out. It takes one
// statement for any number of steps.
func (c *Change) advanceResults(ctx context.Context, rows []resultRow, steps []domain.ResultStep) error {
	changes := applySteps(steps, rows)
	if len(changes) == 0 {
		return nil
	}
	for i := range changes {
		r := &changes[i]
		c.resultMoved(r, false)
		if at := r.after.FellAt(); at != nil && r.before.FellAt() == nil {
			c.mailReminder(domain.UserKey{Client: r.client, User: r.after.User}, r.after.ID, *at)
		}
	}
	return c.storeResults(ctx, changes)
}

// resultMoved notes what follows from a result that is new or changed: the counters of the
// day on which its mail was sent, which stays, the score of its user and, unless silent,
// the event.
func (c *Change) resultMoved(r *resultChange, silent bool) {
	user := domain.UserKey{Client: r.client, User: r.after.User}
	if r.byPerson() && !silent {
		c.ObjectEvent(domain.ResultUpdated, user, r.after.ID.UUID())
	}
	if r.after.SentAt == nil {
		return
	}
	c.CountMails(r.client, domain.DateOf(*r.after.SentAt), r.after.Counts().Minus(r.before.Counts()))
	if r.scored() {
		c.Rescore(user)
	}
}

// resultChange is a result before and after its steps.
type resultChange struct {
	client        domain.ClientID
	before, after domain.Result
}

// byPerson reports whether something changed of what a person did with the mail, which
// is an event; its sending, its failing and the mark of a scanner are none (decisions
// 8.1, 8.2).
func (r *resultChange) byPerson() bool {
	b, a := &r.before, &r.after
	return b.OpenedAt != a.OpenedAt || b.AttachmentOpenedAt != a.AttachmentOpenedAt || b.ClickedAt != a.ClickedAt ||
		b.CredentialsSubmittedAt != a.CredentialsSubmittedAt || b.Reported != a.Reported || b.ReportedAt != a.ReportedAt
}

// scored reports whether a score depends on the change: not on who opens only,
// nor on a scanner.
func (r *resultChange) scored() bool {
	before := r.before
	before.Status, before.OpenedAt = r.after.Status, r.after.OpenedAt
	before.Automated, before.AutomatedReason = r.after.Automated, r.after.AutomatedReason
	return before != r.after
}

// applySteps applies the steps to locked results, and returns those that changed.
func applySteps(steps []domain.ResultStep, rows []resultRow) []resultChange {
	results := make(map[domain.ResultID]*resultChange, len(rows))
	for i := range rows {
		r := rows[i].result()
		results[r.ID] = &resultChange{client: rows[i].ClientID, before: r, after: r}
	}
	ordered := slices.Clone(steps)
	slices.SortStableFunc(ordered, func(a, b domain.ResultStep) int { return a.At.Compare(b.At) })
	for _, s := range ordered {
		if r := results[s.Result]; r != nil {
			s.At = s.At.UTC().Truncate(time.Microsecond) // as it is stored
			r.after, _ = r.after.Take(s)
		}
	}
	var changes []resultChange
	for i := range rows { // in the order of the lock
		if r := results[rows[i].ID]; r.after != r.before {
			changes = append(changes, *r)
		}
	}
	return changes
}

// stepColumns are the columns of a result that steps move.
var stepColumns = []string{
	"status", "reported", "automated", "automated_reason", "opened_at", "attachment_opened_at", "clicked_at",
	"credentials_submitted_at", "reported_at", "updated_at",
}

// storeResults stores locked results.
func (c *Change) storeResults(ctx context.Context, changes []resultChange) error {
	rows := make([]resultRow, len(changes))
	for i := range changes {
		r := &changes[i].after
		rows[i] = resultRow{
			ClientID: changes[i].client, ID: r.ID, Status: r.Status, Reported: r.Reported, Automated: r.Automated,
			OpenedAt: r.OpenedAt, AttachmentOpenedAt: r.AttachmentOpenedAt, ClickedAt: r.ClickedAt,
			CredentialsSubmittedAt: r.CredentialsSubmittedAt, ReportedAt: r.ReportedAt, UpdatedAt: latest(r.UpdatedAt, c.At),
		}
		if r.Automated {
			rows[i].AutomatedReason = &r.AutomatedReason
		}
	}
	return pg.UpdateRows(ctx, c, "store results", rows, stepColumns...)
}
