package webhook

import (
	"cmp"
	"slices"
	"sync"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"

	"partnerapi/db/outbox"
	"partnerapi/domain"
)

const (
	// quickTries is the size of the quick pool: a process's attempts in progress for subscriptions that answered
	// quickly the last time, or had no attempt yet.
	quickTries = 200
	// slowTries is the size of the slow pool, for attempts for the other subscriptions.
	slowTries = 200
	// slowAfter is the duration from which an attempt, and so its subscription, is slow.
	slowAfter = time.Second
	// firstPlaces is the number of places of a subscription before its first response, and slowPlaces after a slow
	// success. Each quick success doubles the number, up to domain.MaxConcurrentTries; a failure reduces it to 1.
	firstPlaces, slowPlaces = 2, 2
	// mostTries is the maximum number of attempts in progress (see places).
	mostTries = quickTries*(1+int(domain.WebhookDeadline/slowAfter)) + slowTries
	// maxStates is the number of subscriptions whose records are kept: many more than have attempts in progress.
	maxStates = 50_000
)

// places shares the concurrent attempts of a process among subscriptions, so that slow and dead endpoints do not delay
// the others (decisions 8.4).
//
// There are two pools. A subscription whose last attempt failed or was slow is a suspect. Suspects share the slow
// pool, all other subscriptions the quick pool. After slowAfter, an attempt moves from the quick pool to the slow
// pool, which may exceed its size that way. So a hanging endpoint holds places of the quick pool for slowAfter, and
// then becomes a suspect. At most quickTries attempts become slow in each slowAfter, and an attempt ends within
// domain.WebhookDeadline, so at most mostTries are in progress.
type places struct {
	mu          sync.Mutex
	quick, slow int   // attempts in progress
	turn        int64 // the number of times that a subscription got places
	// states holds the records of the most recently used subscriptions.
	states *lru.Cache[domain.WebhookID, *webhookState]
	freed  func() // called when a place becomes free
}

// webhookState is a process's record of a subscription.
type webhookState struct {
	places  int // the maximum number of attempts in progress
	suspect bool
	running int   // attempts in progress
	turn    int64 // places.turn when it last got places: subscriptions with lower turns come first
}

// newPlaces returns places that are all free. freed is called when a place becomes free.
func newPlaces(freed func()) *places {
	states, _ := lru.New[domain.WebhookID, *webhookState](maxStates) // fails for sizes below 1
	return &places{states: states, freed: freed}
}

// available returns how many attempts may start in the two pools. The slow pool may hold more than its size (markSlow).
func (p *places) available() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return max(quickTries-p.quick, 0) + max(slowTries-p.slow, 0)
}

// claimant is a subscription with due deliveries, of which choose may claim at most room.
type claimant struct {
	*webhookState
	outbox.Places
	room int
}

// choose returns how many deliveries to claim of each of the due subscriptions; those without a place are omitted. In
// each pool subscriptions take turns: each gets its first place before any gets its second, in the order of their last
// claims, oldest first.
func (p *places) choose(due []outbox.DueWebhook) []outbox.Places {
	p.mu.Lock()
	defer p.mu.Unlock()
	var quick, slow []*claimant
	for _, w := range due {
		s := p.stateOf(w)
		room := min(domain.MaxConcurrentTries-w.UnderWay, s.places-s.running) // of all processes, and of this one
		switch c := (&claimant{webhookState: s, Places: outbox.Places{Webhook: w.ID}, room: room}); {
		case room <= 0: // it gets no place
		case s.suspect:
			slow = append(slow, c)
		default:
			quick = append(quick, c)
		}
	}
	return append(p.distribute(quick, quickTries-p.quick), p.distribute(slow, slowTries-p.slow)...)
}

// distribute gives free places to the claimants in turns, none more than its room. The one that got places the longest
// time ago comes first. It returns the subscriptions with a place, each with the number of its places.
func (p *places) distribute(claimants []*claimant, free int) (chosen []outbox.Places) {
	slices.SortFunc(claimants, func(a, b *claimant) int {
		return cmp.Or(cmp.Compare(a.turn, b.turn), slices.Compare(a.Webhook[:], b.Webhook[:]))
	})
	for more := true; more && free > 0; { // each pass distributes at most one place per subscription
		more = false
		for _, c := range claimants {
			if c.N < c.room && free > 0 {
				c.N++
				free--
				more = true
			}
		}
	}
	for _, c := range claimants {
		if c.N > 0 {
			p.turn++
			c.turn = p.turn
			chosen = append(chosen, c.Places)
		}
	}
	return chosen
}

// stateOf returns the record of a subscription. If there is none, it creates one: a failing subscription begins as a
// suspect, in the slow pool, with at most one attempt in progress; any other with firstPlaces.
func (p *places) stateOf(w outbox.DueWebhook) *webhookState {
	s, ok := p.states.Get(w.ID)
	if !ok {
		s = &webhookState{places: firstPlaces, suspect: w.Failing}
		if w.Failing {
			s.places = 1
		}
		p.states.Add(w.ID, s)
	}
	return s
}

// try is an attempt in progress.
type try struct {
	places *places
	state  *webhookState
	slow   bool // it is in the slow pool
	late   bool // it has taken longer than slowAfter
	ended  bool
}

// startTry acquires a place for an attempt at a subscription that choose returned.
func (p *places) startTry(id domain.WebhookID) *try {
	p.mu.Lock()
	defer p.mu.Unlock()
	s, _ := p.states.Get(id) // not nil: choose has just used it
	s.running++
	t := &try{places: p, state: s, slow: s.suspect}
	*p.pool(t)++
	return t
}

// pool returns the counter of attempts in the pool that the attempt is in.
func (p *places) pool(t *try) *int {
	if t.slow {
		return &p.slow
	}
	return &p.quick
}

// markSlow is called after slowAfter. It moves the attempt to the slow pool, and makes its subscription a suspect. It
// does nothing if the attempt has ended: a timer that has fired cannot be stopped.
func (t *try) markSlow() {
	p := t.places
	p.mu.Lock()
	defer p.mu.Unlock()
	if t.ended {
		return
	}
	*p.pool(t)--
	t.late, t.slow = true, true
	*p.pool(t)++
	t.state.suspect, t.state.places = true, 1
	p.freed()
}

// end releases the place. If there was an attempt, it also judges the subscription: a failure (ok is false) or a late
// success makes it a suspect with few places; after a quick success it is not one, and has twice as many places.
func (t *try) end(made, ok bool) {
	p := t.places
	p.mu.Lock()
	defer p.mu.Unlock()
	t.ended = true
	*p.pool(t)--
	s := t.state
	s.running--
	switch {
	case !made:
	case !ok:
		s.suspect, s.places = true, 1
	case t.late:
		s.suspect, s.places = true, slowPlaces
	default:
		s.suspect, s.places = false, min(2*s.places, domain.MaxConcurrentTries)
	}
	p.freed()
}
