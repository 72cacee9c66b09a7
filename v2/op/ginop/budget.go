package ginop

import (
	"context"
	"log/slog"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/gin-gonic/gin"

	"partnerapi/domain"
)

// Limits are how many requests a minute are allowed.
type Limits struct {
	// PerKey counts all requests of a key, both versions together.
	PerKey int64
	// PerAddress counts the requests of a remote address without a valid key.
	PerAddress int64
	// PerClientFactor multiplies the operations' own budgets per client.
	PerClientFactor int64
}

// DefaultLimits are the limits of decisions 2.2 and 2.3.
var DefaultLimits = Limits{PerKey: 600, PerAddress: 60, PerClientFactor: 1}

// window is how long a budget lasts: it begins with its first request.
const window = time.Minute

// Store counts requests in fixed windows, which begin with their first request.
// It is safe for concurrent use.
type Store interface {
	// Add adds n to the count of a name and returns the count and when its
	// window ends: a request at that time begins a new one. n is 0 to look
	// only, and -1 to take a request back.
	Add(ctx context.Context, name string, n int64, window time.Duration) (count int64, end time.Time, err error)
}

// budget is the state of a budget.
type budget struct {
	limit, count int64
	end          time.Time
}

func (b budget) remaining() int64 { return max(b.limit-b.count, 0) }

// exceeded reports whether the request that was counted last is one too many.
func (b budget) exceeded() bool { return b.count > b.limit }

// budgets counts requests in a store that replicas may share. While the shared
// store cannot be reached, each process counts for itself.
type budgets struct {
	store Store
	local Store
	clock domain.Clock
	log   *slog.Logger
	away  atomic.Bool // the shared store, when it was last asked
}

func newBudgets(shared Store, clock domain.Clock, log *slog.Logger) *budgets {
	local := newMemory(clock)
	if shared == nil {
		shared = local
	}
	return &budgets{store: shared, local: local, clock: clock, log: log}
}

// take counts one request against the budget called name.
func (b *budgets) take(ctx context.Context, name string, limit int64) budget {
	return b.add(ctx, name, 1, limit)
}

// peek returns the state of a budget without counting.
func (b *budgets) peek(ctx context.Context, name string, limit int64) budget {
	return b.add(ctx, name, 0, limit)
}

// giveBack takes back a request that take counted.
func (b *budgets) giveBack(ctx context.Context, name string) { b.add(ctx, name, -1, 0) }

func (b *budgets) add(ctx context.Context, name string, n, limit int64) budget {
	count, end, err := b.store.Add(ctx, name, n, window)
	switch {
	case err != nil:
		if b.away.CompareAndSwap(false, true) {
			b.log.WarnContext(ctx, "the shared budgets cannot be reached; counting in this process", "error", err)
		}
		count, end, _ = b.local.Add(ctx, name, n, window) // memory does not fail
	case b.away.CompareAndSwap(true, false):
		b.log.InfoContext(ctx, "the shared budgets can be reached again")
	}
	return budget{limit: limit, count: count, end: end}
}

// report puts the state of a budget into the response's headers, spelled as
// they are documented and not as net/http would. The reset is rounded up: a
// request at that second passes (decisions 3.12).
func report(c *gin.Context, b budget) {
	h := c.Writer.Header()
	reset := b.end.Add(time.Second - 1).Unix()
	values := []string{ // one allocation for all three
		strconv.FormatInt(b.limit, 10), strconv.FormatInt(b.remaining(), 10), strconv.FormatInt(reset, 10),
	}
	h["X-RateLimit-Limit"], h["X-RateLimit-Remaining"], h["X-RateLimit-Reset"] = values[:1:1], values[1:2:2], values[2:]
}

// refusal is the error of a budget that is used up.
func (b *budgets) refusal(state budget, what string) *domain.Error {
	return &domain.Error{
		Code: domain.RateLimited, RetryAfter: max(state.end.Sub(b.clock.Now()), 1),
		Message: "more than " + strconv.FormatInt(state.limit, 10) + " requests a minute " + what,
	}
}
