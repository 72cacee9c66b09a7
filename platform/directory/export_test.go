package directory

import (
	"context"
	"net/http"
	"time"
)

// OnlyPublic is the way of requests to addresses that others name.
func OnlyPublic(t *http.Transport) http.RoundTripper { return onlyPublic(t) }

// SetWait replaces how a runner waits between tries.
func (r *Runner) SetWait(wait func(context.Context, time.Duration) error) { r.wait = wait }

// SetBeat replaces what makes a runner extend its leases.
func (r *Runner) SetBeat(ticks <-chan time.Time) {
	r.beat = func() (<-chan time.Time, func()) { return ticks, func() {} }
}
