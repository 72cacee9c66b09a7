package move

import (
	"context"
	"testing"
	"time"

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
