package pg

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"partnerapi/domain"
)

func partnerOf(n int) domain.PartnerID { return domain.PartnerID{14: byte(n >> 8), 15: byte(n + 1)} }

func callerOf(ctx context.Context, n int) context.Context {
	return domain.WithCaller(ctx, &domain.Caller{Partner: partnerOf(n)})
}

// waits is how many requests of a partner wait.
func (g *gate) waits(n int) int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return len(g.waiting[partnerOf(n)])
}

// queue lets requests of a partner wait, one after the other, and returns a
// channel to which each sends when its turn comes.
func queue(t *testing.T, g *gate, partner, requests int, name string, turns chan<- string) {
	t.Helper()
	for i := range requests {
		entered := make(chan struct{})
		go func() {
			close(entered)
			leave, err := g.enter(callerOf(t.Context(), partner))
			if err != nil {
				return
			}
			turns <- name
			leave()
		}()
		<-entered
		for g.waits(partner) <= i { // until it waits
			select {
			case <-t.Context().Done():
				return
			default:
			}
		}
	}
}

// TestGateIsFair: with 500 requests of one partner waiting, another partner's
// request gets the next turn but one at the latest.
func TestGateIsFair(t *testing.T) {
	g := newGate(1)
	leave, err := g.enter(callerOf(t.Context(), 9))
	if err != nil {
		t.Fatal(err)
	}
	turns := make(chan string, 600)
	queue(t, g, 0, 500, "flood", turns)
	queue(t, g, 1, 3, "other", turns)
	leave()
	var got []string
	for range 8 {
		got = append(got, <-turns)
	}
	if want := "[flood other flood other flood other flood flood]"; fmt.Sprint(got) != want {
		t.Errorf("the turns are %v, want %s", got, want)
	}
	for range 503 - 8 {
		<-turns
	}
}

// TestGateShare: one partner holds three quarters of the connections at most,
// and the others get the rest at once.
func TestGateShare(t *testing.T) {
	g := newGate(8)
	var leaves []func()
	for range 6 {
		leave, err := g.enter(callerOf(t.Context(), 0))
		if err != nil {
			t.Fatal(err)
		}
		leaves = append(leaves, leave)
	}
	turns := make(chan string, 1)
	queue(t, g, 0, 1, "seventh", turns)
	for range 2 {
		leave, err := g.enter(callerOf(t.Context(), 1))
		if err != nil {
			t.Fatal(err)
		}
		leaves = append(leaves, leave)
	}
	for _, leave := range leaves {
		leave()
	}
	<-turns
	g.wantIdle(t, 8)
}

// wantIdle checks that no request holds or waits for a connection.
func (g *gate) wantIdle(t interface{ Errorf(string, ...any) }, conns int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.free != conns || len(g.holding)+len(g.waiting)+len(g.turns) > 0 {
		t.Errorf("%d of %d are free, held by %v, waited for by %v, turns %v", g.free, conns, g.holding, g.waiting, g.turns)
	}
}

// TestGateProperties: whatever partners enter, leave and give up in whatever
// order, no partner holds more than its share, no request waits for a connection that
// is free, and none is lost.
func TestGateProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		conns := rapid.IntRange(1, 6).Draw(t, "conns")
		g := newGate(conns)
		type request struct {
			partner int
			cancel  func()
			done    chan func() // what leaves; nil where the request gave up
			leave   func()
		}
		var open []*request
		settle := func() { // every request that was let in knows of it
			g.mu.Lock()
			held := conns - g.free
			g.mu.Unlock()
			in := 0
			for _, r := range open {
				if r.leave != nil {
					in++
				}
			}
			for in < held {
				for _, r := range open {
					select {
					case leave := <-r.done:
						r.leave = leave
						in++
					default:
					}
				}
			}
		}
		remove := func(i int) { open = append(open[:i], open[i+1:]...) }

		t.Repeat(map[string]func(*rapid.T){
			"enter": func(t *rapid.T) {
				r := &request{partner: rapid.IntRange(0, 3).Draw(t, "partner"), done: make(chan func(), 1)}
				ctx, cancel := context.WithCancel(context.Background())
				r.cancel = cancel
				before := g.waits(r.partner)
				go func() {
					leave, err := g.enter(callerOf(ctx, r.partner))
					if err != nil && !errors.Is(err, context.Canceled) {
						panic(err)
					}
					r.done <- leave
				}()
				open = append(open, r)
				for r.leave == nil && g.waits(r.partner) == before {
					select {
					case r.leave = <-r.done:
					default:
					}
				}
			},
			"leave": func(t *rapid.T) {
				for i, r := range open {
					if r.leave != nil {
						r.leave()
						r.cancel()
						remove(i)
						break
					}
				}
				settle()
			},
			"give up": func(t *rapid.T) {
				if len(open) == 0 {
					t.Skip("no request is there")
				}
				i := rapid.IntRange(0, len(open)-1).Draw(t, "request")
				if r := open[i]; r.leave == nil {
					r.cancel()
					if leave := <-r.done; leave != nil {
						leave()
					}
					remove(i)
				}
				settle()
			},
			"": func(t *rapid.T) {
				g.mu.Lock()
				defer g.mu.Unlock()
				for partner, n := range g.holding {
					if n > g.share {
						t.Fatalf("%v holds %d of %d", partner, n, conns)
					}
				}
				for partner := range g.waiting {
					if g.free > 0 && g.holding[partner] < g.share {
						t.Fatalf("%v waits while %d are free", partner, g.free)
					}
				}
			},
		})
		for len(open) > 0 {
			r := open[0]
			r.cancel()
			if r.leave == nil {
				r.leave = <-r.done
			}
			if r.leave != nil {
				r.leave()
			}
			remove(0)
		}
		g.wantIdle(t, conns)
	})
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
