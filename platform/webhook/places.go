package webhook

import (
	"cmp"
	"slices"
	"sync"
	"time"

	"partnerapi/db/outbox"
	"partnerapi/domain"
)

const (
	// quickTries is the size of the quick pool: a process's tries in progress for
	// subscriptions that answered quickly the last time, or were not tried yet.
	quickTries = 200
	// slowTries is the size of the slow pool: tries that it begins for the others.
	slowTries = 200
	// slowAfter is how long a try may take before its subscription counts as slow.
	slowAfter = time.Second
	// firstPlaces is how many tries of a subscription are in progress at a time until
	// its first answer, and slowPlaces those of one that answers, but slowly. Each
	// quick success doubles them, to domain.MaxConcurrentTries; a failure leaves one.
	firstPlaces, slowPlaces = 2, 2
	// mostTries is how many tries are in progress at most (see places).
	mostTries = quickTries*(1+int(domain.WebhookDeadline/slowAfter)) + slowTries
	// maxRemembered is how many subscriptions are remembered beyond those that choose
	// was given last: many more than it is given at a time.
	maxRemembered = 50_000
)

// places shares the concurrent attempts of a process among subscriptions, so that slow and dead endpoints delay no
// other (decisions 8.4).
//
// There are two pools. A subscription whose last attempt failed or was slow is a suspect; suspects share the slow
// pool. All others share the quick one. An attempt that turns out to be slow moves from the quick pool to the slow
// one at once, which may exceed its size that way. So a hanging endpoint holds places of the quick pool for
// slowAfter, and then becomes a suspect. At most quickTries turn slow in each slowAfter, and an attempt ends within
// domain.WebhookDeadline, so at most mostTries are in progress.
type places struct {
	mu          sync.Mutex
	quick, slow int // tries in progress
	turn        int64
	of          map[domain.WebhookID]*webhookState
	freed       func() // called when a place is free again
}

// webhookState is a process's record of a subscription.
type webhookState struct {
	places  int
	suspect bool
	running int
	turn    int64 // of the last claim: who waited longer comes first
}

// newPlaces returns free places. freed is called when one becomes free.
func newPlaces(freed func()) *places {
	return &places{of: map[domain.WebhookID]*webhookState{}, freed: freed}
}

// available returns how many attempts may start.
func (p *places) available() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return max(quickTries-p.quick, 0) + max(slowTries-p.slow, 0)
}

// claimant is a subscription with due deliveries.
type claimant struct {
	*webhookState
	outbox.Places
	room int
}

// choose returns how many deliveries to claim of each of the due subscriptions. In each pool subscriptions take
// turns: each gets its first place before any gets its second, and the one that was served longest ago comes first.
// Subscriptions without a place come last in the next call (outbox.ClaimDeliveries).
func (p *places) choose(due []outbox.DueWebhook) []outbox.Places {
	p.mu.Lock()
	defer p.mu.Unlock()
	var quick, slow []*claimant
	for _, w := range due {
		s := p.stateOf(w)
		room := min(domain.MaxConcurrentTries-w.UnderWay, s.places-s.running)
		switch wish := (&claimant{webhookState: s, Places: outbox.Places{Webhook: w.ID}, room: room}); {
		case room <= 0:
		case s.suspect:
			slow = append(slow, wish)
		default:
			quick = append(quick, wish)
		}
	}

	chosen := append(p.distribute(quick, quickTries-p.quick), p.distribute(slow, slowTries-p.slow)...)
	p.evict(due)
	return chosen
}

// distribute distributes free places to subscriptions in turns.
func (p *places) distribute(wishes []*claimant, free int) (chosen []outbox.Places) {
	slices.SortFunc(wishes, func(a, b *claimant) int {
		return cmp.Or(cmp.Compare(a.turn, b.turn), slices.Compare(a.Webhook[:], b.Webhook[:]))
	})
	for given := true; given && free > 0; {
		given = false
		for _, w := range wishes {
			if w.N < w.room && free > 0 {
				w.N++
				free--
				given = true
			}
		}
	}
	for _, w := range wishes {
		if w.N > 0 {
			p.turn++
			w.turn = p.turn
			chosen = append(chosen, w.Places)
		}
	}
	return chosen
}

// stateOf returns the record of a subscription, creating it if needed.
func (p *places) stateOf(w outbox.DueWebhook) *webhookState {
	s := p.of[w.ID]
	if s == nil {
		s = &webhookState{places: firstPlaces, suspect: w.Failing}
		if w.Failing {
			s.places = 1
		}
		p.of[w.ID] = s
	}
	return s
}

// evict deletes the records of subscriptions that are neither due nor in progress, if there are many.
func (p *places) evict(due []outbox.DueWebhook) {
	if len(p.of) <= len(due)+maxRemembered {
		return
	}
	for _, w := range due {
		p.of[w.ID].running++ // keeps it
	}
	for id, s := range p.of {
		if s.running == 0 {
			delete(p.of, id)
		}
	}
	for _, w := range due {
		p.of[w.ID].running--
	}
}

// try is an attempt in progress.
type try struct {
	places *places
	of     *webhookState
	slow   bool // it is of the slow pool
	late   bool // it turned out to be slow
}

// startTry acquires a place for an attempt at a subscription that choose returned.
func (p *places) startTry(id domain.WebhookID) *try {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.of[id]
	s.running++
	t := &try{places: p, of: s, slow: s.suspect}
	*p.pool(t)++
	return t
}

// pool returns the count of the attempt's pool.
func (p *places) pool(t *try) *int {
	if t.slow {
		return &p.slow
	}
	return &p.quick
}

// markSlow moves a slow attempt to the slow pool.
func (t *try) markSlow() {
	p := t.places
	p.mu.Lock()
	defer p.mu.Unlock()
	*p.pool(t)--
	t.late, t.slow = true, true
	*p.pool(t)++
	t.of.suspect, t.of.places = true, 1
	p.freed()
}

// end releases the place. made reports whether there was an attempt, ok whether it succeeded.
func (t *try) end(made, ok bool) {
	p := t.places
	p.mu.Lock()
	defer p.mu.Unlock()
	*p.pool(t)--
	s := t.of
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
