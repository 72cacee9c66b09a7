package webhook

import (
	"context"
	"io"
	"log"
	"net"
	"sync"
	"time"

	"partnerapi/db/outbox"
)

// What tests hold against each other.
const (
	LeaseFor   = leaseFor
	QuickTries = quickTries
)

// Backoff is the pauses after failed tries.
var Backoff = backoff

// Judge says what becomes of a delivery after a try.
func Judge(l outbox.DeliveryLease, a Answer, now time.Time) outbox.DeliveryMark {
	return markOf(l, a, now)
}

// Discard is a log whose lines are dropped.
var Discard = log.New(io.Discard, "", 0)

// Once makes all tries that are due, and waits for them. It returns how many
// deliveries it claimed.
func (d *Dispatcher) Once(ctx context.Context) (claimed int, err error) {
	for {
		rows, wait, err := d.claim(ctx, mostTries)
		var tries sync.WaitGroup
		for _, row := range rows {
			tries.Go(func() { d.try(ctx, row) })
		}
		tries.Wait()
		claimed += len(rows)
		if err != nil || len(rows) == 0 && wait > 0 { // a wait of 0 asks to claim again
			return claimed, err
		}
	}
}

// UseTimer has the dispatcher wait by after.
func (d *Dispatcher) UseTimer(after func(time.Duration, func()) (stop func() bool)) { d.after = after }

// UseDial has endpoints connect by dial.
func (e *Endpoints) UseDial(dial func(ctx context.Context, network, address string) (net.Conn, error)) {
	e.transport.DialContext = dial
}
