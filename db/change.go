package db

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"partnerapi/db/pg"
	"partnerapi/domain"
)

// What a change is, and the events and mails that it writes.

// Change is the unit of work of a transaction. A function that is given one
// writes its own rows with the methods that take it, and says with the methods
// below what follows from that: users to score again, counters to move, policies
// whose audience changed, events, mails. What follows is written when the function
// returns, set-based, in one fixed order, which is also the order in which all
// transactions lock rows: two of them wait for each other and cannot deadlock.
type Change struct {
	*DB
	// At is when the change takes place: the time of its events, and of
	// updated_at where it touches a row.
	At time.Time

	locked LockRank
	// audiences are the clients whose audiences are locked or shared.
	audiences map[domain.ClientID]bool
	users     userEffects
	userMoves userMoves
	counters  counters
	policies  []pg.Query
	events    []eventRow
	mails     []mailRecord
	noMail    bool
	last      []func(context.Context) error
}

// LockRank is the place of a kind of rows in the lock order.
type LockRank int

// The lock order: rows of a kind are locked in the order of their keys, and never
// after rows of a kind that stands below. Rows that the transaction itself made
// need no lock, and weak locks (KEY SHARE, SHARE) have no place in the order.
const (
	MessageLocks  LockRank = iota + 1 // advisory, of the Message-IDs of real mails
	AudienceLocks                     // advisory; see ShareAudiences
	SyncLocks                         // of sync_runs and directory_connections
	WaitingLocks                      // of waiting_assignments
	OutboxLocks
	ResultLocks
	UserLocks
	CollectionLocks
	PolicyLocks
	SignalLocks
	ReportedLocks
	ExposureLocks
	TemplateLocks
	ReportLocks
	DayLocks
	ClientLocks
	PartnerLocks
	WebhookLocks
)

// Lock notes that rows of a kind are about to be locked. Out of the lock order it
// is a programming error, which panics where the database was opened for tests.
func (c *Change) Lock(rank LockRank) {
	if c.strict && rank < c.locked {
		panic(fmt.Sprintf("rows of rank %d are locked after rows of rank %d", rank, c.locked))
	}
	c.locked = max(c.locked, rank)
}

// Change runs fn in a transaction and then writes what follows from it. Within an
// outer transaction it joins that one. See WithEntry for the audit trail.
func (d *DB) Change(ctx context.Context, fn func(context.Context, *Change) error) error {
	if owed, _ := ctx.Value(owedKey{}).(*owedEntry); owed != nil {
		return owed.write(ctx, d, fn)
	}
	return d.change(ctx, fn)
}

func (d *DB) change(ctx context.Context, fn func(context.Context, *Change) error) error {
	return d.Tx(ctx, func(ctx context.Context) error {
		c := &Change{DB: d, At: d.Now()}
		if err := fn(ctx, c); err != nil {
			return err
		}
		return c.flush(ctx)
	})
}

// Try runs fn as Change does and then rolls back what it did, whether it succeeds or
// not: also within an outer transaction, of which nothing else is lost.
func (d *DB) Try(ctx context.Context, fn func(context.Context, *Change) error) error {
	return d.DryRun(ctx, func(ctx context.Context) error { return d.Change(ctx, fn) })
}

// flush writes what follows from the change, in the lock order.
func (c *Change) flush(ctx context.Context) error {
	for _, step := range []func(context.Context) error{
		c.flushUserMoves,
		c.flushUsers,
		c.flushPolicies,
		c.flushCounters,
		c.flushEvents,
		c.flushMails,
	} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	for _, step := range c.last {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return nil
}

// Finally has fn run last in the transaction: for the mails of the change, and for
// reads of what it led to.
func (c *Change) Finally(fn func(context.Context) error) { c.last = append(c.last, fn) }

// policiesOf notes that the audiences changed of the policies, alias p, that a
// condition selects: what they count is stale.
func (c *Change) policiesOf(text string, args ...any) {
	c.policies = append(c.policies, pg.SQL(text, args...))
}

// flushPolicies marks the counts of the noted policies as stale. A count is made
// again by the next read, and not by every writer.
func (c *Change) flushPolicies(ctx context.Context) error {
	if len(c.policies) == 0 {
		return nil
	}
	c.Lock(PolicyLocks)
	chosen := pg.SQL("false")
	for _, condition := range c.policies {
		chosen = pg.SQL("? OR (?)", chosen, condition)
	}
	_, err := pg.Exec(ctx, c, "mark policies as changed", pg.SQL(`
		WITH chosen AS MATERIALIZED (
			SELECT p.client_id, p.id FROM policies AS p
			WHERE p.requires_acknowledgment AND p.archived_at IS NULL AND (?1)
			ORDER BY p.client_id, p.id FOR NO KEY UPDATE
		)
		UPDATE policies AS p SET updated_at = greatest(p.updated_at, ?0), counted_until = '-infinity'
		FROM chosen WHERE p.client_id = chosen.client_id AND p.id = chosen.id`, c.At, chosen))
	return err
}

// eventRow is an event as it is stored.
type eventRow struct {
	ClientID  string           `json:"client_id"`
	ID        string           `json:"id"`
	Type      domain.EventType `json:"type"`
	UserID    *string          `json:"user_id"`
	ObjectID  *string          `json:"object_id"`
	CreatedAt time.Time        `json:"created_at"`
}

// ClientEvent records that something happened to a client.
func (c *Change) ClientEvent(kind domain.EventType, client domain.ClientID) {
	c.event(kind, domain.UserKey{Client: client}, "")
}

// UserEvent records that something happened to a user.
func (c *Change) UserEvent(kind domain.EventType, user domain.UserKey) { c.event(kind, user, "") }

// ObjectEvent records that something happened to an object of a user, whose UUID
// it is given.
func (c *Change) ObjectEvent(kind domain.EventType, user domain.UserKey, object string) {
	c.event(kind, user, object)
}

// ClientObjectEvent records that something happened to an object of a client,
// whose UUID it is given.
func (c *Change) ClientObjectEvent(kind domain.EventType, client domain.ClientID, object string) {
	c.event(kind, domain.UserKey{Client: client}, object)
}

func (c *Change) event(kind domain.EventType, user domain.UserKey, object string) {
	row := eventRow{
		ClientID: user.Client.UUID(), ID: NewID[domain.EventKind]().UUID(), Type: kind, CreatedAt: c.At,
	}
	if !user.User.IsZero() {
		id := user.User.UUID()
		row.UserID = &id
	}
	if object != "" {
		row.ObjectID = &object
	}
	c.events = append(c.events, row)
}

// flushEvents writes the events of the change.
func (c *Change) flushEvents(ctx context.Context) error {
	if len(c.events) == 0 || c.silent {
		return nil
	}
	text, err := json.Marshal(c.events)
	if err != nil {
		return err
	}
	_, err = pg.Exec(ctx, c, "record events", pg.Prepared(pg.SQL(`
		INSERT INTO events (client_id, id, type, user_id, object_id, created_at)
		SELECT client_id, id, type, user_id, object_id, created_at
		FROM json_populate_recordset(NULL::events, ?::json)`, string(text))))
	if wake := c.onEvents.Load(); wake != nil && err == nil {
		c.AfterCommit(ctx, *wake)
	}
	return err
}

// OnEvents has wake called after the commit of each change of this process that wrote
// events: it must return at once. Other processes are not told; they look (outbox.EventsWait).
func (d *DB) OnEvents(wake func()) { d.onEvents.Store(&wake) }

// mailRecord is a mail that the service sends of itself (decisions 7.11), by the
// columns of mail_requests.
type mailRecord struct {
	ClientID   string             `json:"client_id"`
	ID         string             `json:"id"`
	Type       domain.MessageType `json:"type"`
	UserID     string             `json:"user_id,omitempty"`
	CourseID   string             `json:"course_id,omitempty"`
	Round      int                `json:"round,omitempty"`
	ResultID   string             `json:"result_id,omitempty"`
	BreachName string             `json:"breach_name,omitempty"`
	AdminID    string             `json:"admin_id,omitempty"`
	ReportID   string             `json:"report_id,omitempty"`
	CreatedAt  time.Time          `json:"created_at"`
	DueAt      time.Time          `json:"due_at"`
}

// NoMail has the change send no mail of the service's own: for a change that
// brings in history.
func (c *Change) NoMail() { c.noMail = true }

// mailCertificate asks for the certificate of a round of a course, which the user
// completed at a time.
func (c *Change) mailCertificate(user domain.UserKey, course domain.CourseID, round int, at time.Time) {
	c.mailUser(user, at, mailRecord{Type: domain.CertificateMail, CourseID: course.UUID(), Round: round, DueAt: c.At})
}

// mailReminder asks for the reminder of a simulated mail that the user fell for at
// a time.
func (c *Change) mailReminder(user domain.UserKey, result domain.ResultID, at time.Time) {
	c.mailUser(user, at, mailRecord{
		Type: domain.PhishReminder, ResultID: result.UUID(), DueAt: at.Add(domain.ReminderAfter),
	})
}

// mailNotice asks for the notice of an exposure of the user, which was found at a
// time.
func (c *Change) mailNotice(user domain.UserKey, breach string, at time.Time) {
	c.mailUser(user, at, mailRecord{Type: domain.ExposureNotice, BreachName: breach, DueAt: c.At})
}

// mailUser asks for a mail to a user about something that happened at a time.
func (c *Change) mailUser(user domain.UserKey, at time.Time, m mailRecord) {
	if c.At.Sub(at) > domain.MailCauseLife {
		return
	}
	m.ClientID, m.UserID = user.Client.UUID(), user.User.UUID()
	c.mail(m)
}

// MailReport asks for mails that bring a monthly report to admins of a client,
// which are sent where the client has them switched on by then. It is idempotent.
func (c *Change) MailReport(client domain.ClientID, report domain.ReportID, admins ...domain.AdminID) {
	for _, admin := range admins {
		c.mail(mailRecord{
			ClientID: client.UUID(), Type: domain.MonthlyReportMail, AdminID: admin.UUID(), ReportID: report.UUID(),
			DueAt: c.At,
		})
	}
}

func (c *Change) mail(m mailRecord) {
	m.ID, m.CreatedAt = NewID[domain.MessageKind]().UUID(), c.At
	c.mails = append(c.mails, m)
}

// flushMails puts the mails of the change into the outbox. A mail that was asked
// for before is not asked for again.
func (c *Change) flushMails(ctx context.Context) error {
	if len(c.mails) == 0 || c.noMail {
		return nil
	}
	// Two changes can ask for one report's mails: unique keys are entered in one order.
	slices.SortStableFunc(c.mails, func(a, b mailRecord) int {
		return cmp.Or(cmp.Compare(a.ReportID, b.ReportID), cmp.Compare(a.AdminID, b.AdminID))
	})
	text, err := json.Marshal(c.mails)
	if err != nil {
		return err
	}
	return c.insertOutbox(ctx, pg.SQL(`
		asked AS (
			INSERT INTO mail_requests (client_id, id, type, user_id, course_id, round, result_id, breach_name, admin_id,
				report_id, created_at, due_at)
			SELECT client_id, id, type, user_id, course_id, round, result_id, breach_name, admin_id,
				report_id, created_at, due_at
			FROM json_populate_recordset(NULL::mail_requests, ?::json)
			ON CONFLICT DO NOTHING RETURNING client_id, id, due_at
		),`, string(text)),
		pg.SQL("SELECT client_id, id, ?, 2, due_at FROM asked", RequestedMail))
}

// OutboxKind says which table a mail of the outbox is a row of.
type OutboxKind string

// The kinds: mail_requests and phishing_results.
const (
	RequestedMail OutboxKind = "mail"
	SimulatedMail OutboxKind = "simulation"
)

// OutboxChannel is what processes that send listen to.
const OutboxChannel = "outbox"

// SendMails puts mail requests of a client that the transaction wrote into the
// outbox. It takes one statement for any number of them.
func (c *Change) SendMails(ctx context.Context, client domain.ClientID, ids ...domain.MessageID) error {
	if len(ids) == 0 {
		return nil
	}
	return c.insertOutbox(ctx, pg.SQL(""), pg.SQL(`
		SELECT client_id, id, ?0, CASE WHEN type IN (?1, ?2) THEN 1 ELSE 2 END, ?3::timestamptz
		FROM mail_requests WHERE client_id = ?4 AND id = ANY(?5::uuid[])`,
		RequestedMail, domain.WelcomeMail, domain.AdminInviteMail, c.At, client, pg.IDs(ids)))
}

// sendSimulations puts scheduled simulated mails of a client into the outbox.
func (c *Change) sendSimulations(ctx context.Context, client domain.ClientID, results []domain.Result) error {
	ids, due := make([]domain.ResultID, len(results)), make([]time.Time, len(results))
	for i, r := range results {
		ids[i], due[i] = r.ID, r.SendAt
	}
	return c.insertOutbox(ctx, pg.SQL(""), pg.SQL(`
		SELECT ?0::uuid, id, ?1, 2, due_at FROM unnest(?2::uuid[], ?3::timestamptz[]) AS r (id, due_at)`,
		client, SimulatedMail, pg.IDs(ids), due))
}

// insertOutbox inserts rows, and tells those who send of them once the
// transaction commits. with is empty, or WITH queries that rows reads, each with a
// comma behind it.
func (c *Change) insertOutbox(ctx context.Context, with, rows pg.Query) error {
	_, err := pg.Exec(ctx, c, "put mails into the outbox", pg.SQL(`
		WITH ? added AS (INSERT INTO outbox (client_id, id, kind, urgency, due_at) ? RETURNING id)
		SELECT pg_notify(?, '') FROM added LIMIT 1`, with, rows, OutboxChannel))
	return err
}
