// Package webhook publishes events, and delivers them to the endpoints of
// subscriptions.
//
// Delivery is at least once. A dispatcher claims deliveries under leases, sends with
// no transaction open, and marks what became of them. If its process dies, or loses
// the database, between the sending and the commit of the mark, nobody knows that
// the endpoint was told: another dispatcher takes the delivery over when the lease
// ends, and the endpoint gets the event again, with the same id.
package webhook

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"

	"partnerapi/db"
	"partnerapi/domain"
)

const (
	// beginWithin is how long after its claim a try may begin.
	beginWithin = 5 * time.Second
	// markWithin is how long marking may take.
	markWithin = 10 * time.Second
	// closeWithin is how long it may take to close a connection whose other end does
	// not read, which crypto/tls bounds.
	closeWithin = 5 * time.Second
	// leaseFor is how long a delivery is its claimer's: longer than any try and its
	// mark take.
	leaseFor = beginWithin + domain.WebhookDeadline + closeWithin + markWithin + 5*time.Second
	// StopWithin is how long the tries under way may take after a stop.
	StopWithin = domain.WebhookDeadline + closeWithin + markWithin
	// lookEvery is how often deliveries are looked for that nothing told of: other
	// processes publish, too.
	lookEvery = time.Second
	// lookAgain is the pause between two looks while deliveries are due whose
	// subscriptions have no place.
	lookAgain = 250 * time.Millisecond
	// outageFor is the pause after the database could not be used.
	outageFor = time.Second
	// keylessFor is how long a delivery is put off whose secret can't be opened.
	keylessFor = time.Minute
	// openedSecrets is how many opened secrets are kept.
	openedSecrets = 4096
)

// Outcome is what became of a try.
type Outcome string

// The outcomes. Lost says that the lease had ended before the try was marked.
const (
	Succeeded Outcome = "succeeded"
	Retried   Outcome = "retried"
	Failed    Outcome = "failed"
	Lost      Outcome = "lost"
)

// Outcomes lists the outcomes.
var Outcomes = []Outcome{Succeeded, Retried, Failed, Lost}

// Observer is told what the dispatcher does; each function may be nil, and is called
// by several goroutines.
type Observer struct {
	// Tried is told of every try, and how long the endpoint took.
	Tried func(outcome Outcome, took time.Duration)
	// Dropped counts deliveries that were given up because of their subscriptions.
	Dropped func(n int)
	// Disabled counts subscriptions that were disabled.
	Disabled func(n int)
}

// Poster makes one try; see Endpoints.Post.
type Poster interface {
	Post(ctx context.Context, m Message) Answer
}

// Opener opens sealed secrets. The keys may be nil, which opens nothing.
type Opener interface {
	Open(sealed, context []byte) ([]byte, error)
}

// Dispatcher makes the tries of deliveries. Any number of dispatchers may work on one
// database.
type Dispatcher struct {
	db      *db.DB
	to      Poster
	keys    Opener
	log     *slog.Logger
	observe Observer
	places  *places
	wake    chan struct{}
	under   sync.WaitGroup
	marks   marks
	opened  *lru.Cache[string, string]
	// after calls a function later, unless it is stopped.
	after func(time.Duration, func()) (stop func() bool)
}

// NewDispatcher returns a dispatcher that opens secrets with keys.
func NewDispatcher(d *db.DB, to Poster, keys Opener, log *slog.Logger, observe Observer) *Dispatcher {
	opened, _ := lru.New[string, string](openedSecrets) // fails for sizes below 1
	return &Dispatcher{
		db: d, to: to, keys: keys, log: log, observe: observe, places: newPlaces(), wake: make(chan struct{}, 1),
		opened: opened,
		after:  func(d time.Duration, fn func()) func() bool { return time.AfterFunc(d, fn).Stop },
	}
}

// Wake tells that there are new deliveries. It does not wait.
func (d *Dispatcher) Wake() {
	select {
	case d.wake <- struct{}{}:
	default:
	}
}

// Run delivers until ctx ends. Then it claims no more, and finishes the tries under
// way. The error says that this took longer than StopWithin: those deliveries are
// made again when their leases end.
func (d *Dispatcher) Run(ctx context.Context) error {
	away := false // whether the log says that the database is
	for ctx.Err() == nil {
		claim, err := d.claim(ctx)
		switch {
		case ctx.Err() != nil:
		case err != nil:
			if !away {
				d.log.WarnContext(ctx, "deliveries cannot be read; it will be tried again", "error", err)
			}
			away = true
			d.wait(ctx, outageFor, false)
		default:
			if away {
				d.log.InfoContext(ctx, "deliveries can be read again")
				away = false
			}
			d.rest(ctx, claim)
		}
	}

	done := make(chan struct{})
	go func() { d.under.Wait(); close(done) }()
	select {
	case <-done:
		return nil
	case <-time.After(StopWithin):
		return errors.New("stop the background work: deliveries are still under way")
	}
}

// rest waits until there may be something to claim.
func (d *Dispatcher) rest(ctx context.Context, claim db.Claim) {
	until := lookEvery
	switch {
	case len(claim.Leases) > 0 && !d.places.full(), claim.Dropped > 0:
		return
	case claim.Left:
		until = lookAgain
	}
	if !claim.Next.IsZero() {
		until = min(until, max(claim.Next.Sub(d.db.Now()), 0))
	}
	d.wait(ctx, until, true)
}

// wait waits so long, or until ctx ends or, if told, there is something new.
func (d *Dispatcher) wait(ctx context.Context, until time.Duration, told bool) {
	wake, freed := d.wake, d.places.freed
	if !told {
		wake, freed = nil, nil
	}
	timer := time.NewTimer(until)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	case <-wake:
	case <-freed:
	}
}

// claim claims deliveries and begins their tries, which ctx does not end.
func (d *Dispatcher) claim(ctx context.Context) (db.Claim, error) {
	if d.places.full() {
		return db.Claim{Left: true}, nil
	}
	began := time.Now()
	claim, err := d.db.ClaimDeliveries(ctx, leaseFor, d.places.choose)
	if err != nil {
		return claim, err
	}
	if claim.Dropped > 0 && d.observe.Dropped != nil {
		d.observe.Dropped(claim.Dropped)
	}
	if len(claim.Leases) == 0 {
		return claim, nil
	}

	lasting, cancel := context.WithTimeout(context.WithoutCancel(ctx), beginWithin)
	defer cancel()
	b := d.load(lasting, claim.Leases)
	for _, l := range claim.Leases {
		t := d.places.begin(l.Webhook)
		d.under.Go(func() { d.try(context.WithoutCancel(ctx), t, l, b, began) })
	}
	return claim, nil
}

// try makes one try and has it marked.
func (d *Dispatcher) try(ctx context.Context, t *try, l db.DeliveryLease, b *batch, claimed time.Time) {
	message, instead := b.message(l)
	if instead == nil && time.Since(claimed) > beginWithin {
		instead = b.putBack(l, 0)
	}
	if instead != nil {
		_ = d.finish(ctx, *instead) // which is logged
		t.end(false, false)
		return
	}

	stop := d.after(slowAfter, t.lag)
	a := d.to.Post(ctx, message)
	stop()
	mark := judge(l, a, d.db.Now())
	outcome := Retried
	switch err := d.finish(ctx, mark); {
	case err != nil:
		outcome = Lost
	case mark.Status == domain.DeliverySucceeded:
		outcome = Succeeded
	case mark.Status == domain.DeliveryFailed:
		outcome = Failed
	}
	t.end(true, a.Succeeded())
	if d.observe.Tried != nil {
		d.observe.Tried(outcome, a.Took())
	}
}

// finish marks a delivery. The error says that it could not be marked, or was
// another's.
func (d *Dispatcher) finish(ctx context.Context, m db.DeliveryMark) error {
	err := d.mark(ctx, m)
	if err != nil {
		d.log.WarnContext(ctx, "a delivery was not marked; it will be made again unless another process has taken it over",
			"webhook", m.Webhook.UUID(), "delivery", m.ID.UUID(), "error", err)
	}
	return err
}
