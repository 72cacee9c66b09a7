package ginop

import (
	"context"
	"io"
	"net/http"

	"github.com/gin-gonic/gin"

	"partnerapi/domain"
)

// turn is what a request holds of what is bounded: bytes for its body, then a
// place in progress.
type turn struct {
	edge   *Edge
	budget budget // of its key; zero where the request is not counted
	room   room
	// inside says that the request is part of another one, which holds both.
	inside  bool
	entered bool
	leave   func()
}

// requestTurn is where a request's context holds its turn, and insideTurn where the
// context of a message does for the requests that it is made into.
const requestTurn = "ginop.turn"

type insideTurn struct{}

// beginTurn has the request take what is bounded from now on; end gives it back.
func (e *Edge) beginTurn(c *gin.Context, of budget) *turn {
	ctx := c.Request.Context()
	t := &turn{edge: e, budget: of, room: room{of: e.bodies, caller: domain.CallerFrom(ctx)}}
	t.inside, _ = ctx.Value(insideTurn{}).(bool)
	c.Set(requestTurn, t)
	return t
}

// turnOf is the turn of a request.
func turnOf(c *gin.Context) *turn { return c.MustGet(requestTurn).(*turn) }

func (t *turn) end() {
	if t.leave != nil {
		t.leave()
	}
	t.room.give()
}

// receive reads the request's body. Its key waits for room among the bodies under
// way. It holds no place.
func (t *turn) receive(c *gin.Context, weight int64) ([]byte, error) {
	r := c.Request
	switch {
	case r.Body == nil || r.Body == http.NoBody:
		return nil, nil
	case t.inside:
		return io.ReadAll(r.Body)
	}
	return t.room.receive(r.Context(), r.Body, r.ContentLength, weight)
}

// enter waits for a place in progress.
func (t *turn) enter(c *gin.Context) (err error) {
	if t.entered || t.inside {
		return nil
	}
	ctx := c.Request.Context() // its time begins when the body was read
	t.leave, err = t.edge.progress.enter(ctx, domain.CallerFrom(ctx))
	t.entered = err == nil
	return err
}

// Parse runs work, which reads a body of a size into values. Few large ones are
// read at a time: it returns the error of ctx where its turn did not come.
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
