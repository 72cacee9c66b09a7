package db

import (
	"context"
	"errors"
	"time"

	"github.com/google/uuid"

	"partnerapi/db/pg"
	"partnerapi/domain"
)

// The outbox holds the mails that wait to be sent. A row is written in the
// transaction that asks for the mail, and deleted in the one that marks the mail
// as sent or failed. Nothing is locked between the two: who is to send a mail
// claims a lease on its row, hands the mail over without a transaction, and marks
// it if the lease is still theirs. A lease that ended is taken over by the next
// claim.

// OutboxKind says which table a mail of the outbox is a row of.
type OutboxKind string

// The kinds: mail_requests and phishing_results.
const (
	RequestedMail OutboxKind = "mail"
	SimulatedMail OutboxKind = "simulation"
)

// Lease is the right to send a mail of the outbox.
type Lease struct {
	Client domain.ClientID
	// ID is that of the mail request or of the simulated mail.
	ID   domain.MessageID
	Kind OutboxKind
	// Attempts is how many tries failed before.
	Attempts int

	token uuid.UUID
}

// Result is the id of the simulated mail.
func (l *Lease) Result() domain.ResultID { return domain.ResultID(l.ID) }

// ErrLeaseLost says that a lease ended, and the work is another's.
var ErrLeaseLost = errors.New("the lease has ended, and another process has taken the work over")

// outboxChannel is what processes that send listen to.
const outboxChannel = "outbox"

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
		SELECT pg_notify(?, '') FROM added LIMIT 1`, with, rows, outboxChannel))
	return err
}

// leaseRow is a leased row of the outbox.
type leaseRow struct {
	ClientID domain.ClientID
	ID       domain.MessageID
	Kind     OutboxKind
	Attempts int
}

// ClaimOutbox leases up to n mails that are due, for so long. It returns fewer
// where fewer are due, or others claim at the same time.
//
// Urgent mails come first. Among the others, and among the urgent ones, clients
// take turns: each client's first mail comes before any client's second, however
// many mails one of them has waiting. Clients whose mails are due later, or are
// leased, take no part of n. The cost follows the number of clients that have mails
// in the outbox and n, not the number of mails.
func (d *DB) ClaimOutbox(ctx context.Context, n int, life time.Duration) ([]Lease, error) {
	now, token := d.Now(), uuid.New()
	rows, err := pg.All[leaseRow](ctx, d, "claim mails", pg.SQL(`
		WITH RECURSIVE first AS (
			(SELECT client_id, urgency, due_at FROM outbox ORDER BY client_id, urgency, due_at LIMIT 1)
			UNION ALL
			SELECT o.client_id, o.urgency, o.due_at FROM first AS f CROSS JOIN LATERAL (
				SELECT client_id, urgency, due_at FROM outbox
				WHERE (client_id, urgency) > (f.client_id, f.urgency) ORDER BY client_id, urgency, due_at LIMIT 1
			) AS o
		), ready AS MATERIALIZED (
			SELECT client_id, urgency FROM first WHERE due_at <= ?0::timestamptz
		), due AS (
			SELECT r.client_id, o.id, r.urgency, o.due_at,
				row_number() OVER (PARTITION BY r.client_id, r.urgency ORDER BY o.due_at, o.id) AS turn
			FROM ready AS r CROSS JOIN LATERAL (
				SELECT id, due_at FROM outbox
				WHERE client_id = r.client_id AND urgency = r.urgency AND due_at <= ?0::timestamptz
				ORDER BY due_at LIMIT greatest(1, 2 * ?1::integer / (SELECT count(DISTINCT client_id) FROM ready)) FOR UPDATE SKIP LOCKED
			) AS o
		), chosen AS (
			SELECT client_id, id FROM due ORDER BY urgency, turn, due_at LIMIT ?1::integer
		)
		UPDATE outbox AS o SET lease = ?2::uuid, due_at = ?3::timestamptz FROM chosen
		WHERE o.client_id = chosen.client_id AND o.id = chosen.id
		RETURNING o.client_id, o.id, o.kind, o.attempts`, now, n, token, now.Add(life)))
	leases := make([]Lease, len(rows))
	for i, r := range rows {
		leases[i] = Lease{Client: r.ClientID, ID: r.ID, Kind: r.Kind, Attempts: r.Attempts, token: token}
	}
	return leases, err
}

// OutboxDue is when the next mail of the outbox is due, or the next lease ends;
// false where the outbox is empty.
func (d *DB) OutboxDue(ctx context.Context) (time.Time, bool, error) {
	due, err := pg.One[*time.Time](ctx, d, "look for the next mail", pg.SQL("SELECT min(due_at) FROM outbox"))
	return or(due, time.Time{}), due != nil, err
}

// Requeue gives a lease back: the mail is due again at a time. failed says that a
// try failed.
func (d *DB) Requeue(ctx context.Context, l Lease, at time.Time, failed bool) error {
	n, err := pg.Exec(ctx, d, "put a mail back", pg.SQL(`
		UPDATE outbox SET lease = NULL, scanned = NULL, due_at = ?3, attempts = attempts + ?4::integer
		WHERE client_id = ?0 AND id = ?1 AND lease = ?2`, l.Client, l.ID, l.token, at, number(failed)))
	return held(n, err)
}

func number(b bool) int {
	if b {
		return 1
	}
	return 0
}

// held is the error of a statement that needs the lease and changed n rows.
func held(n int, err error) error {
	if err == nil && n == 0 {
		err = ErrLeaseLost
	}
	return err
}

// NoteScan notes that something was done with a simulated mail while it was
// handed over, which only a mail scanner can have: if the mail is then marked as
// sent, it has the mark of one. It reports false where the mail is not being
// handed over.
func (d *DB) NoteScan(ctx context.Context, result domain.ResultID, how domain.AutomatedReason) (bool, error) {
	n, err := pg.Exec(ctx, d, "note a scan", pg.SQL(`
		UPDATE outbox SET scanned = coalesce(scanned, ?2)
		WHERE client_id = (SELECT client_id FROM phishing_results WHERE id = ?0) AND id = ?0
			AND lease IS NOT NULL AND due_at > ?1`, result, d.Now(), how))
	return n > 0, err
}

// ListenOutbox calls wake whenever mails were put into the outbox, and once when
// it begins to listen, until ctx ends or the connection fails (pg.DB.Listen).
func (d *DB) ListenOutbox(ctx context.Context, wake func()) error {
	return d.listenFor(ctx, outboxChannel, wake)
}

// listenSilence is how long a channel may be silent until its connection is checked.
const listenSilence = 10 * time.Second

func (d *DB) listenFor(ctx context.Context, channel string, wake func()) error {
	return d.Listen(ctx, channel, listenSilence, func(why pg.Heard) error {
		if why != pg.Silent {
			wake()
		}
		return nil
	})
}
