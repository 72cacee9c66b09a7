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
	// quickTries is how many tries a process has under way of subscriptions that
	// answered at once the last time, or were not tried yet.
	quickTries = 200
	// slowTries is how many it begins of the others.
	slowTries = 200
	// slowAfter is how long a try may take until its subscription is a slow one.
	slowAfter = time.Second
	// firstPlaces is how many tries of a subscription are under way at a time until
	// its first answer, and slowPlaces those of one that answers, but slowly. Each
	// quick success doubles them, to domain.MaxTriesUnderWay; a failure leaves one.
	firstPlaces, slowPlaces = 2, 2
	// mostTries is how many tries are under way at the most (see places).
	mostTries = quickTries*(1+int(domain.WebhookDeadline/slowAfter)) + slowTries
	// knownStandings is how many subscriptions are remembered beyond those that choose
	// was given last: many more than it is given at a time.
	knownStandings = 50_000
)

// places shares the tries that a process may have under way among subscriptions, so
// that slow and dead endpoints delay no other (decisions 8.4).
//
// There are two pools. A subscription whose last try failed or was slow is a suspect;
// suspects share the slow pool. All others share the quick one. A try that turns out
// to be slow leaves the quick pool for the slow one at once, which may be overdrawn
// that way. So hanging endpoints hold places of the quick pool for slowAfter, and then
// they are suspects. At most quickTries turn slow in each slowAfter, and a try ends
// within domain.WebhookDeadline: there are at most mostTries under way.
type places struct {
	mu          sync.Mutex
	quick, slow int // tries under way
	turn        int64
	of          map[domain.WebhookID]*standing
	freed       func() // called when a place is free again
}

// standing is what a process knows of a subscription.
type standing struct {
	places  int
	suspect bool
	running int
	turn    int64 // of the last claim: who waited longer comes first
}

func newPlaces(freed func()) *places {
	return &places{of: map[domain.WebhookID]*standing{}, freed: freed}
}

// free is how many tries may begin.
func (p *places) free() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return max(quickTries-p.quick, 0) + max(slowTries-p.slow, 0)
}

// wish is a subscription that could have places.
type wish struct {
	*standing
	outbox.Places
	room int
}

// choose says how many deliveries of each of the given subscriptions are to be claimed.
// In each pool subscriptions take turns: each has its first place before any has its
// second, and who was claimed of longest ago comes first. Who gets no place is given to
// choose again after all others (outbox.ClaimDeliveries).
func (p *places) choose(due []outbox.DueWebhook) []outbox.Places {
	p.mu.Lock()
	defer p.mu.Unlock()
	var quick, slow []*wish
	for _, w := range due {
		s := p.standing(w)
		room := min(domain.MaxTriesUnderWay-w.UnderWay, s.places-s.running)
		switch wish := (&wish{standing: s, Places: outbox.Places{Webhook: w.ID}, room: room}); {
		case room <= 0:
		case s.suspect:
			slow = append(slow, wish)
		default:
			quick = append(quick, wish)
		}
	}

	chosen := append(p.share(quick, quickTries-p.quick), p.share(slow, slowTries-p.slow)...)
	p.forget(due)
	return chosen
}

// share gives free places to subscriptions in turns.
func (p *places) share(wishes []*wish, free int) (chosen []outbox.Places) {
	slices.SortFunc(wishes, func(a, b *wish) int {
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

func (p *places) standing(w outbox.DueWebhook) *standing {
	s := p.of[w.ID]
	if s == nil {
		s = &standing{places: firstPlaces, suspect: w.Failing}
		if w.Failing {
			s.places = 1
		}
		p.of[w.ID] = s
	}
	return s
}

// forget drops subscriptions of which nothing is under way and that are not among the
// given ones, where many are known.
func (p *places) forget(due []outbox.DueWebhook) {
	if len(p.of) <= len(due)+knownStandings {
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

// try is a try under way.
type try struct {
	places *places
	of     *standing
	slow   bool // it is of the slow pool
	late   bool // it turned out to be slow
}

// begin takes a place for a try of a subscription that choose was asked about.
func (p *places) begin(id domain.WebhookID) *try {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.of[id]
	s.running++
	t := &try{places: p, of: s, slow: s.suspect}
	*p.pool(t)++
	return t
}

// pool is the count of the pool that a try is of.
func (p *places) pool(t *try) *int {
	if t.slow {
		return &p.slow
	}
	return &p.quick
}

// lag moves a try that takes long to the slow pool.
func (t *try) lag() {
	p := t.places
	p.mu.Lock()
	defer p.mu.Unlock()
	*p.pool(t)--
	t.late, t.slow = true, true
	*p.pool(t)++
	t.of.suspect, t.of.places = true, 1
	p.freed()
}

// end gives the place back. made says that there was a try, ok that it succeeded.
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
		s.suspect, s.places = false, min(2*s.places, domain.MaxTriesUnderWay)
	}
	p.freed()
}
