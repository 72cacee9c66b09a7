package db

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"partnerapi/db/pg"
	"partnerapi/domain"
)

// Change is the unit of work of a transaction. A function that gets a Change writes its own rows, and registers their
// effects with the methods below: users whose risk is recomputed, counters to adjust, policies whose audience changed,
// events, mails. When the function returns, the change writes the effects, set-based, in one fixed order. All
// transactions lock rows in that order, so that they cannot deadlock.
type Change struct {
	*DB
	// At is the time of the change (Stamp): of its events, and of updated_at in the rows that it changes.
	At time.Time

	locked LockRank // the highest rank locked
	// audiences are the clients whose audiences the change has locked, exclusively or shared.
	audiences map[domain.ClientID]bool
	users     userEffects
	userMoves userMoves
	counters  counters
	policies  []pg.Query
	events    []eventRow
	mails     []mailRecord
	noMail    bool
	last      []func(context.Context) error // see Finally
}

// LockRank is the rank of a kind of rows in the lock order.
type LockRank int

// The lock order: rows of a kind are locked in the order of their keys, and never after rows of a kind that is listed
// below. It does not apply to rows that the transaction inserted, nor to weak locks (KEY SHARE, SHARE).
const (
	MessageLocks  LockRank = iota + 1 // advisory, on the Message-IDs of real mails
	AudienceLocks                     // advisory; see LockAudiencesShared
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

// WillLock declares that rows of a kind are about to be locked; it locks nothing. With WithStrictLocks it panics if the
// change has locked rows of a higher rank, which is a programming error.
func (c *Change) WillLock(rank LockRank) {
	if c.strict && rank < c.locked {
		panic(fmt.Sprintf("rows of rank %d are locked after rows of rank %d", rank, c.locked))
	}
	c.locked = max(c.locked, rank)
}

// Change runs fn in a transaction, that of ctx if it has one, and then writes the effects of the change. If ctx has an
// entry of the audit trail (WithEntry) that is not yet written, Change also writes that.
func (d *DB) Change(ctx context.Context, fn func(context.Context, *Change) error) error {
	if pending, _ := ctx.Value(entryKey{}).(*pendingEntry); pending != nil {
		return pending.change(ctx, d, fn)
	}
	return d.change(ctx, fn)
}

// change runs fn with a new Change in a transaction, and then writes its effects, without an entry of the audit trail.
func (d *DB) change(ctx context.Context, fn func(context.Context, *Change) error) error {
	return d.Stamped(ctx, func(ctx context.Context, at time.Time) error {
		c := &Change{DB: d, At: at}
		if err := fn(ctx, c); err != nil {
			return err
		}
		return c.flush(ctx)
	})
}

// changeTries bounds the attempts of RetryChange.
const changeTries = 5

// RetryChange runs fn by Change, at most changeTries times: again if PostgreSQL rolled back because of another
// transaction, or if the error is a unique violation or any Conflict. Within a transaction, each try has a savepoint.
func (d *DB) RetryChange(ctx context.Context, fn func(context.Context, *Change) error) (err error) {
	for range changeTries {
		err = d.Savepoint(ctx, func(ctx context.Context) error { return d.Change(ctx, fn) })
		if !pg.Retryable(err) && !pg.UniqueViolation(err) && !domain.IsCode(err, domain.Conflict) {
			break
		}
	}
	return err
}

// TryAll runs fn in one transaction and rolls it back. Changes within fn lock no audiences: one transaction would hold
// the locks of too many clients.
func (d *DB) TryAll(ctx context.Context, fn func(context.Context) error) error {
	return d.DryRun(ctx, func(ctx context.Context) error { return fn(context.WithValue(ctx, tryAllKey{}, true)) })
}

type tryAllKey struct{}

// flush writes the effects of the change, in the lock order, and then calls the functions of Finally.
func (c *Change) flush(ctx context.Context) error {
	for _, step := range append([]func(context.Context) error{
		c.flushUserMoves,
		c.flushUsers,
		c.flushPolicies,
		c.flushCounters,
		c.flushEvents,
		c.flushMails,
	}, c.last...) {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return nil
}

// Finally registers fn to run in the transaction after the effects are written. fn may read them, or send mails.
func (c *Change) Finally(fn func(context.Context) error) { c.last = append(c.last, fn) }

// PoliciesChanged registers policies, alias p, that match a condition: their audiences changed, and so their counts.
func (c *Change) PoliciesChanged(text string, args ...any) {
	c.policies = append(c.policies, pg.SQL(text, args...))
}

// flushPolicies marks the counts of the registered policies as stale, so that the next read counts them again, and sets
// updated_at. It leaves out policies without counts: archived ones, and those without acknowledgment.
func (c *Change) flushPolicies(ctx context.Context) error {
	if len(c.policies) == 0 {
		return nil
	}
	c.WillLock(PolicyLocks)
	changed := pg.SQL("false")
	for _, condition := range c.policies {
		changed = pg.SQL("? OR (?)", changed, condition)
	}
	return pg.Run(ctx, c, "mark policies as changed", pg.SQL(`
		WITH chosen AS MATERIALIZED (
			SELECT p.client_id, p.id FROM policies AS p
			WHERE p.requires_acknowledgment AND p.archived_at IS NULL AND (?1)
			ORDER BY p.client_id, p.id FOR NO KEY UPDATE
		)
		UPDATE policies AS p SET updated_at = greatest(p.updated_at, ?0), counted_until = '-infinity'
		FROM chosen WHERE p.client_id = chosen.client_id AND p.id = chosen.id`, c.At, changed))
}

// eventRow is a row of events as JSON.
type eventRow struct {
	ClientID  string           `json:"client_id"`
	ID        string           `json:"id"`
	Type      domain.EventType `json:"type"`
	UserID    *string          `json:"user_id"`
	ObjectID  *string          `json:"object_id"`
	CreatedAt time.Time        `json:"created_at"`
}

// ClientEvent records an event of a client.
func (c *Change) ClientEvent(kind domain.EventType, client domain.ClientID) {
	c.ObjectEvent(kind, domain.UserKey{Client: client}, "")
}

// UserEvent records an event of a user.
func (c *Change) UserEvent(kind domain.EventType, user domain.UserKey) { c.ObjectEvent(kind, user, "") }

// ClientObjectEvent records an event of a client's object, by its UUID.
func (c *Change) ClientObjectEvent(kind domain.EventType, client domain.ClientID, object string) {
	c.ObjectEvent(kind, domain.UserKey{Client: client}, object)
}

// ObjectEvent records an event of a user's object, by the object's UUID. If object is "", the event is one of the user.
// If user.User is zero, it is one of the client or of a client's object.
func (c *Change) ObjectEvent(kind domain.EventType, user domain.UserKey, object string) {
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

// flushEvents inserts the events of the change, and calls the function of OnEvents after the commit.
func (c *Change) flushEvents(ctx context.Context) error {
	if len(c.events) == 0 {
		return nil
	}
	err := pg.Run(ctx, c, "record events", pg.Prepared(pg.SQL(`
		INSERT INTO events (client_id, id, type, user_id, object_id, created_at)
		SELECT client_id, id, type, user_id, object_id, created_at
		FROM json_populate_recordset(NULL::events, ?::json)`, c.events)))
	if wake := c.onEvents.Load(); err == nil && wake != nil {
		c.AfterCommit(ctx, *wake)
	}
	return err
}

// OnEvents sets the function that is called after each commit of this process that wrote events. wake must not block.
// Other processes find the events by polling (outbox.EventsWait).
func (d *DB) OnEvents(wake func()) { d.onEvents.Store(&wake) }

// mailRecord is a row of mail_requests for one of the service's own mails, which no caller requests (decisions 7.11).
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

// NoMail makes the change request no mails: for an import of history.
func (c *Change) NoMail() { c.noMail = true }

// MailCertificate requests the certificate of a round of a course, unless completed is too long ago (MailCauseLife).
func (c *Change) MailCertificate(user domain.UserKey, course domain.CourseID, round int, completed time.Time) {
	c.mailUser(user, completed, mailRecord{
		Type: domain.CertificateMail, CourseID: course.UUID(), Round: round, DueAt: c.At,
	})
}

// MailExposureNotice requests the notice of a user's exposure, unless found is too long ago (MailCauseLife).
func (c *Change) MailExposureNotice(user domain.UserKey, breach string, found time.Time) {
	c.mailUser(user, found, mailRecord{Type: domain.ExposureNotice, BreachName: breach, DueAt: c.At})
}

// mailUser requests a mail to a user, unless its cause is older than domain.MailCauseLife.
func (c *Change) mailUser(user domain.UserKey, causedAt time.Time, m mailRecord) {
	if c.At.Sub(causedAt) > domain.MailCauseLife {
		return
	}
	m.ClientID, m.UserID = user.Client.UUID(), user.User.UUID()
	c.mail(m)
}

// MailReport requests a mail about a monthly report to each of the admins of a client. Requesting one again has no
// effect. The mails are sent only if the client has mails about reports switched on.
func (c *Change) MailReport(client domain.ClientID, report domain.ReportID, admins ...domain.AdminID) {
	for _, admin := range admins {
		c.mail(mailRecord{
			ClientID: client.UUID(), Type: domain.MonthlyReportMail, AdminID: admin.UUID(), ReportID: report.UUID(),
			DueAt: c.At,
		})
	}
}

// mail requests the mail m with a new ID, and with the time of the change as its CreatedAt.
func (c *Change) mail(m mailRecord) {
	m.ID, m.CreatedAt = NewID[domain.MessageKind]().UUID(), c.At
	c.mails = append(c.mails, m)
}

// flushMails inserts the requested mails and puts them into the outbox, except for those that an earlier change
// requested. Their urgency is 2, as nobody waits for them. After NoMail it does nothing.
func (c *Change) flushMails(ctx context.Context) error {
	if len(c.mails) == 0 || c.noMail {
		return nil
	}
	// Two changes can request the mails of the same report. Inserting unique keys in one order avoids a deadlock.
	slices.SortStableFunc(c.mails, func(a, b mailRecord) int {
		return cmp.Or(cmp.Compare(a.ReportID, b.ReportID), cmp.Compare(a.AdminID, b.AdminID))
	})
	return c.InsertOutbox(ctx, pg.SQL(`
		requested AS (
			INSERT INTO mail_requests (client_id, id, type, user_id, course_id, round, result_id, breach_name, admin_id,
				report_id, created_at, due_at)
			SELECT client_id, id, type, user_id, course_id, round, result_id, breach_name, admin_id,
				report_id, created_at, due_at
			FROM json_populate_recordset(NULL::mail_requests, ?::json)
			ON CONFLICT DO NOTHING RETURNING client_id, id, created_at, due_at
		),`, c.mails),
		pg.SQL("SELECT client_id, id, ?, 2 AS urgency, CASE WHEN due_at > created_at THEN due_at ELSE ? END FROM requested",
			RequestedMail, c.Now()))
}

// OutboxKind is the kind of a mail of the outbox. It determines the table that holds the mail.
type OutboxKind string

// The tables of the kinds are mail_requests, phishing_results and partner_mails. The client_id of a PartnerMail is the
// id of its partner.
const (
	RequestedMail OutboxKind = "mail"
	SimulatedMail OutboxKind = "simulation"
	PartnerMail   OutboxKind = "partner"
)

// OutboxChannel is the channel that sending processes listen to.
const OutboxChannel = "outbox"

// SendMails puts a client's mail requests of this transaction into the outbox, with urgency 1 if somebody waits, or 2.
func (c *Change) SendMails(ctx context.Context, client domain.ClientID, ids ...domain.MessageID) error {
	if len(ids) == 0 {
		return nil
	}
	return c.InsertOutbox(ctx, pg.SQL("" /* with */), pg.SQL(`
		SELECT client_id, id, ?requestedMail,
			CASE WHEN type IN (?welcomeMail, ?adminInviteMail) THEN 1 ELSE 2 END AS urgency, ?now::timestamptz
		FROM mail_requests WHERE client_id = ?client AND id = ANY(?ids::uuid[])`,
		pg.Named{
			"requestedMail": RequestedMail, "welcomeMail": domain.WelcomeMail,
			"adminInviteMail": domain.AdminInviteMail, "now": c.Now(), "client": client, "ids": pg.IDs(ids),
		}))
}

// InsertOutbox inserts the rows of a query into the outbox, and notifies senders at the commit. A mail that is due
// immediately is due at Now: after a step of the clock back, the stamp of the change lies ahead. The urgency of a row is
// 1 if somebody waits for the mail, else 2. with is empty, or holds WITH queries for rows, each followed by a comma.
func (c *Change) InsertOutbox(ctx context.Context, with, rows pg.Query) error {
	return pg.Run(ctx, c, "put mails into the outbox", pg.SQL(`
		WITH ? added AS (INSERT INTO outbox (client_id, id, kind, urgency, due_at) ? RETURNING id)
		SELECT pg_notify(?, '') FROM added LIMIT 1`, with, rows, OutboxChannel))
}
