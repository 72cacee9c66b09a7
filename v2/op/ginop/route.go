package ginop

import (
	"context"
	"crypto/sha256"
	"errors"
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
// serves. The others answer as unknown paths do.
func (e *Edge) Mount(engine *gin.Engine, set *op.Set, release op.Release) *Surface {
	s := e.Surface(engine, "/v2", renderEnvelope)
	for _, o := range set.All() {
		if o.Meta().Since <= release {
			s.Handle(o.Meta().Method, o.Meta().Path, o.Meta().ID, func(c *gin.Context) error { return e.run(c, o) })
		}
	}
	return s
}

// run answers one request to an operation.
func (e *Edge) run(c *gin.Context, o op.Operation) error {
	ctx := c.Request.Context()
	if err := op.Authorize(ctx, o.Meta().Scope); err != nil {
		return err
	}
	in, body, err := Decode(c, o.Input(), o.New(), false)
	if err != nil {
		return err
	}
	if err := e.spent(c, o, in); err != nil {
		return err
	}
	outcome, err := e.outcome(c, o, in, body)
	if err != nil {
		return err
	}
	if o.Output() == reflect.TypeFor[op.NoContent]() {
		c.Status(outcome.Status)
		c.Writer.WriteHeaderNow()
		return nil
	}
	writeBody(c, outcome.Status, outcome.Body)
	return nil
}

// Decode reads the request into in, a pointer to the input that described
// describes, and returns it with the raw body.
func Decode(c *gin.Context, described *op.Input, in any, lenient bool) (any, []byte, error) {
	r := op.Request{Path: c.Param, Lenient: lenient}
	if c.Request.URL.RawQuery != "" {
		var err error
		if r.Query, err = url.ParseQuery(c.Request.URL.RawQuery); err != nil {
			return nil, nil, domain.ErrInvalid("query", "is not well-formed: each % must begin an escape, and & must part the parameters")
		}
	}
	if described.Body != nil || c.Request.Method == http.MethodPost {
		body, err := readBody(c)
		if err != nil {
			return nil, nil, err
		}
		r.Body = body
	}
	return in, r.Body, described.Bind(in, r)
}

func readBody(c *gin.Context) ([]byte, error) {
	body, err := io.ReadAll(http.MaxBytesReader(c.Writer, c.Request.Body, op.MaxBody))
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &tooLarge):
		return nil, &domain.Error{Code: domain.PayloadTooLarge, Message: "the body is larger than 1 MiB"}
	case err != nil:
		return nil, domain.ErrInvalid("body", "could not be read to its end")
	}
	return body, nil
}

// outcome runs the operation, at most once where the request says so.
func (e *Edge) outcome(c *gin.Context, o op.Operation, in any, body []byte) (domain.Outcome, error) {
	work := func(ctx context.Context) (domain.Outcome, error) {
		out, err := o.Run(ctx, in)
		if err != nil {
			return domain.Outcome{}, err
		}
		if err := e.charge(c, o, out); err != nil {
			return domain.Outcome{}, err
		}
		encoded, err := Encode(out)
		return domain.Outcome{Status: o.Meta().Status, Body: encoded}, err
	}
	key := c.GetHeader("Idempotency-Key")
	if key == "" || o.Meta().Method != http.MethodPost {
		return work(c.Request.Context())
	}
	if !goodIdempotencyKey(key) {
		return domain.Outcome{}, domain.ErrInvalid("Idempotency-Key", "must be at most 255 printable characters")
	}
	if err := o.Validate(in); err != nil { // 400 comes before 409 (decisions 2.4)
		return domain.Outcome{}, err
	}
	return e.Once(c.Request.Context(), key, requestHash(c.Request, body), work)
}

func goodIdempotencyKey(key string) bool {
	if len(key) > 255 {
		return false
	}
	for _, b := range []byte(key) {
		if b < ' ' || b > '~' {
			return false
		}
	}
	return true
}

// requestHash identifies a request: its path, parameters and body.
func requestHash(r *http.Request, body []byte) []byte {
	hash := sha256.New()
	hash.Write([]byte(r.URL.RequestURI()))
	hash.Write([]byte{0})
	hash.Write(body)
	return hash.Sum(nil)
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
// tells nobody of clients beyond the key's access.
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
	state := e.budgets.look(ctx, budgetName(ctx, o, of.BudgetClient()), e.clientLimit(o))
	if state.Remaining > 0 {
		return nil
	}
	report(c, state)
	return exceeded(state, "of this operation for this client")
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
	if state.Reached {
		return exceeded(state, "of this operation for this client")
	}
	return nil
}
