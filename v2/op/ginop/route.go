package ginop

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"reflect"

	"github.com/gin-gonic/gin"

	"partnerapi/domain"
	"partnerapi/v2/op"
)

// Mount adds the routes of v2: every operation of the set that the release
// serves. The others answer as unknown paths do. A call of an operation of
// the set for a request, in any version, leaves a line in the audit trail.
func (e *Edge) Mount(engine *gin.Engine, set *op.Set, release op.Release) *Surface {
	if e.Audit != nil {
		set.AroundWrite = e.audited
	}
	s := e.Surface(engine, "/v2", renderEnvelope)
	paths := locations(set)
	for _, o := range set.All() {
		if o.Meta().Since <= release {
			s.Handle(o.Meta().Method, o.Meta().Path, o.Meta().ID, func(c *gin.Context) error {
				return s.run(c, o, paths[o.Meta().ID])
			})
		}
	}
	return s
}

// run answers one request to an operation. objects is where it creates.
func (s *Surface) run(c *gin.Context, o op.Operation, objects place) error {
	e := s.edge
	if err := op.Authorize(c.Request.Context(), o.Meta()); err != nil {
		return err
	}

	in, body, err := Decode(c, o.Input(), o.New(), false)
	if err != nil {
		return err
	}
	if err := e.spent(c, o, in); err != nil {
		return err
	}

	ctx := c.Request.Context() // another one, since the body is there
	var outcome domain.Outcome
	if key := c.GetHeader("Idempotency-Key"); key != "" && o.Meta().Method == http.MethodPost {
		outcome, err = e.atMostOnce(c, o, in, key, body)
	} else {
		outcome, err = e.answer(ctx, c, o, in, o.Run)
	}
	if err != nil {
		return err
	}

	if objects.path != "" {
		locate(c, s.prefix, objects, outcome.Body)
	}
	if o.Output() == reflect.TypeFor[op.NoContent]() {
		c.Status(outcome.Status)
		c.Writer.WriteHeaderNow()
		return nil
	}
	writeBody(c, outcome.Status, outcome.Body)
	return nil
}

// runner is Run, or RunPrepared, of an operation.
type runner func(context.Context, any) (any, error)

// answer runs the operation and returns what it is answered with. ctx is that of the
// request, or of a transaction within it.
func (e *Edge) answer(ctx context.Context, c *gin.Context, o op.Operation, in any, run runner) (domain.Outcome, error) {
	out, err := run(ctx, in)
	if err != nil {
		return domain.Outcome{}, err
	}
	if err := e.charge(c, o, out); err != nil {
		return domain.Outcome{}, err
	}
	encoded, err := Encode(out)
	return domain.Outcome{Status: o.Meta().Status, Body: encoded}, err
}

// Decode reads the request into in, a pointer to the input that described
// describes, and returns it with the raw body. Once the body is there, the request
// waits for its place in progress.
func Decode(c *gin.Context, described *op.Input, in any, lenient bool) (any, []byte, error) {
	r := op.Request{Path: c.Param, Lenient: lenient, Faults: op.FaultsOf(c.Request.Context())}
	if c.Request.URL.RawQuery != "" {
		var err error
		if r.Query, err = url.ParseQuery(c.Request.URL.RawQuery); err != nil {
			return nil, nil, domain.ErrInvalid("query",
				"is not well-formed: each % must begin an escape, and & must part the parameters")
		}
	}
	t := turnOf(c)
	var err error
	switch {
	case described.Body != nil:
		r.Body, err = t.receive(c, described.Weight())
	case !lenient:
		r.Body, err = firstByte(c)
	}
	if err != nil {
		return nil, nil, err
	}
	if err := t.enter(c); err != nil {
		return nil, nil, err
	}
	err = t.edge.Parse(c.Request.Context(), len(r.Body), func() error { return described.Bind(in, r) })
	return in, r.Body, err
}

// firstByte reads whether there is a body, where there must be none.
func firstByte(c *gin.Context) ([]byte, error) {
	if _, promised := c.Get(unreadBody); promised {
		return []byte{0}, nil
	}
	var first [1]byte
	switch n, err := io.ReadFull(c.Request.Body, first[:]); {
	case n > 0:
		return first[:], nil
	case err != io.EOF:
		return nil, cutBody()
	}
	return nil, nil
}

// budgetName names the budget of a caller, an operation and a client.
func budgetName(ctx context.Context, o op.Operation, client domain.ClientID) string {
	return "client/" + domain.CallerFrom(ctx).Prefix + "/" + o.Meta().ID + "/" + client.String()
}

func (e *Edge) clientLimit(o op.Operation) int64 {
	return int64(o.Meta().PerClient) * e.Limits.PerClientFactor
}

// spent refuses a request whose client's budget is known to be used up before
// any work is done. Only a client that the key reached is ever charged, so this
// reveals no client beyond the key's access.
func (e *Edge) spent(c *gin.Context, o op.Operation, in any) error {
	if o.Meta().PerClient == 0 {
		return nil
	}
	path := reflect.ValueOf(in).Elem().FieldByName("Path")
	if !path.IsValid() {
		return nil
	}
	of, ok := path.Interface().(op.OfClient)
	if !ok {
		return nil
	}
	ctx := c.Request.Context()
	state := e.budgets.peek(ctx, budgetName(ctx, o, of.BudgetClient()), e.clientLimit(o))
	if state.remaining() > 0 {
		return nil
	}
	report(c, state)
	return e.budgets.refusal(state, "of this operation for this client")
}

// charge counts the call against the budget of the client that the output is
// about: by now it is known to be within the key's reach.
func (e *Edge) charge(c *gin.Context, o op.Operation, out any) error {
	if o.Meta().PerClient == 0 {
		return nil
	}
	of, ok := out.(op.OfClient)
	if !ok {
		return fmt.Errorf("operation %s: %T names no client", o.Meta().ID, out)
	}
	ctx := c.Request.Context()
	state := e.budgets.take(ctx, budgetName(ctx, o, of.BudgetClient()), e.clientLimit(o))
	report(c, state)
	if state.exceeded() {
		return e.budgets.refusal(state, "of this operation for this client")
	}
	return nil
}
