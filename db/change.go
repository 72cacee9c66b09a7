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
// events, emails. When the function returns, or calls Flush to read what they are, the change writes the effects,
// set-based, in one fixed order. All transactions lock rows in that order, so that they cannot deadlock.
type Change struct {
	*DB
	// At is the time of the change (Stamp): of its events, and of updated_at in the rows that it changes.
	At time.Time

	locked LockRank // the highest rank locked
	// audiences are the clients whose audiences the change has locked, exclusively or shared.
	audiences map[domain.ClientID]bool
	noMail    bool
	effects
}

// effects are the effects of a change that are not yet written.
type effects struct {
	users     userEffects
	userMoves userMoves
	counters  counters
	policies  []pg.Query
	events    []eventRow
	mails     []MailRequest
	unsent    map[domain.ClientID][]domain.MessageID // see SendMails
}

// LockRank is the rank of a kind of rows in the lock order: docs/adding.md lists them with the functions that lock.
type LockRank int

// The lock order: rows of a kind are locked in the order of their keys, and never after rows of a kind that is listed
// below. It does not apply to rows that the transaction inserted, nor to weak locks (KEY SHARE, SHARE).
const (
	MessageLocks  LockRank = iota + 1 // advisory, on the Message-IDs of real emails
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
	LabelLocks
	TemplateLocks
	ReportLocks
	DayLocks
	ClientLocks
	PartnerLocks
	WebhookLocks
	BrandLocks
)

// WillLock declares that rows of a kind are about to be locked; it locks nothing. With WithStrictLocks it panics if the
// change has locked rows of a higher rank, which is a programming error.
func (c *Change) WillLock(rank LockRank) {
	if c.strict && rank < c.locked {
		panic(fmt.Sprintf("rows of rank %d are locked after rows of rank %d (the ranks are in docs/adding.md)", rank, c.locked))
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
		return c.Flush(ctx)
	})
}

// changeTries bounds the attempts of RetryChange.
const changeTries = 5

// RetryChange runs fn by Change, at most changeTries times: again if PostgreSQL rolled back because of another
// transaction, or if the error is a unique violation or any Conflict. Within a transaction, each attempt has a
// savepoint.
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

// Flush writes the registered effects in the lock order. The change calls it when its function returns. A function
// whose result shows effects calls it itself, and then reads.
func (c *Change) Flush(ctx context.Context) error {
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
	c.effects = effects{}
	return nil
}

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

// MailRequest is the request of an email: a row of mail_requests as JSON. RequestMail sets the fields up to UserID. Of
// the optional ones below, a request has those that its kind requires (mail_requests_check).
type MailRequest struct {
	ClientID  string             `json:"client_id"`
	ID        string             `json:"id"`
	CreatedAt time.Time          `json:"created_at"`
	DueAt     time.Time          `json:"due_at"`
	UserID    string             `json:"user_id,omitempty"`
	Type      domain.MessageType `json:"type"`

	CourseID   string `json:"course_id,omitempty"`
	Round      int    `json:"round,omitempty"`
	ResultID   string `json:"result_id,omitempty"`
	BreachName string `json:"breach_name,omitempty"`
	InviteID   string `json:"invite_id,omitempty"`
	AdminID    string `json:"admin_id,omitempty"`
	ReportID   string `json:"report_id,omitempty"`
}

// NoMail makes the change request no emails with RequestMail: for an import of history.
func (c *Change) NoMail() { c.noMail = true }

// RequestMail requests an email to a user or, if user.User is zero, to an admin of the client, unless its cause is
// older than domain.MailCauseLife. It is due as its kind says. If it was requested before, and its kind is sent once,
// RequestMail has no effect.
func (c *Change) RequestMail(user domain.UserKey, causedAt time.Time, m MailRequest) {
	if c.At.Sub(causedAt) > domain.MailCauseLife {
		return
	}
	m.ClientID, m.ID, m.CreatedAt, m.DueAt = user.Client.UUID(), NewID[domain.MessageKind]().UUID(), c.At, c.At
	if after := m.Type.Kind().After; after > 0 {
		m.DueAt = causedAt.Add(after)
	}
	if !user.User.IsZero() {
		m.UserID = user.User.UUID()
	}
	c.mails = append(c.mails, m)
}

// SendMails sends emails of a client whose requests the transaction has inserted by its own statement.
func (c *Change) SendMails(client domain.ClientID, ids ...domain.MessageID) {
	if len(ids) > 0 {
		initMap(&c.unsent)[client] = append(c.unsent[client], ids...)
	}
}

// flushMails inserts the requests of RequestMail, except for those that an earlier change inserted, and puts their
// emails and those of SendMails into the outbox. After NoMail it ignores RequestMail.
func (c *Change) flushMails(ctx context.Context) error {
	mails := append([]MailRequest{}, c.mails...) // not null as JSON
	if c.noMail {
		mails = mails[:0]
	}
	if len(mails)+len(c.unsent) == 0 {
		return nil
	}
	// Two changes can request the emails of the same report. Inserting unique keys in one order avoids a deadlock.
	slices.SortStableFunc(mails, func(a, b MailRequest) int {
		return cmp.Or(cmp.Compare(a.ReportID, b.ReportID), cmp.Compare(a.AdminID, b.AdminID))
	})
	clients := sortedIDs(c.unsent)
	var ids []domain.MessageID
	for _, client := range clients {
		ids = append(ids, c.unsent[client]...)
	}
	return c.InsertOutbox(ctx, pg.SQL(`
		requested AS (
			INSERT INTO mail_requests (client_id, id, type, user_id, course_id, round, result_id, breach_name, invite_id,
				admin_id, report_id, created_at, due_at)
			SELECT client_id, id, type, user_id, course_id, round, result_id, breach_name, invite_id,
				admin_id, report_id, created_at, due_at
			FROM json_populate_recordset(NULL::mail_requests, ?::json)
			ON CONFLICT DO NOTHING RETURNING client_id, id, type, created_at, due_at
		),`, mails),
		pg.SQL(`
		SELECT client_id, id, ?kind, `+MailUrgency+` AS urgency, CASE WHEN due_at > created_at THEN due_at ELSE ?now END
		FROM (
			SELECT * FROM requested UNION ALL SELECT client_id, id, type, created_at, due_at FROM mail_requests
			WHERE client_id = ANY(?clients::uuid[]) AND id = ANY(?ids::uuid[])
		) AS r`, pg.Named{
			"kind": RequestedMail, "urgent": domain.UrgentMails, "now": c.Now(), "clients": pg.IDs(clients), "ids": pg.IDs(ids),
		}))
}

// MailUrgency is the expression of the urgency of an email request, alias r: 1 if its type is among ?urgent, which is
// domain.UrgentMails, otherwise 2.
const MailUrgency = "CASE WHEN r.type = ANY(?urgent::text[]) THEN 1 ELSE 2 END"

// OutboxKind is the kind of an email of the outbox. It determines the table that holds the email.
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

// InsertOutbox inserts the rows of a query into the outbox, and notifies senders at the commit. An email that is due
// immediately is due at Now: after a step of the clock back, the stamp of the change lies ahead. The urgency of a row
// is 1 if someone waits for the email, otherwise 2. with is empty, or holds WITH queries for rows, each followed by a
// comma.
func (c *Change) InsertOutbox(ctx context.Context, with, rows pg.Query) error {
	return pg.Run(ctx, c, "put emails into the outbox", pg.SQL(`
		WITH ?with added AS (INSERT INTO outbox (client_id, id, kind, urgency, due_at) ?rows RETURNING id)
		SELECT pg_notify(?outboxChannel, '') FROM added LIMIT 1`,
		pg.Named{"with": with, "rows": rows, "outboxChannel": OutboxChannel}))
}
