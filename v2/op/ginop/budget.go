package ginop

import (
	"context"
	"log/slog"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/ulule/limiter/v3"
	"github.com/ulule/limiter/v3/drivers/store/memory"

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

// budgets counts requests in fixed windows, in a store that replicas may share.
// While the shared store cannot be reached, each process counts for itself.
type budgets struct {
	store limiter.Store
	local limiter.Store
	log   *slog.Logger
	away  atomic.Bool // the shared store, when it was last asked
}

func newBudgets(shared limiter.Store, log *slog.Logger) *budgets {
	local := memory.NewStore()
	if shared == nil {
		shared = local
	}
	return &budgets{store: shared, local: local, log: log}
}

// take counts one request against the budget called name.
func (b *budgets) take(ctx context.Context, name string, limit int64) limiter.Context {
	return b.ask(ctx, limiter.Store.Get, name, limit)
}

// look tells the state of a budget without counting.
func (b *budgets) look(ctx context.Context, name string, limit int64) limiter.Context {
	return b.ask(ctx, limiter.Store.Peek, name, limit)
}

type storeCall func(limiter.Store, context.Context, string, limiter.Rate) (limiter.Context, error)

func (b *budgets) ask(ctx context.Context, call storeCall, name string, limit int64) limiter.Context {
	rate := limiter.Rate{Period: window, Limit: limit}
	state, err := call(b.store, ctx, name, rate)
	if err == nil {
		if b.away.CompareAndSwap(true, false) {
			b.log.InfoContext(ctx, "the shared budgets can be reached again")
		}
		return state
	}
	if b.away.CompareAndSwap(false, true) {
		b.log.WarnContext(ctx, "the shared budgets cannot be reached; counting in this process", "error", err)
	}
	state, _ = call(b.local, ctx, name, rate) // memory does not fail
	return state
}

// report puts the state of a budget into the response's headers, spelled as
// they are documented and not as net/http would.
func report(c *gin.Context, state limiter.Context) {
	h := c.Writer.Header()
	h["X-RateLimit-Limit"] = []string{strconv.FormatInt(state.Limit, 10)}
	h["X-RateLimit-Remaining"] = []string{strconv.FormatInt(state.Remaining, 10)}
	h["X-RateLimit-Reset"] = []string{strconv.FormatInt(state.Reset, 10)}
}

// exceeded is the error of a budget that is used up.
func exceeded(state limiter.Context, what string) *domain.Error {
	wait := min(max(time.Until(time.Unix(state.Reset+1, 0)), time.Second), window)
	return &domain.Error{
		Code: domain.RateLimited, RetryAfter: wait,
		Message: "more than " + strconv.FormatInt(state.Limit, 10) + " requests a minute " + what,
	}
}
