package webhook

import (
	"context"
	"log/slog"
	"time"

	"partnerapi/db"
	"partnerapi/domain"
)

const (
	// publishBatch is how many events are published in one transaction.
	publishBatch = 500
	// publishPoll is how often it is looked for events that another process wrote.
	publishPoll = 500 * time.Millisecond
	// gatherEvents is how long is waited for more events after one was written, so that
	// a busy service publishes many at once.
	gatherEvents = 50 * time.Millisecond
)

// Publisher moves events from the outbox on to where callers read them and to the
// deliveries of subscriptions. Any number of processes may run one: one of them
// publishes at a time.
type Publisher struct {
	db     *db.DB
	render db.RenderEvents
	log    *slog.Logger
	on     PublisherEvents
	wake   chan struct{}
}

// PublisherEvents are called by a Publisher, each of them unless it is nil. They must
// return at once.
type PublisherEvents struct {
	// Published counts published events.
	Published func(kind domain.EventType, n int)
	// Deliveries says that deliveries of events were made ready.
	Deliveries func()
}

// NewPublisher returns a publisher of events whose bodies render makes.
func NewPublisher(d *db.DB, render db.RenderEvents, log *slog.Logger, on PublisherEvents) *Publisher {
	return &Publisher{db: d, render: render, log: log, on: on, wake: make(chan struct{}, 1)}
}

// Wake has Run look for events. It returns at once.
func (p *Publisher) Wake() {
	select {
	case p.wake <- struct{}{}:
	default: // woken already
	}
}

// Run publishes until ctx ends: events that this process writes within a fraction of a
// second after their commit, those of others as soon as it looks for them.
func (p *Publisher) Run(ctx context.Context) {
	p.db.OnEvents(p.Wake)
	for {
		if err := p.Publish(ctx); err != nil && ctx.Err() == nil {
			p.log.WarnContext(ctx, "events were not published; it will be tried again", "error", err)
		}
		if !p.wait(ctx) {
			return
		}
	}
}

// wait returns when there may be events, and false when ctx has ended.
func (p *Publisher) wait(ctx context.Context) bool {
	poll := time.NewTimer(publishPoll)
	defer poll.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-poll.C:
		return true
	case <-p.wake:
	}
	gather := time.NewTimer(gatherEvents)
	defer gather.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-gather.C:
		return true
	}
}

// Publish publishes what is in the outbox. It does nothing where another process is at
// it. A batch with an event that cannot be published is halved until that event is
// alone, and postponed.
func (p *Publisher) Publish(ctx context.Context) error {
	if waiting, err := p.db.EventsWait(ctx); err != nil || !waiting {
		return err
	}
	for size := publishBatch; ; size = min(2*size, publishBatch) {
		done, err := p.db.PublishEvents(ctx, size, p.render)
		for err != nil && size > 1 && ctx.Err() == nil && !domain.IsCode(err, domain.Unavailable) {
			size /= 2
			done, err = p.db.PublishEvents(ctx, size, p.render)
		}
		if err != nil {
			return err
		}
		p.tell(ctx, &done)
		if done.Busy || done.Taken() < size {
			return nil
		}
	}
}

// tell says what became of a batch.
func (p *Publisher) tell(ctx context.Context, done *db.Publication) {
	if e := done.Postponed; e != nil {
		p.log.ErrorContext(ctx, "an event cannot be published; it will be tried again", "event", e.ID.String(),
			"type", string(e.Type), "client", e.Client.String(), "after", db.PostponeEvent, "error", done.Reason)
	}
	for _, e := range done.Dropped {
		p.log.InfoContext(ctx, "an event was dropped: its object is gone", "event", e.ID.String(), "type", string(e.Type),
			"client", e.Client.String())
	}
	if p.on.Published != nil {
		counts := map[domain.EventType]int{}
		for _, e := range done.Published {
			counts[e.Type]++
		}
		for kind, n := range counts {
			p.on.Published(kind, n)
		}
	}
	if done.Deliveries > 0 && p.on.Deliveries != nil {
		p.on.Deliveries()
	}
}
