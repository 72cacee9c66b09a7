package webhook

import (
	"testing"

	"partnerapi/db/outbox"
	"partnerapi/domain"
)

// TestShares: who gets how many places.
func TestShares(t *testing.T) {
	t.Parallel()
	p := newPlaces(func() {})
	due := func(n int, failing bool) (all []outbox.DueWebhook) {
		for i := range n {
			all = append(all, outbox.DueWebhook{ID: domain.WebhookID{byte(i / 250), byte(i % 250), byte(len(all) % 2)}, Failing: failing})
		}
		return all
	}
	total := func(chosen []outbox.Places) (n int) {
		for _, c := range chosen {
			n += c.N
		}
		return n
	}
	if n := total(p.choose(due(1, false))); n != 2 {
		t.Errorf("%d for an unknown one", n)
	}
	if n := total(newPlaces(func() {}).choose(due(1, true))); n != 1 {
		t.Errorf("%d for a failing one", n)
	}
	one := due(1, false)
	for _, want := range []int{4, 8, 10, 10} {
		p.startTry(one[0].ID).end(true, true)
		if n := total(p.choose(one)); n != want {
			t.Errorf("%d, not %d", n, want)
		}
	}
	one[0].UnderWay = 7 // elsewhere
	if n := total(p.choose(one)); n != 3 {
		t.Errorf("%d beside 7", n)
	}
	one[0].UnderWay = 0
	p.startTry(one[0].ID).end(true, false)
	if n := total(p.choose(one)); n != 1 {
		t.Errorf("%d after a failure", n)
	}
	try := p.startTry(one[0].ID)
	try.markSlow()
	try.end(true, true)
	if n := total(p.choose(one)); n != 2 {
		t.Errorf("%d for a slow one", n)
	}
	if try.markSlow(); p.available() != quickTries+slowTries { // by a timer that fired before the end
		t.Errorf("%d places are free", p.available())
	}

	// More subscriptions than places: each has its turn.
	p, many := newPlaces(func() {}), due(450, false)
	seen := map[domain.WebhookID]int{}
	for range 3 {
		for _, c := range p.choose(many) {
			seen[c.Webhook] += c.N
		}
	}
	if len(seen) != 450 {
		t.Errorf("%d of 450 had a turn", len(seen))
	}
}
