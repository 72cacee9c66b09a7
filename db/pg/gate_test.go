package pg

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"

	"pgregory.net/rapid"

	"partnerapi/domain"
)

func callerOf(ctx context.Context, partner int) context.Context {
	return domain.WithCaller(ctx, &domain.Caller{Partner: domain.PartnerID{15: byte(partner + 1)}})
}

// TestGateIsFair: with 500 requests of one partner waiting, another partner's
// request gets the next turn but one at the latest.
func TestGateIsFair(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate(1)
		leave, err := g.enter(callerOf(t.Context(), 9))
		if err != nil {
			t.Fatal(err)
		}
		var turns []int
		for partner, requests := range []int{500, 3} {
			for range requests {
				go func() {
					leave, err := g.enter(callerOf(t.Context(), partner))
					if err != nil {
						t.Error(err)
						return
					}
					turns = append(turns, partner) // one at a time, as there is one connection
					leave()
				}()
				synctest.Wait() // until it waits
			}
		}
		leave()
		synctest.Wait()
		if want := "[0 1 0 1 0 1 0 0]"; len(turns) != 503 || fmt.Sprint(turns[:8]) != want {
			t.Errorf("the turns of %d begin with %v, not %s", len(turns), turns[:8], want)
		}
	})
}

// wantIdle checks that no request holds or waits for a connection.
func (g *gate) wantIdle(t interface{ Errorf(string, ...any) }, conns int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.free != conns || len(g.holding)+len(g.waiting)+len(g.turns) > 0 {
		t.Errorf("%d of %d are free, held by %v, waited for by %v, turns %v", g.free, conns, g.holding, g.waiting, g.turns)
	}
}

// request is a partner's; leave is set once it was let in.
type request struct {
	cancel, leave func()
}

// TestGateProperties: whatever partners enter, leave and give up in whatever order, no
// partner holds more than three quarters of the connections, no request waits for a
// connection that is free, and none is lost.
func TestGateProperties(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rapid.Check(struct{ testing.TB }{t}, checkGate) // without the deadline, which a bubble has not
	})
}

func checkGate(t *rapid.T) {
	ctx, end := context.WithCancel(context.Background())
	defer func() { end(); synctest.Wait() }()
	conns := rapid.IntRange(1, 6).Draw(t, "conns")
	g, share := newGate(conns), max(1, conns*3/4)
	var open []*request
	letIn := func(r *request) bool { return r.leave != nil }

	t.Repeat(map[string]func(*rapid.T){
		"enter": func(t *rapid.T) {
			partner := rapid.IntRange(0, 3).Draw(t, "partner")
			ctx, cancel := context.WithCancel(ctx)
			r := &request{cancel: cancel}
			go func() { r.leave, _ = g.enter(callerOf(ctx, partner)) }()
			open = append(open, r)
		},
		"leave": func(*rapid.T) {
			if i := slices.IndexFunc(open, letIn); i >= 0 {
				open[i].leave()
				open = slices.Delete(open, i, i+1)
			}
		},
		"give up": func(t *rapid.T) {
			if len(open) == 0 {
				t.Skip("no request is there")
			}
			i := rapid.IntRange(0, len(open)-1).Draw(t, "request")
			if !letIn(open[i]) {
				open[i].cancel()
				open = slices.Delete(open, i, i+1)
			}
		},
		"": func(t *rapid.T) {
			synctest.Wait() // for all to be let in or to wait
			g.mu.Lock()
			defer g.mu.Unlock()
			for partner, n := range g.holding {
				if n > share {
					t.Fatalf("%v holds %d of %d", partner, n, conns)
				}
			}
			for partner := range g.waiting {
				if g.free > 0 && g.holding[partner] < share {
					t.Fatalf("%v waits while %d are free", partner, g.free)
				}
			}
		},
	})
	for _, r := range open {
		r.cancel()
		synctest.Wait()
		if letIn(r) {
			r.leave()
		}
	}
	g.wantIdle(t, conns)
}

// TestGateAtOnce: requests that give up at the moment of their turn lose no
// connection.
func TestGateAtOnce(t *testing.T) {
	g := newGate(3)
	var group sync.WaitGroup
	for i := range 400 {
		group.Go(func() {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			if i%2 == 0 {
				go cancel()
			}
			if leave, err := g.enter(callerOf(ctx, i%5)); err == nil {
				leave()
			}
		})
	}
	group.Wait()
	g.wantIdle(t, 3)
}
