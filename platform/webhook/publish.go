package webhook

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	"partnerapi/db"
	"partnerapi/db/outbox"
	"partnerapi/domain"
	"partnerapi/platform/lease"
)

const (
	// publishBatch is the maximum number of events that are published in one transaction.
	publishBatch = 500
	// publishPoll is how often events that other processes wrote are polled.
	publishPoll = 500 * time.Millisecond
	// gatherPause is the wait for more events after an event was written, so that a busy service publishes many in one
	// transaction.
	gatherPause = 50 * time.Millisecond
)

// Publisher moves events from the outbox to the table that callers read and to the deliveries of subscriptions. Any
// number of processes may run one; one of them publishes at a time.
type Publisher struct {
	db     *db.DB
	render outbox.RenderEvents
	log    *slog.Logger
	// onQueued is called after deliveries were queued. It must return at once.
	onQueued func()
	loop     *lease.Loop
	// gathering is true from Wake until it has woken the loop.
	gathering atomic.Bool
}

// NewPublisher returns a publisher of events, whose bodies render returns. A panic of render postpones an event like an
// error. onQueued is called after deliveries were queued, and must return at once.
func NewPublisher(d *db.DB, render outbox.RenderEvents, log *slog.Logger, onQueued func()) *Publisher {
	safeRender := func(ctx context.Context, events []db.OutboxEvent) ([]string, error) {
		return domain.RecoverValue(ctx, log, "render events", func() ([]string, error) { return render(ctx, events) })
	}
	p := &Publisher{db: d, render: safeRender, log: log, onQueued: onQueued}
	p.loop = lease.NewLoop(log, "publish events", publishPoll, func(ctx context.Context) (time.Duration, error) {
		return publishPoll, p.Publish(ctx)
	})
	return p
}

// Wake makes Run publish after gatherPause, together with the events of other calls until then. It returns at once.
func (p *Publisher) Wake() {
	if p.gathering.CompareAndSwap(false, true) {
		time.AfterFunc(gatherPause, func() {
			p.gathering.Store(false)
			p.loop.Wake()
		})
	}
}

// Run publishes until ctx ends. Events of this process are published gatherPause after their commit, and those of other
// processes at the next poll.
func (p *Publisher) Run(ctx context.Context) {
	p.db.OnEvents(p.Wake)
	p.loop.Run(ctx)
}

// Publish publishes the events in the outbox. It does nothing while another process publishes. After an error other
// than Unavailable it retries with half of the batch, down to one event. Later batches double again, up to
// publishBatch. outbox.PublishEvents postpones an event that cannot be published alone.
func (p *Publisher) Publish(ctx context.Context) error {
	if waiting, err := outbox.EventsWait(ctx, p.db); err != nil || !waiting {
		return err
	}
	for size := publishBatch; ; size = min(2*size, publishBatch) {
		done, err := outbox.PublishEvents(ctx, p.db, size, p.render)
		for err != nil && size > 1 && ctx.Err() == nil && !domain.IsCode(err, domain.Unavailable) {
			size /= 2
			done, err = outbox.PublishEvents(ctx, p.db, size, p.render)
		}
		if err != nil {
			return err
		}
		p.afterBatch(ctx, &done)
		if done.Busy || done.Taken() < size { // another process publishes, or no more events wait
			return nil
		}
	}
}

// afterBatch logs the postponed and dropped events of a batch, and calls onQueued if the batch has deliveries.
func (p *Publisher) afterBatch(ctx context.Context, done *outbox.Publication) {
	if e := done.Postponed; e != nil {
		p.log.ErrorContext(ctx, "an event cannot be published; it will be retried", "event", e.ID.String(),
			"type", string(e.Type), "client", e.Client.String(), "after", outbox.PostponeEvent, "error", done.Reason)
	}
	for _, e := range done.Dropped {
		p.log.InfoContext(ctx, "an event was dropped because its object is gone or its client is archived", "event", e.ID.String(), "type", string(e.Type),
			"client", e.Client.String())
	}
	if done.Deliveries > 0 {
		p.onQueued()
	}
}
