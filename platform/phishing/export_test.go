package phishing

import (
	"context"
	"runtime"
	"time"
)

// AnswerWithin changes how long a page waits.
func (p *Pages) AnswerWithin(d time.Duration) { p.timeout = d }

// TakeTurns takes all turns of the pages, until give is called.
func (p *Pages) TakeTurns() (give func()) {
	_ = p.slots.Acquire(context.Background(), maxConcurrentPages) // always nil: the context does not end
	return func() { p.slots.Release(maxConcurrentPages) }
}

// AwaitTurns waits until n requests for links are in progress or wait.
func (p *Pages) AwaitTurns(n int) {
	for requests := -1; requests != n; runtime.Gosched() {
		requests = 0
		p.links.mu.Lock()
		for _, q := range p.links.queue {
			requests += q.requests
		}
		p.links.mu.Unlock()
	}
}
