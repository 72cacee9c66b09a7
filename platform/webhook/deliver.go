// Package webhook publishes events, and delivers them to the endpoints of subscriptions.
//
// Delivery is at least once. A dispatcher claims deliveries under leases, sends with no transaction open, and records
// the outcomes (marks). If its process dies, or loses the database, between the sending and the commit of the mark, the
// outcome is lost: another dispatcher claims the delivery when the lease ends, and the endpoint gets the event again,
// with the same id.
package webhook

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"

	"partnerapi/db"
	"partnerapi/db/outbox"
	"partnerapi/domain"
	"partnerapi/platform/lease"
)

const (
	// beginWithin is how long after its claim an attempt may begin.
	beginWithin = 5 * time.Second
	// markWithin is how long marking may take.
	markWithin = 10 * time.Second
	// closeWithin is how long it may take to close a connection whose other end does not read: the timeout of
	// crypto/tls.
	closeWithin = 5 * time.Second
	// leaseFor is how long a claim lasts: longer than any attempt with its mark.
	leaseFor = beginWithin + domain.WebhookDeadline + closeWithin + markWithin + 5*time.Second
	// StopWithin is how long the attempts in progress may take after a stop.
	StopWithin = domain.WebhookDeadline + closeWithin + markWithin
	// pollEvery is how often deliveries are polled without a wake-up, because other processes publish events too.
	pollEvery = time.Second
	// pollAgain is the pause between two polls while the subscriptions of due deliveries have no free place.
	pollAgain = 250 * time.Millisecond
	// minLookedAt is the least number of subscriptions among which a claim chooses: the first of them may need places
	// of a pool that is full.
	minLookedAt = 100
	// readRetry is the delay of a delivery whose event or target cannot be read.
	readRetry = time.Second
	// keyRetry is the delay of a delivery whose secret cannot be decrypted.
	keyRetry = time.Minute
	// maxOpenSecrets is the maximum number of decrypted secrets in the cache.
	maxOpenSecrets = 4096
	// marksAtOnce is the maximum number of deliveries that are marked in one transaction.
	marksAtOnce = 500
)

// errLost is returned if a lease ended before its delivery was marked.
var errLost = errors.New("the lease has ended, or the subscription was deleted")

// Outcome is the outcome of an attempt.
type Outcome string

// The outcomes. Lost means that the outcome was not marked, because the lease had ended or the database failed.
const (
	Succeeded Outcome = "succeeded"
	Retried   Outcome = "retried"
	Failed    Outcome = "failed"
	Lost      Outcome = "lost"
)

// Outcomes lists the outcomes.
var Outcomes = []Outcome{Succeeded, Retried, Failed, Lost}

// Observer is notified of the dispatcher's work. Each function may be nil, and is called by several goroutines.
type Observer struct {
	// Tried is called after each attempt, with the time that the endpoint took.
	Tried func(id domain.WebhookID, outcome Outcome, took time.Duration)
	// Dropped is called with the number of deliveries that a claim dropped, because their subscriptions do not accept
	// them any more.
	Dropped func(n int)
	// Disabled is called with the number of subscriptions that were disabled.
	Disabled func(n int)
}

// Poster makes one attempt; see Endpoints.Post.
type Poster interface {
	Post(ctx context.Context, m domain.DeliveryMessage) Answer
}

// Opener decrypts sealed secrets.
type Opener interface {
	Open(sealed, context []byte) ([]byte, error)
}

// SignsBodies reports whether the messages of now have domain.BodySignatureHeader.
type SignsBodies func(ctx context.Context) (bool, error)

// Dispatcher makes the delivery attempts. Any number of dispatchers may work on one database.
type Dispatcher struct {
	db      *db.DB
	poster  Poster
	keys    Opener
	signed  SignsBodies
	log     *slog.Logger
	observe Observer
	places  *places
	turns   *outbox.DeliveryTurns // used by one claim at a time
	queue   *lease.Queue[claimedDelivery]
	marks   *lease.Marks[outbox.DeliveryMark]
	// openSecrets is the cache of decrypted secrets (see open).
	openSecrets *lru.Cache[string, string]
	// after calls a function after a duration, unless stop is called before.
	after func(time.Duration, func()) (stop func() bool)
}

// NewDispatcher returns a dispatcher that decrypts secrets with keys.
func NewDispatcher(d *db.DB, poster Poster, keys Opener, signed SignsBodies, log *slog.Logger, observe Observer) *Dispatcher {
	openSecrets, _ := lru.New[string, string](maxOpenSecrets) // fails for sizes below 1
	dispatcher := &Dispatcher{
		db: d, poster: poster, keys: keys, signed: signed, log: log, observe: observe, openSecrets: openSecrets,
		turns: outbox.NewDeliveryTurns(),
		after: func(d time.Duration, fn func()) func() bool { return time.AfterFunc(d, fn).Stop },
	}
	dispatcher.marks = lease.NewMarks(lease.MarksConfig[outbox.DeliveryMark]{
		Log: log, Doing: "mark deliveries", MaxBatch: marksAtOnce, Within: markWithin, Write: dispatcher.markAll,
	})
	dispatcher.queue = lease.NewQueue(lease.Config[claimedDelivery]{
		Name: "deliveries", Log: log, Claim: dispatcher.claim, Do: dispatcher.try, Concurrency: mostTries,
		StopWithin: StopWithin, Stepped: d.Stepped,
		Renew: func(ctx context.Context, held []claimedDelivery) error { return db.RenewLeases(ctx, d, held, leaseFor) },
	})
	dispatcher.places = newPlaces(dispatcher.queue.Wake)
	return dispatcher
}

// Wake makes the dispatcher claim new deliveries at once. It does not wait.
func (d *Dispatcher) Wake() { d.queue.Wake() }

// Run delivers until ctx ends. Then it claims no more, and finishes the attempts in progress. It returns an error
// if that takes longer than StopWithin: these deliveries are sent again when their leases end.
func (d *Dispatcher) Run(ctx context.Context) error { return d.queue.Run(ctx) }

// claimedDelivery is a leased delivery with its acquired place (see places) and the batch of its claim.
type claimedDelivery struct {
	outbox.DeliveryLease
	try   *try
	batch *batch
	at    time.Time // of the claim, by the machine's clock
}

// claim leases due deliveries, at most as many as there are free places, acquires a place for each, and loads the data
// of their attempts. wait is the time until the next claim. The queue's limit is not needed: places keep below it.
func (d *Dispatcher) claim(ctx context.Context, _ int) (rows []claimedDelivery, wait time.Duration, err error) {
	free := d.places.available()
	if free == 0 {
		return nil, pollAgain, nil
	}
	began := time.Now()
	lookAt := max(free, minLookedAt) // subscriptions for choose: the first ones may be of the pool that is full
	claim, err := outbox.ClaimDeliveries(ctx, d.db, d.turns, lookAt, leaseFor, d.places.choose)
	if err != nil {
		return nil, 0, err
	}
	if claim.Dropped > 0 && d.observe.Dropped != nil {
		d.observe.Dropped(claim.Dropped)
	}
	if len(claim.Leases) > 0 {
		loadCtx, cancel := context.WithTimeout(context.WithoutCancel(ctx), beginWithin) // even after a stop
		defer cancel()
		b := d.loadBatch(loadCtx, claim.Leases)
		for _, l := range claim.Leases {
			rows = append(rows, claimedDelivery{l, d.places.startTry(l.Webhook), b, began})
		}
	}
	return rows, d.untilNext(claim), nil
}

// untilNext returns how long to wait after a claim. It is 0 if there may be more to claim or drop. Otherwise it is the
// time until the next delivery is due, but at most pollAgain if due deliveries are left, and at most pollEvery if not.
func (d *Dispatcher) untilNext(claim outbox.Claim) time.Duration {
	wait := pollEvery
	switch {
	case len(claim.Leases) > 0 && d.places.available() > 0, claim.Dropped > 0:
		return 0
	case claim.Left:
		wait = pollAgain
	}
	if !claim.Next.IsZero() {
		wait = min(wait, max(claim.Next.Sub(d.db.Now()), 0))
	}
	return wait
}

// try makes one attempt, which a stop does not interrupt, and marks its outcome. A panic counts as a failed attempt. If
// the batch has no message for the delivery, or the claim is older than beginWithin, try marks the delivery without an
// attempt. In any case it releases the place. An attempt that lasts slowAfter is marked as slow meanwhile.
func (d *Dispatcher) try(ctx context.Context, c claimedDelivery) {
	ctx = context.WithoutCancel(ctx)
	made, ok := false, false
	defer func() { c.try.end(made, ok) }()
	message, noAttempt := c.batch.message(c.DeliveryLease)
	if noAttempt == nil && time.Since(c.at) > beginWithin {
		noAttempt = c.batch.postpone(c.DeliveryLease, 0)
	}
	if noAttempt != nil {
		_ = d.markDelivery(ctx, *noAttempt) // it logs its error
		return
	}

	stop := d.after(slowAfter, c.try.markSlow)
	a, err := domain.RecoverValue(ctx, d.log, "post an event", func() (Answer, error) {
		return d.poster.Post(ctx, message), nil
	})
	if err != nil {
		a = Answer{DeliveryTry: domain.DeliveryTry{At: c.batch.now, Response: err.Error()}}
	}
	stop()
	made, ok = true, a.Succeeded()
	mark := d.markNow(ctx, c.DeliveryLease, a)
	outcome := Retried
	switch err := d.markDelivery(ctx, mark); {
	case err != nil:
		outcome = Lost
	case mark.Status == domain.DeliverySucceeded:
		outcome = Succeeded
	case mark.Status == domain.DeliveryFailed:
		outcome = Failed
	}
	if d.observe.Tried != nil {
		d.observe.Tried(mark.Webhook, outcome, time.Duration(a.DurationMS)*time.Millisecond)
	}
}

// markDelivery marks a delivery. It logs and returns the error if the delivery could not be marked, or the lease had
// ended.
func (d *Dispatcher) markDelivery(ctx context.Context, m outbox.DeliveryMark) error {
	err := d.marks.Mark(ctx, m)
	if err != nil {
		d.log.WarnContext(ctx, "a delivery was not marked; it will be attempted again unless another process has taken it over",
			"webhook", m.Webhook.UUID(), "delivery", m.ID.UUID(), "error", err)
	}
	return err
}

// markAll marks deliveries in one transaction, and logs and reports the subscriptions that this disables. It returns a
// function that returns a delivery's error: errLost if the delivery was not marked.
func (d *Dispatcher) markAll(ctx context.Context, list []outbox.DeliveryMark) (func(outbox.DeliveryMark) error, error) {
	done, err := outbox.MarkDeliveries(ctx, d.db, list)
	if err != nil {
		return nil, err
	}
	for _, id := range done.Disabled {
		d.log.InfoContext(ctx, "a webhook was disabled because its endpoint accepted no events", "webhook", id.UUID())
	}
	if len(done.Disabled) > 0 {
		if d.observe.Disabled != nil {
			d.observe.Disabled(len(done.Disabled))
		}
		d.Wake() // a claim drops their waiting deliveries
	}
	return func(m outbox.DeliveryMark) error {
		if !done.Held[m.ID] {
			return errLost
		}
		return nil
	}, nil
}

// markNow returns the mark of a delivery after an attempt that has just ended (see markOf). A clock that is not trusted
// does not end the attempts.
func (d *Dispatcher) markNow(ctx context.Context, l outbox.DeliveryLease, a Answer) outbox.DeliveryMark {
	now := d.db.Now()
	m := markOf(l, a, now)
	if m.Status != domain.DeliveryFailed || m.Gone {
		return m
	}
	if trusted, err := d.db.ClockTrusted(ctx, now); err != nil || !trusted {
		m.Status, m.Due = domain.DeliveryWaiting, now.Add(backoff.After(l.Tries+1))
	}
	return m
}

// backoff holds the pauses after failed attempts at a delivery. The last pause repeats until domain.WebhookRetryFor
// after the first attempt (decisions 8.4).
var backoff = lease.Backoff{
	5 * time.Second, 30 * time.Second, 2 * time.Minute, 10 * time.Minute, 30 * time.Minute, time.Hour, 2 * time.Hour,
}

// longestPause is the longest Retry-After that is honored.
const longestPause = 2 * time.Hour

// markOf returns the mark of a delivery after an attempt that ended at now. An unsuccessful attempt fails the delivery
// if the status is 410 (Gone), or if domain.WebhookRetryFor has passed since the first attempt. Otherwise the delivery
// waits for the next attempt.
//
// The pause before the next attempt is the backoff, or Retry-After if that is longer, but at most longestPause. The
// last attempt is domain.WebhookRetryFor after the first.
func markOf(l outbox.DeliveryLease, a Answer, now time.Time) outbox.DeliveryMark {
	m := outbox.DeliveryMark{DeliveryLease: l, Try: &a.DeliveryTry, Due: now}
	first := l.FirstTry
	if first.IsZero() { // this was the first
		first = a.At
	}
	end := first.Add(domain.WebhookRetryFor)
	switch {
	case a.Succeeded():
		m.Status = domain.DeliverySucceeded
	case a.StatusCode == http.StatusGone:
		m.Status, m.Gone = domain.DeliveryFailed, true
	case !now.Before(end):
		m.Status = domain.DeliveryFailed
	default:
		pause := max(backoff.After(l.Tries+1), min(a.RetryAfter, longestPause))
		m.Status, m.Due = domain.DeliveryWaiting, now.Add(pause)
		if m.Due.After(end) {
			m.Due = end
		}
	}
	return m
}
