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
	budget budget // of its key; zero if the request is not counted
	room   room
	// nested says that the request is made of a protocol's message, whose turn holds both.
	nested  bool
	entered bool
	leave   func() // releases the place; nil before enter
}

// requestTurn is the gin context key of a request's turn.
const requestTurn = "ginop.turn"

// nestedTurn is the context key that marks a request made of a protocol's message: it shares the message's turn.
type nestedTurn struct{}

// acquireTurn returns a turn for the request, which holds nothing yet; end releases what it acquires.
func (e *Edge) acquireTurn(c *gin.Context, keyBudget budget) *turn {
	ctx := c.Request.Context()
	t := &turn{edge: e, budget: keyBudget, room: room{of: e.bodies, caller: domain.CallerFrom(ctx)}}
	t.nested, _ = ctx.Value(nestedTurn{}).(bool)
	c.Set(requestTurn, t)
	return t
}

// turnOf returns the turn of a request.
func turnOf(c *gin.Context) *turn { return c.MustGet(requestTurn).(*turn) }

// end releases what the turn holds.
func (t *turn) end() {
	if t.leave != nil {
		t.leave()
	}
	t.room.release()
}

// receive reads the request's body, which waits for shares of bytes and needs no place in progress; nil without a body.
// The shares of a nested request are those of its message.
func (t *turn) receive(c *gin.Context, weight int64) ([]byte, error) {
	r := c.Request
	switch {
	case r.Body == nil || r.Body == http.NoBody:
		return nil, nil
	case t.nested:
		return io.ReadAll(r.Body)
	}
	return t.room.receive(r.Context(), r.Body, r.ContentLength, weight)
}

// enter waits for a place in progress. It does nothing if the turn, or that of the message, has one.
func (t *turn) enter(c *gin.Context) (err error) {
	if t.entered || t.nested {
		return nil
	}
	ctx := c.Request.Context() // its time limit began when the body was read
	t.leave, err = t.edge.progress.enter(ctx, domain.CallerFrom(ctx))
	t.entered = err == nil
	return err
}

// Parse runs work, which parses a body of the given size, bounding how many large ones are parsed at a time. It
// returns the error of ctx if that ends first.
func (e *Edge) Parse(ctx context.Context, size int, work func() error) error {
	if size < largeBody {
		return work()
	}
	if err := e.bodies.parsing.Acquire(ctx, 1); err != nil {
		return err
	}
	defer e.bodies.parsing.Release(1)
	return work()
}
