package outbox_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"partnerapi/db"
	"partnerapi/db/outbox"
	"partnerapi/domain"
)

// schedule schedules n simulated mails to a user, due now.
func (w *world) schedule(client domain.ClientID, user domain.UserID, n int) []domain.ResultID {
	w.T.Helper()
	template := domain.TemplateID{15: 1}
	w.Add("phishing_templates", row{"id": template})
	results, ids := make([]domain.Result, n), make([]domain.ResultID, n)
	for i := range n {
		ids[i] = db.NewID[domain.ResultKind]()
		results[i] = domain.Result{ID: ids[i], User: user, Template: template, SendAt: w.Clock.Now()}
	}
	w.Must(w.ChangeOf(w.T.Context(), client, func(ctx context.Context, c *db.Change, t *db.Tenant) error {
		return t.ScheduleResults(ctx, c, results)
	}))
	return ids
}

// cancel cancels sends, and returns how many results are cancelled.
func (w *world) cancel(client domain.ClientID, ids ...domain.ResultID) (n int) {
	w.T.Helper()
	w.Must(w.ChangeOf(w.T.Context(), client, func(ctx context.Context, c *db.Change, t *db.Tenant) error {
		results, err := outbox.CancelSends(ctx, c, t, ids)
		for _, r := range results {
			if r.Cancelled() {
				n++
			}
		}
		return err
	}))
	return n
}

// TestCancelSendsInDoubt: a mail is not cancelled while it is being handed over, nor after it may have been.
func TestCancelSendsInDoubt(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	client := w.AddClient()
	user := w.AddUser(client, domain.RoleStandard, 500)
	requeue := func(q outbox.Requeue) {
		t.Helper()
		q.At = w.Clock.Now()
		w.Must(outbox.RequeueMail(t.Context(), w.DB, w.Claim(1)[0], q))
	}
	for what, c := range map[string]struct {
		do        func()
		cancelled int
	}{
		"leased":             {func() { w.Claim(1) }, 0},
		"refused for a time": {func() { requeue(outbox.Requeue{Failed: true}) }, 1},
		"not answered":       {func() { requeue(outbox.Requeue{MaybeSent: true}) }, 0},
		"refused after that": {func() { requeue(outbox.Requeue{MaybeSent: true}); requeue(outbox.Requeue{Failed: true}) }, 0},
		"lease ended":        {func() { w.Claim(1); w.Clock.Advance(2 * time.Minute) }, 0},
		"lease taken over":   {func() { w.Claim(1); w.Clock.Advance(2 * time.Minute); requeue(outbox.Requeue{}) }, 0},
		"retried by an operator": {func() {
			w.Must(outbox.MarkFailed(t.Context(), w.DB, w.Claim(1)[0], "given up"))
			_, err := outbox.RetryMails(t.Context(), w.DB, time.Time{}, nil, 1)
			w.Must(err)
		}, 0},
	} {
		id := w.schedule(client, user, 1)[0]
		c.do()
		if n := w.cancel(client, id); n != c.cancelled {
			t.Errorf("%s: %d cancelled, not %d", what, n, c.cancelled)
		}
		w.Exec("DELETE FROM outbox")
	}
}

// TestCancelRaces: of sent and cancelled exactly one is true of each mail, and a mail that was handed over is never
// cancelled, though senders die between the hand-over and the mark.
func TestCancelRaces(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	client := w.AddClient()
	user := w.AddUser(client, domain.RoleStandard, 500)
	const mails, senders = 120, 3
	ids := w.schedule(client, user, mails)

	var mu sync.Mutex
	handedOver := map[domain.ResultID]bool{}
	var all sync.WaitGroup
	for n := range senders {
		all.Go(func() {
			random, turns := rand.New(rand.NewPCG(1, uint64(n))), outbox.NewMailTurns()
			for range mails / senders {
				leases, err := outbox.ClaimMails(t.Context(), w.DB, turns, 2, time.Minute)
				if err != nil {
					t.Error(err)
				}
				for _, l := range leases {
					mu.Lock()
					handedOver[l.ResultID()] = true
					mu.Unlock()
					if random.IntN(3) > 0 { // else the sender dies
						sent := outbox.SentMail{Lease: l, User: &user, From: "a@example.com", Subject: "S"}
						if _, err := outbox.MarkSent(t.Context(), w.DB, []outbox.SentMail{sent}); err != nil {
							t.Error(err)
						}
					}
				}
				w.Clock.Advance(20 * time.Second)
			}
		})
	}
	for n := range 2 {
		all.Go(func() {
			random := rand.New(rand.NewPCG(2, uint64(n)))
			for range mails / 2 {
				first := random.IntN(mails - 3)
				w.cancel(client, ids[first+2], ids[first], ids[first+1])
			}
		})
	}
	all.Wait()
	for w.Clock.Advance(2 * time.Minute); ; w.Clock.Advance(2 * time.Minute) {
		leases := w.Claim(mails)
		if len(leases) == 0 {
			break
		}
		for _, l := range leases {
			handedOver[l.ResultID()] = true
		}
		w.Send(leases...)
	}

	counts := map[string]int{}
	for i, status := range w.ResultStatuses(ids) {
		counts[fmt.Sprint(status, handedOver[ids[i]])]++
	}
	if counts["senttrue"]+counts["failedfalse"] != mails || counts["failedfalse"] == 0 || counts["senttrue"] == 0 {
		t.Errorf("by status and whether they were handed over: %v", counts)
	}
	if n := w.Number("SELECT used FROM template_uses"); n != counts["senttrue"] || w.Number("SELECT count(*) FROM outbox") != 0 {
		t.Errorf("the template was used %d times for %v", n, counts)
	}
	w.WantPhishingCounts(t)
}
