package webhook

import (
	"context"
	"errors"
	"sync"
	"time"

	"partnerapi/db"
	"partnerapi/domain"
)

const (
	// marksAtOnce is how many deliveries are marked in one transaction.
	marksAtOnce = 500
	// markTries is how often a mark is tried, without which its delivery is repeated,
	// and markAgain the pause between two tries.
	markTries = 5
	markAgain = 200 * time.Millisecond
)

// errLost says that a lease ended before its delivery was marked.
var errLost = errors.New("the lease has ended, or the subscription was deleted")

// marks is the queue of deliveries that are not marked yet.
type marks struct {
	mu      sync.Mutex
	waiting []waitingMark
	// leading is true while a caller of mark marks the others too.
	leading bool
}

type waitingMark struct {
	db.DeliveryMark
	done chan<- error
}

// mark marks a delivery. Calls that arrive while a transaction runs are marked
// together in the next one (group commit).
func (d *Dispatcher) mark(ctx context.Context, m db.DeliveryMark) error {
	done := make(chan error, 1)
	d.marks.mu.Lock()
	d.marks.waiting = append(d.marks.waiting, waitingMark{m, done})
	lead := !d.marks.leading
	d.marks.leading = true
	d.marks.mu.Unlock()

	for lead {
		group := d.marks.next()
		lead = group != nil
		d.markGroup(ctx, group)
	}
	return <-done
}

// next takes the marks that wait, up to marksAtOnce; nil where none does, and nobody
// leads any more.
func (m *marks) next() []waitingMark {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.waiting) == 0 {
		m.leading = false
		return nil
	}
	n := min(len(m.waiting), marksAtOnce)
	group := m.waiting[:n:n]
	m.waiting = m.waiting[n:]
	return group
}

// markGroup marks deliveries in one transaction, and each on its own if that fails
// although the database is there.
func (d *Dispatcher) markGroup(ctx context.Context, group []waitingMark) {
	if len(group) == 0 {
		return
	}
	list := make([]db.DeliveryMark, len(group))
	for i, m := range group {
		list[i] = m.DeliveryMark
	}
	done, err := d.markAll(ctx, list)
	if err != nil && len(group) > 1 && !domain.IsCode(err, domain.Unavailable) {
		for _, m := range group {
			d.markGroup(ctx, []waitingMark{m})
		}
		return
	}

	for _, m := range group {
		lost := err
		if err == nil && !done.Held[m.ID] {
			lost = errLost
		}
		m.done <- lost
	}
	if len(done.Disabled) == 0 {
		return
	}
	for _, id := range done.Disabled {
		d.log.InfoContext(ctx, "a subscription was disabled, for its endpoint takes no events", "webhook", id.UUID())
	}
	if d.observe.Disabled != nil {
		d.observe.Disabled(len(done.Disabled))
	}
	d.Wake() // what waits for them is to be given up
}

// markAll is db.MarkDeliveries, tried again while the database is away or rolls it
// back.
func (d *Dispatcher) markAll(ctx context.Context, list []db.DeliveryMark) (db.Marked, error) {
	ctx, cancel := context.WithTimeout(ctx, markWithin)
	defer cancel()
	for try := 1; ; try++ {
		done, err := d.db.MarkDeliveries(ctx, list)
		if err == nil || try == markTries || !domain.IsCode(err, domain.Unavailable) || ctx.Err() != nil {
			return done, err
		}
		select {
		case <-ctx.Done():
		case <-time.After(markAgain):
		}
	}
}
