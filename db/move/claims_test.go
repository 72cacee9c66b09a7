package move

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/uuid"

	"partnerapi/db"
	"partnerapi/db/dirsync"
	"partnerapi/db/outbox"
	"partnerapi/db/reports"
	"partnerapi/domain"
)

// queues are tables of work that waits. claim claims what is due of one, and returns the ids of
// the clients or subscriptions whose it is.
var queues = []struct {
	table, owners string
	claim         func(ctx context.Context, d *db.DB) (owners []string, err error)
}{
	{"outbox", "clients", func(ctx context.Context, d *db.DB) (clients []string, err error) {
		leases, err := outbox.ClaimMails(ctx, d, new(outbox.MailTurns), 1000, time.Minute)
		for _, l := range leases {
			clients = append(clients, l.Client.UUID())
		}
		return clients, err
	}},
	{"webhook_deliveries", "webhooks", func(ctx context.Context, d *db.DB) (webhooks []string, err error) {
		_, err = outbox.ClaimDeliveries(ctx, d, new(outbox.DeliveryTurns), 1000, time.Minute, func(due []outbox.DueWebhook) []outbox.Places {
			for _, d := range due {
				webhooks = append(webhooks, d.ID.UUID())
			}
			return nil
		})
		return webhooks, err
	}},
	{"reports", "clients", func(ctx context.Context, d *db.DB) (clients []string, err error) {
		leases, err := reports.ClaimReports(ctx, d, 1000, time.Minute)
		for _, l := range leases {
			clients = append(clients, l.Client.UUID())
		}
		return clients, err
	}},
	{"sync_runs", "clients", func(ctx context.Context, d *db.DB) (clients []string, err error) {
		run, err := dirsync.Claim(ctx, d, time.Minute)
		for ; run != nil && err == nil; run, err = dirsync.Claim(ctx, d, time.Minute) {
			clients = append(clients, run.Client.UUID())
		}
		return clients, err
	}},
}

// TestClaimsAreNumbered: a claim has its transaction's number before it looks at a queue,
// so that a freeze waits for one that saw none.
func TestClaimsAreNumbered(t *testing.T) {
	t.Parallel()
	for _, queue := range queues {
		t.Run(queue.table, func(t *testing.T) {
			t.Parallel()
			w := &world{t: t}
			d := open(t, emptySchema, domain.Cell{Number: 1, Count: 16})
			lock, err := d.SQL().BeginTx(t.Context(), nil)
			w.must(err)
			_, err = lock.ExecContext(t.Context(), "LOCK TABLE "+queue.table)
			w.must(err)
			claimed := make(chan error, 1)
			go func() {
				_, err := queue.claim(t.Context(), d)
				claimed <- err
			}()

			const waits = "FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
			for value[int](w, d, "SELECT count(*) "+waits) == 0 {
				w.must(domain.Pause(t.Context(), pollEvery))
			}
			if !value[bool](w, d, "SELECT backend_xid IS NOT NULL "+waits) {
				t.Errorf("a claim looks at %s before it has a number", queue.table)
			}
			w.must(lock.Rollback())
			w.must(<-claimed)
		})
	}
}

// TestWorkUnderWay: reports and sync runs of a partner that is handed over are due at once in
// the new cell, whoever has begun them. Who has a lease in the old cell has lost it when what
// the partner left is at rest.
func TestWorkUnderWay(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.queueWork()
	client, lease := w.clientOf(1), uuid.New()
	w.exec(w.From, "UPDATE reports SET tries = 1, lease = $2, due_at = now() + interval '1 hour' WHERE client_id = $1 AND status = 'pending'", client, lease)
	w.exec(w.From, "UPDATE sync_runs SET status = 'running', lease = $2, leased_until = now() + interval '1 hour' WHERE client_id = $1 AND status = 'queued'", client, lease)
	pending := value[int](w, w.From, "SELECT count(*) FROM reports AS r JOIN clients AS c ON c.id = r.client_id WHERE status = 'pending' AND partner_id = $1", w.Partner.UUID())
	w.must(w.Run(t.Context()))

	leases, err := reports.ClaimReports(t.Context(), w.To, 1000, time.Minute)
	w.must(err)
	if len(leases) != pending {
		t.Errorf("%d of %d pending reports are due in the new cell", len(leases), pending)
	}
	for _, l := range leases {
		if l.Client.UUID() == client && l.Tries != 1 {
			t.Errorf("a report that was under way has %d tries", l.Tries)
		}
	}
	found := false
	for run, err := dirsync.Claim(t.Context(), w.To, time.Minute); run != nil || err != nil; run, err = dirsync.Claim(t.Context(), w.To, time.Minute) {
		w.must(err)
		found = found || run.Client.UUID() == client && run.Deaths == 0
	}
	if !found {
		t.Error("a sync run that was under way is not due in the new cell")
	}

	id, err := domain.ParseUUID[domain.ReportKind](value[string](w, w.From, "SELECT id::text FROM reports WHERE lease = $1", lease))
	w.must(err)
	of, err := domain.ParseUUID[domain.ClientKind](client)
	w.must(err)
	_, err = Suspend(t.Context(), w.From, 0)
	w.must(err)
	held := reports.ReportLease{Client: of, Report: id, Token: lease}
	if status, err := reports.FinishReport(t.Context(), w.From, held, domain.ReportReady); !errors.Is(err, db.ErrLeaseLost) {
		t.Errorf("the old cell marks the report as %q, %v", status, err)
	}
}
