package phishing

import (
	"context"
	"time"
)

// AnswerWithin changes how long a page waits.
func (p *Pages) AnswerWithin(d time.Duration) { p.timeout = d }

// TakeTurns takes all turns of the pages, until give is called.
func (p *Pages) TakeTurns() (give func()) {
	_ = p.slots.Acquire(context.Background(), maxConcurrentPages) // always nil: the context does not end
	return func() { p.slots.Release(maxConcurrentPages) }
}
