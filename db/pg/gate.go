package pg

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"partnerapi/domain"
)

// gate shares the connections of a pool fairly between partners. When all connections are in use, the waiting partners
// get the next free ones in turn, however many requests of each are waiting. No partner holds more than three quarters
// of the connections. Background work counts as one more partner. A gate is safe for concurrent use.
type gate struct {
	mu   sync.Mutex
	free int
	// share is the maximum number of connections of one partner.
	share   int
	holding map[domain.PartnerID]int             // the connections of each partner
	waiting map[domain.PartnerID][]chan struct{} // a channel for each waiter, which is closed to admit it
	// turns are the waiting partners, the next one first.
	turns []domain.PartnerID

	waited, waitedFor atomic.Int64 // the number of waits, and their sum in nanoseconds
}

// newGate returns the gate of a number of connections, of which a partner may hold three quarters.
func newGate(conns int) *gate {
	return &gate{
		free: conns, share: max(1, conns*3/4),
		holding: map[domain.PartnerID]int{}, waiting: map[domain.PartnerID][]chan struct{}{},
	}
}

// enter waits for a connection for the caller's partner, and returns the function that releases it. If ctx ends first,
// it returns the error of ctx.
func (g *gate) enter(ctx context.Context) (leave func(), err error) {
	partner := domain.CallerFrom(ctx).Partner
	g.mu.Lock()
	if g.free > 0 && g.holding[partner] < g.share && len(g.waiting[partner]) == 0 {
		g.acquire(partner)
		g.mu.Unlock()
		return func() { g.leave(partner) }, nil
	}
	turn := make(chan struct{})
	if len(g.waiting[partner]) == 0 {
		g.turns = append(g.turns, partner)
	}
	g.waiting[partner] = append(g.waiting[partner], turn)
	g.mu.Unlock()

	began := time.Now()
	defer func() {
		g.waited.Add(1)
		g.waitedFor.Add(int64(time.Since(began)))
	}()
	select {
	case <-turn:
		return func() { g.leave(partner) }, nil
	case <-ctx.Done():
		g.abandon(partner, turn)
		return nil, ctx.Err()
	}
}

func (g *gate) inUse() (n int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, count := range g.holding {
		n += count
	}
	return n
}

// acquire counts a free connection as the partner's. g.mu must be locked.
func (g *gate) acquire(partner domain.PartnerID) {
	g.free--
	g.holding[partner]++
}

// leave releases a connection of a partner, and admits waiters.
func (g *gate) leave(partner domain.PartnerID) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.free++
	if g.holding[partner]--; g.holding[partner] == 0 {
		delete(g.holding, partner)
	}
	g.admit()
}

// admit gives free connections to waiting partners in turn, except those that hold their share. g.mu must be locked.
func (g *gate) admit() {
	for i := 0; i < len(g.turns) && g.free > 0; {
		partner := g.turns[i]
		if g.holding[partner] >= g.share {
			i++
			continue
		}
		g.acquire(partner)
		queue := g.waiting[partner]
		close(queue[0])
		g.turns = slices.Delete(g.turns, i, i+1)
		if len(queue) == 1 {
			delete(g.waiting, partner)
			continue
		}
		g.waiting[partner] = queue[1:]
		g.turns = append(g.turns, partner) // the next turn of the partner comes after all others
	}
}

// abandon removes a waiter whose context ended. If it was admitted at the same moment, abandon releases its connection.
func (g *gate) abandon(partner domain.PartnerID, turn chan struct{}) {
	g.mu.Lock()
	queue := g.waiting[partner]
	i := slices.Index(queue, turn)
	if i < 0 {
		g.mu.Unlock()
		g.leave(partner)
		return
	}

	defer g.mu.Unlock()
	g.waiting[partner] = slices.Delete(queue, i, i+1)
	if len(queue) == 1 {
		delete(g.waiting, partner)
		g.turns = slices.DeleteFunc(g.turns, func(p domain.PartnerID) bool { return p == partner })
	}
}
