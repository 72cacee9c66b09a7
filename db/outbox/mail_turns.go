package outbox

import (
	"context"
	"time"

	"github.com/google/uuid"

	"partnerapi/db"
	"partnerapi/db/pg"
	"partnerapi/domain"
)

// MailTurns is the position from which the next claim of a process continues: after the client that was served last,
// for urgent emails and for the others. The zero value begins with the first client. It is not safe for concurrent use.
type MailTurns struct{ urgent, other domain.ClientID }

// NewMailTurns returns a position at a random id, so that processes begin with different clients.
func NewMailTurns() *MailTurns {
	at := domain.ClientID(uuid.New())
	return &MailTurns{at, at}
}

// turnSteps is the number of clients that a claim of n emails may read in addition to n, before it searches for the
// emails that have waited longest.
const turnSteps = 32

// mailTurn is a client that a claim read, for emails of an urgency.
type mailTurn struct {
	Urgency int
	Client  domain.ClientID `bun:"client_id"`
	// Due reports whether emails of the client are due.
	Due bool
	// Step is the number of clients read up to this one, or 0 if the client was found by the age of its emails.
	Step int
}

// key returns the urgency and the client only, to compare turns.
func (t mailTurn) key() mailTurn { return mailTurn{Urgency: t.Urgency, Client: t.Client} }

// nextTurns reads, for each urgency, the next clients after turns, each with one search of an index, until n clients
// have due emails or all were read. If it reads n+turnSteps clients before that, because many emails are due later or
// leased, it adds the clients of the n emails that have waited longest. It returns the clients with due emails, and the
// last one read.
func nextTurns(ctx context.Context, d *db.DB, turns *MailTurns, n int, now time.Time) ([]mailTurn, error) {
	return pg.All[mailTurn](ctx, d, "find clients with emails", pg.SQL(`
		WITH suspended AS MATERIALIZED (`+db.SuspendedSenders+`), walked AS MATERIALIZED (
			SELECT u.urgency, w.* FROM (VALUES (1::smallint, ?urgent::uuid), (2::smallint, ?other::uuid)) AS u (urgency, after)
			CROSS JOIN LATERAL (
				WITH RECURSIVE walk (client_id, due, step, found, wrapped) AS (
					SELECT u.after, false, 0, 0, false
					UNION ALL
					SELECT o.client_id, o.due, w.step + 1, w.found + o.due::integer, o.wrapped FROM walk AS w CROSS JOIN LATERAL (
						SELECT f.client_id, f.wrapped,
							f.due_at <= ?now::timestamptz AND f.client_id NOT IN (TABLE suspended) AS due
						FROM `+nextInTurn("outbox", "client_id", "o.urgency = u.urgency", "u.after")+`
					) AS o WHERE w.step < ?steps::integer AND w.found < ?n::integer
				)
				SELECT client_id, due, step, found FROM walk WHERE step > 0
			) AS w
		)
		(SELECT urgency, client_id, due, step FROM walked AS w
			WHERE due OR step = (SELECT max(step) FROM walked WHERE urgency = w.urgency) ORDER BY urgency, step)
		UNION ALL
		(SELECT urgency, client_id, true, 0 FROM outbox
			WHERE due_at <= ?now::timestamptz AND client_id NOT IN (TABLE suspended)
				AND EXISTS (SELECT FROM walked WHERE step = ?steps::integer AND found < ?n::integer)
			ORDER BY due_at LIMIT ?n::integer)`, pg.Named{
		"urgent": turns.urgent, "other": turns.other, "now": now, "steps": n + turnSteps, "n": n,
	}))
}

// advance moves the position past the clients visited. If the claim was full (n emails), it stops for each urgency
// before the first client with due emails that got none.
func (t *MailTurns) advance(visited []mailTurn, claimed []claimedMail, n int) {
	served := map[mailTurn]bool{}
	for _, c := range claimed {
		served[mailTurn{Urgency: c.Urgency, Client: c.Client}] = true
	}
	stopped := map[int]bool{}
	for _, w := range visited {
		stopped[w.Urgency] = stopped[w.Urgency] || w.Due && len(claimed) == n && !served[w.key()]
		switch {
		case w.Step == 0 || stopped[w.Urgency]: // found by age, or after the stop: not part of the position
		case w.Urgency == 1: // urgent
			t.urgent = w.Client
		default:
			t.other = w.Client
		}
	}
}
