//go:build slow

package webhook_test

import (
	"context"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"partnerapi/db"
	"partnerapi/db/outbox"
	"partnerapi/db/pg"
	"partnerapi/domain"
	"partnerapi/v2/v2test"
)

// TestPublishProperty: whatever transactions overlap, are rolled back or die, followers
// see each event of a committed change once, in one order that never changes, and miss
// none.
func TestPublishProperty(t *testing.T) {
	t.Parallel()
	h := v2test.New(t, v2test.Options{Limits: v2test.Unlimited})
	tenant := h.AddPartner("Partner")
	clients := make([]domain.ClientID, writers)
	for i := range clients {
		clients[i] = h.AddClient(tenant, "Client "+strconv.Itoa(i)).ID
	}
	h.Publish()

	made := make([][]string, writers)
	var writing, others sync.WaitGroup
	ctx, stop := context.WithCancel(tenant.Ctx)
	for range publishers {
		p := newPublisher(h, func() {})
		others.Go(func() { p.Run(ctx) })
		others.Go(func() { // one that dies in the middle of its work, again and again
			for ctx.Err() == nil {
				dying, die := context.WithCancel(ctx)
				_, _ = outbox.PublishEvents(dying, h.DB, 20, func(ctx context.Context, events []db.OutboxEvent) ([]string, error) {
					bodies, err := h.API.RenderEvents(ctx, events)
					die()
					return bodies, err
				})
				die()
			}
		})
	}
	for i := range writers {
		writing.Go(func() { made[i] = write(t, h, tenant, clients[i], i) })
	}
	seen := make([][]domain.EventID, 2)
	for i := range seen {
		others.Go(func() {
			for cursor := ""; ctx.Err() == nil; {
				ids, next, _ := follow(tenant.Ctx, h, cursor, 1+7*i)
				seen[i], cursor = append(seen[i], ids...), next
			}
		})
	}
	writing.Wait()
	stop()
	others.Wait()
	h.Publish()

	all, _, err := follow(tenant.Ctx, h, "", 500)
	if err != nil {
		t.Fatal(err)
	}
	created, err := pg.All[string](t.Context(), h.DB, "list created users",
		pg.SQL("SELECT body::json->'data'->>'id' FROM published_events WHERE type = 'user.created'"))
	slices.Sort(created)
	committed := slices.Sorted(slices.Values(slices.Concat(made...)))
	if err != nil || !slices.Equal(created, committed) {
		t.Errorf("the events are of the users %q, not of %q: %v", created, committed, err)
	}
	want := len(clients) + len(committed)
	if len(all) != want {
		t.Errorf("%d events, not %d", len(all), want)
	}
	for i, ids := range seen {
		if len(ids) > len(all) || !slices.Equal(ids, all[:len(ids)]) {
			t.Errorf("the follower %d saw %d events that are not the first ones, in their order", i, len(ids))
		}
	}
	if left := h.Number("SELECT count(*) FROM events"); left != 0 {
		t.Errorf("%d events are left", left)
	}
}

// TestClaimCost: a claim and its marks read little more than what they claim, however
// much waits, of one subscription or of many.
func TestClaimCost(t *testing.T) {
	t.Parallel()
	for _, of := range []struct{ webhooks, each int }{{1, 5000}, {5000, 1}} {
		w := newWorld(t)
		w.publish(of.each, w.webhooks(of.webhooks)...)
		w.Exec("ANALYZE webhooks, webhook_deliveries")
		var rows, claimed int
		err := w.Tx(t.Context(), func(ctx context.Context) error {
			claim, err := outbox.ClaimDeliveries(ctx, w.DB, outbox.NewDeliveryTurns(), 10, time.Minute, func(due []outbox.DueWebhook) (p []outbox.Places) {
				for _, d := range due {
					p = append(p, outbox.Places{Webhook: d.ID, N: 10 / len(due)})
				}
				return p
			})
			if err != nil {
				return err
			}
			var marks []outbox.DeliveryMark
			for _, l := range claim.Leases {
				try := domain.DeliveryTry{At: noon, StatusCode: 200}
				marks = append(marks, outbox.DeliveryMark{DeliveryLease: l, Try: &try, Status: domain.DeliverySucceeded, Due: noon})
			}
			done, err := outbox.MarkDeliveries(ctx, w.DB, marks)
			if err != nil {
				return err
			}
			claimed = len(done.Held)
			return w.Transaction(ctx).QueryRow(ctx, rowsRead).Scan(&rows)
		})
		if err != nil || claimed != 10 || rows < 10 || rows > 500 {
			t.Errorf("of %d subscriptions %d rows were read for %d deliveries: %v", of.webhooks, rows, claimed, err)
		}
	}
}
