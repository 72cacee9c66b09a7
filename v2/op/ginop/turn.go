package ginop

import (
	"context"
	"io"
	"net/http"

	"github.com/gin-gonic/gin"

	"partnerapi/domain"
)

// turn holds a request's shares of the bounded resources: bytes for its body, then a place in progress.
type turn struct {
	edge   *Edge
	caller *domain.Caller
	budget budget // of the caller's key; zero if the request is not counted
	// nested says that the request is part of a protocol's message, whose turn holds the shares.
	nested   bool
	entered  bool     // whether the turn has a place in progress
	releases []func() // each releases an acquired share
}

// requestTurn is the gin context key of a request's turn.
const requestTurn = "ginop.turn"

// nestedTurn is the context key that marks a request made of a protocol's message: it shares the message's turn.
type nestedTurn struct{}

// newTurn returns a turn for the request. It holds nothing yet; end releases what it acquires. A request made of a
// protocol's message is nested: its turn acquires nothing, for the message's turn holds all that it needs.
func (e *Edge) newTurn(c *gin.Context, keyBudget budget) *turn {
	ctx := c.Request.Context()
	t := &turn{edge: e, budget: keyBudget, caller: domain.CallerFrom(ctx)}
	t.nested, _ = ctx.Value(nestedTurn{}).(bool)
	c.Set(requestTurn, t)
	return t
}

// turnOf returns the turn of a request, which holds its shares of the bounded resources.
func turnOf(c *gin.Context) *turn { return c.MustGet(requestTurn).(*turn) }

// keep keeps the function that releases an acquired share, for the end of the turn. It returns err; if that is not nil,
// no share was acquired.
func (t *turn) keep(release func(), err error) error {
	if err == nil {
		t.releases = append(t.releases, release)
	}
	return err
}

// end releases the shares of the turn.
func (t *turn) end() {
	for _, release := range t.releases {
		release()
	}
}

// receive reads the request's body; nil without one. It waits for shares of the size that all bodies may have in sum,
// where each byte counts weight times. A nested request acquires no shares: its message's turn holds them.
func (t *turn) receive(c *gin.Context, weight int64) ([]byte, error) {
	r := c.Request
	switch {
	case r.Body == nil || r.Body == http.NoBody:
		return nil, nil
	case t.nested:
		return io.ReadAll(r.Body)
	}
	return t.receiveBounded(r.Context(), r.Body, r.ContentLength, weight)
}

// enter makes the request one of those in progress, which are bounded per key, per partner and for the process. It does
// nothing if the request, or its message, is one already. It waits up to turnTimeout for a place of the key only. The
// error is RateLimited if the key or its partner has no place left, and Unavailable if the process has none.
func (t *turn) enter(c *gin.Context) error {
	if t.entered || t.nested {
		return nil
	}
	ctx, p := c.Request.Context(), t.edge.progress // the context's time limit began when the body was read
	err := t.keep(p.keys.acquire(ctx, t.caller.Key, 1, turnTimeout,
		busy("more than 16 requests with this key are in progress; try again in a moment")))
	if err != nil {
		return err
	}
	err = t.keep(p.partners.acquire(ctx, t.caller.Partner, 1, 0,
		busy("more than 128 requests with keys of this partner are in progress; try again in a moment")))
	if err != nil {
		return err
	}
	err = t.keep(acquire(ctx, p.all, 1, 0, overloaded("too many requests are in progress; try again in a moment")))
	t.entered = err == nil
	return err
}

// Parse runs work, which parses a body of the given size, bounding how many large ones are parsed at a time. It
// returns the error of ctx if that ends first.
func (e *Edge) Parse(ctx context.Context, size int, work func() error) error {
	if size < largeBody {
		return work()
	}
	if err := e.parsing.Acquire(ctx, 1); err != nil {
		return err
	}
	defer e.parsing.Release(1)
	return work()
}
