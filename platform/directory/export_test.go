package directory

import (
	"context"
	"net/http"
	"time"

	"partnerapi/domain"
)

// OnlyPublic is the way of requests to addresses that others name.
func OnlyPublic(t *http.Transport) http.RoundTripper { return onlyPublic(t) }

// ConnectAt is NewConnect on a clock, with a way to wait.
func ConnectAt(e Endpoints, clock domain.Clock, wait func(context.Context, time.Duration) error) Connect {
	c := newConnector(e, nil)
	c.clock, c.wait = clock, wait
	return c.connect
}

// SetWait replaces how a runner waits between tries.
func (r *Runner) SetWait(wait func(context.Context, time.Duration) error) { r.wait = wait }

// SetBatchSize replaces how many accounts a runner applies in one transaction.
func (r *Runner) SetBatchSize(n int) { r.batchSize = n }

// SetBeat replaces what makes a runner extend its leases.
func (r *Runner) SetBeat(ticks <-chan time.Time) {
	r.startTicker = func() (<-chan time.Time, func()) { return ticks, func() {} }
}
