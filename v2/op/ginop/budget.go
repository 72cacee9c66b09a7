package ginop

import (
	"context"
	"log/slog"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gin-gonic/gin"

	"partnerapi/domain"
)

// Limits are the requests allowed per minute.
type Limits struct {
	// PerKey is the limit of all requests of a key, of both versions together.
	PerKey int64
	// PerAddress is the limit of the requests of a remote address without a valid key.
	PerAddress int64
	// PerClientFactor multiplies the limits per client of operations (op.Meta.PerClient).
	PerClientFactor int64
}

// DefaultLimits are the limits of decisions 2.2 and 2.3.
var DefaultLimits = Limits{PerKey: 600, PerAddress: 60, PerClientFactor: 1}

// window is the length of a budget; it starts with the budget's first request.
const window = time.Minute

// Store counts requests in fixed windows that start with their first request. It is safe for concurrent use.
type Store interface {
	// Add adds n to the count of a name and returns the count and how long its window still lasts: a request after that
	// begins a new window. n is 0 to read the count, and -1 to undo a request; then no window begins.
	Add(ctx context.Context, name string, n int64, window time.Duration) (count int64, left time.Duration, err error)
}

// budget is the state of a budget.
type budget struct {
	limit, count int64
	left         time.Duration // until its window ends
}

// remaining returns how many more requests the budget allows.
func (b budget) remaining() int64 { return max(b.limit-b.count, 0) }

// exceeded reports whether the last counted request is over the limit.
func (b budget) exceeded() bool { return b.count > b.limit }

// budgets counts requests in a store that replicas may share or, while that cannot be reached, in a local one.
type budgets struct {
	store        Store
	local        Store
	log          *slog.Logger
	sharedIsDown atomic.Bool // whether the last call to the shared store failed
}

// newBudgets returns budgets in a shared store, with a local one as fallback. If shared is nil, all are local.
func newBudgets(shared Store, clock domain.Clock, log *slog.Logger) *budgets {
	local := newMemory(clock)
	if shared == nil {
		shared = local
	}
	return &budgets{store: shared, local: local, log: log}
}

// charge counts one request against the named budget, and returns its new state.
func (b *budgets) charge(ctx context.Context, name string, limit int64) budget {
	return b.add(ctx, name, 1, limit)
}

// peek returns the state of a budget without counting.
func (b *budgets) peek(ctx context.Context, name string, limit int64) budget {
	return b.add(ctx, name, 0, limit)
}

// refund takes back one request that the named budget counted. The limit does not matter: the new state is dropped.
func (b *budgets) refund(ctx context.Context, name string) { b.add(ctx, name, -1, 0) }

// add adds n to the named budget, in the shared store or, if that fails, in the local one.
func (b *budgets) add(ctx context.Context, name string, n, limit int64) budget {
	count, left, err := b.store.Add(ctx, name, n, window)
	switch {
	case err != nil:
		if b.sharedIsDown.CompareAndSwap(false, true) {
			b.log.WarnContext(ctx, "the shared request budgets are unavailable; counting in this process", "error", err)
		}
		count, left, _ = b.local.Add(ctx, name, n, window) // memory does not fail
	case b.sharedIsDown.CompareAndSwap(true, false):
		b.log.InfoContext(ctx, "the shared request budgets are available again")
	}
	return budget{limit: limit, count: count, left: left}
}

// setBudgetHeaders sets the rate limit headers of a response, in their documented spelling rather than net/http's.
// The reset is rounded up, so that a request at that second passes (decisions 3.12).
func setBudgetHeaders(c *gin.Context, b budget, now time.Time) {
	h := c.Writer.Header()
	reset := now.Add(b.left + time.Second - 1).Unix()
	values := []string{ // one array for the three slices
		strconv.FormatInt(b.limit, 10), strconv.FormatInt(b.remaining(), 10), strconv.FormatInt(reset, 10),
	}
	h["X-RateLimit-Limit"], h["X-RateLimit-Remaining"], h["X-RateLimit-Reset"] = values[:1:1], values[1:2:2], values[2:]
}

// refusal returns RateLimited for the budget, which is used up. what says which requests the budget counts.
func (b budget) refusal(what string) *domain.Error {
	wait := max(b.left, time.Nanosecond) // 0 would mean no Retry-After
	return &domain.Error{
		Code: domain.RateLimited, RetryAfter: wait,
		Message: "more than " + strconv.FormatInt(b.limit, 10) + " requests a minute " + what + "; retry after the time in Retry-After",
	}
}

// memory is a Store of this process. Calls of Add delete ended windows, at most once in the length of a window.
type memory struct {
	clock domain.Clock

	mu      sync.Mutex
	windows map[string]*windowCount
	sweep   time.Duration // when to delete ended windows next, by Elapsed
}

type windowCount struct {
	n   int64
	end time.Duration // by Elapsed: setting the clock back must not make a window longer
}

// newMemory returns an empty store.
func newMemory(clock domain.Clock) *memory {
	return &memory{clock: clock, windows: map[string]*windowCount{}}
}

// Add adds n to the count of a name, never below 0, and returns it with the rest of its window. Its error is always nil.
func (m *memory) Add(_ context.Context, name string, n int64, window time.Duration) (int64, time.Duration, error) {
	now := m.clock.Elapsed()
	m.mu.Lock()
	defer m.mu.Unlock()
	m.evictEnded(now, window)

	w, ok := m.windows[name]
	if !ok || now >= w.end {
		w = &windowCount{end: now + window}
		if n > 0 { // only a request begins a window
			m.windows[name] = w
		}
	}
	w.n = max(w.n+n, 0)
	return w.n, w.end - now, nil
}

// evictEnded deletes the windows that have ended, at most once in the length of a window.
func (m *memory) evictEnded(now, window time.Duration) {
	if now < m.sweep {
		return
	}
	for name, w := range m.windows {
		if now >= w.end {
			delete(m.windows, name)
		}
	}
	m.sweep = now + window
}
