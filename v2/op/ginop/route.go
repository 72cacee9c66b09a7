package ginop

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"strings"

	"github.com/gin-gonic/gin"

	"partnerapi/domain"
	"partnerapi/v2/op"
)

// Mount adds the routes of v2: those of all operations of the set that the release serves. Other operations are
// answered like unknown paths. With Audit, it also sets the set's AroundWrite to auditWrite, for all surfaces.
func (e *Edge) Mount(engine *gin.Engine, set *op.Set, release op.Release) *Surface {
	if e.Audit != nil {
		set.AroundWrite = e.auditWrite
	}
	e.release = release
	s := e.Surface(engine, "/v2", e.renderEnvelope)
	places := locations(set)
	for _, o := range set.All() {
		if o.Meta().Since <= release {
			described := set.InputOf(o)
			s.Handle(o.Meta().Method, o.Meta().Path, o.Meta().ID, func(c *gin.Context) error {
				return s.run(c, o, described, places[o.Meta().ID])
			})
		}
	}
	s.refuseMethods(set, release)
	return s
}

// methods are the methods that HTTP defines for paths of an API.
var methods = []string{
	http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete, http.MethodOptions,
	http.MethodTrace,
}

// refuseMethods adds routes that answer MethodNotAllowed, and name the methods that the release serves in Allow: those
// of methods that no release has on a path that the release serves. Methods of later releases stay unknown routes, as
// the interface promises (decisions 2.4).
func (s *Surface) refuseMethods(set *op.Set, release op.Release) {
	declared, served := map[string][]string{}, map[string][]string{}
	for _, o := range set.All() {
		m := o.Meta()
		all := []string{m.Method}
		if m.Method == http.MethodGet {
			all = append(all, http.MethodHead)
		}
		declared[m.Path] = append(declared[m.Path], all...)
		if m.Since <= release {
			served[m.Path] = append(served[m.Path], all...)
		}
	}
	for path, allowed := range served {
		slices.Sort(allowed)
		refusal := &domain.Error{
			Code: domain.MethodNotAllowed, Message: "no release supports this method on this path; the path supports " + strings.Join(allowed, ", "),
		}
		for _, method := range methods {
			if !slices.Contains(declared[path], method) {
				s.group.Handle(method, path, func(c *gin.Context) {
					if slices.ContainsFunc(c.Params, func(p gin.Param) bool { return p.Value == "" }) { // as in /clients//admins
						s.edge.noRoute(c)
						return
					}
					c.Header("Allow", strings.Join(allowed, ", "))
					s.serve(c, "unknown", func(*gin.Context) error { return refusal })
				})
			}
		}
	}
}

// run answers a request to an operation: it checks the scope, decodes the input, which described describes, runs the
// operation and writes its outcome. place says where the objects that it creates are; its path is empty if the response has no Location.
func (s *Surface) run(c *gin.Context, o op.Operation, described *op.Input, place objectPlace) error {
	e := s.edge
	if err := op.Authorize(c.Request.Context(), o.Meta()); err != nil {
		return err
	}

	in, body, err := Decode(c, described, o.New(), false /* lenient */)
	if err != nil {
		return err
	}
	if err := e.rejectOverBudget(c, o, in); err != nil {
		return err
	}

	ctx := c.Request.Context() // a new one since the body was read (limitTime)
	var outcome domain.Outcome
	if key := c.GetHeader("Idempotency-Key"); key != "" && o.Meta().Method == http.MethodPost {
		outcome, err = e.runAtMostOnce(c, o, in, key, body)
	} else {
		outcome, err = e.answer(ctx, c, o, in, o.Run)
	}
	if err != nil {
		return err
	}

	if place.path != "" {
		setLocation(c, s.prefix, place, outcome.Body)
	}
	if o.Output() == reflect.TypeFor[op.NoContent]() {
		c.Status(outcome.Status)
		c.Writer.WriteHeaderNow()
		return nil
	}
	writeBody(c, outcome.Status, outcome.Body)
	return nil
}

// runner is the Run or the RunPrepared of an operation.
type runner func(context.Context, any) (any, error)

// answer runs the operation, counts the call against the client's budget and returns the outcome. ctx is the request's,
// or that of a transaction within it. If the budget is used up, the error also undoes such a transaction.
func (e *Edge) answer(ctx context.Context, c *gin.Context, o op.Operation, in any, run runner) (domain.Outcome, error) {
	out, err := run(e.release.In(ctx), in)
	if err != nil {
		return domain.Outcome{}, err
	}
	if err := e.charge(c, o, out); err != nil {
		return domain.Outcome{}, err
	}
	encoded, err := Encode(e.release.View(out))
	return domain.Outcome{Status: o.Meta().Status, Body: encoded}, err
}

// Decode reads the request into in, a pointer to the input that described describes. It returns in and the raw body, of
// which it reads only the first byte if the operation takes none, or nothing if lenient is true too. lenient is passed
// to Bind (op.Request). When the body has arrived, the request waits until few enough are in progress, and is parsed.
func Decode(c *gin.Context, described *op.Input, in any, lenient bool) (any, []byte, error) {
	r := op.Request{
		Path: c.Param, Lenient: lenient, Coding: contentCoding(c.Request.Header), Faults: op.FaultsOf(c.Request.Context()),
	}
	if c.Request.URL.RawQuery != "" {
		var err error
		if r.Query, err = url.ParseQuery(c.Request.URL.RawQuery); err != nil {
			return nil, nil, domain.ErrInvalid("query",
				"is not well-formed; each % must begin an escape, and & must separate the parameters")
		}
	}
	t := turnOf(c)
	r.Arguments = t.nested
	if !lenient { // v1's own inputs know no releases
		r.Release = t.edge.release
	}
	var err error
	switch {
	case described.Body != nil:
		r.Body, err = t.receive(c, described.Weight())
	case !lenient:
		r.Body, err = peekBody(c)
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

// codings are the content codings that bodies may not have. Other values of Content-Encoding are ignored.
var codings = []string{"gzip", "x-gzip", "deflate", "br", "zstd", "compress"}

// contentCoding returns the first of codings that Content-Encoding names; "" for none.
func contentCoding(h http.Header) string {
	for name := range strings.SplitSeq(strings.Join(h.Values("Content-Encoding"), ","), ",") {
		if name = strings.ToLower(strings.TrimSpace(name)); slices.Contains(codings, name) {
			return name
		}
	}
	return ""
}

// peekBody returns the first byte of a body that should be empty, so that Bind rejects it; nil if it is empty. The byte
// is 0 for a body that discardBody removed.
func peekBody(c *gin.Context) ([]byte, error) {
	if _, discarded := c.Get(unreadBody); discarded {
		return []byte{0}, nil
	}
	var first [1]byte
	switch n, err := io.ReadFull(c.Request.Body, first[:]); {
	case n > 0:
		return first[:], nil
	case err != io.EOF:
		return nil, errIncompleteBody()
	}
	return nil, nil
}

// budgetName returns the name of the budget of a caller, an operation and a client.
func budgetName(ctx context.Context, o op.Operation, client domain.ClientID) string {
	return "client/" + domain.CallerFrom(ctx).Name() + "/" + o.Meta().ID + "/" + client.String()
}

// clientLimit returns how many calls of an operation a minute each key may make for one client. Tests raise the factor.
func (e *Edge) clientLimit(o op.Operation) int64 {
	return int64(o.Meta().PerClient) * e.Limits.PerClientFactor
}

// rejectOverBudget returns RateLimited if the budget of the client in the path is used up, before any work is done; nil
// for an operation without such a budget or client. A budget is charged only if the key has access to its client, so
// the error reveals no other client.
func (e *Edge) rejectOverBudget(c *gin.Context, o op.Operation, in any) error {
	if o.Meta().PerClient == 0 {
		return nil
	}
	path := reflect.ValueOf(in).Elem().FieldByName("Path")
	if !path.IsValid() {
		return nil
	}
	ofClient, ok := path.Interface().(op.OfClient)
	if !ok {
		return nil
	}
	ctx := c.Request.Context()
	state := e.budgets.peek(ctx, budgetName(ctx, o, ofClient.BudgetClient()), e.clientLimit(o))
	if state.remaining() > 0 {
		return nil
	}
	setBudgetHeaders(c, state, e.Clock.Now())
	return state.refusal("to this operation for this client")
}

// charge counts the call against the budget of the output's client, to which the key has access; RateLimited if it was
// used up. An operation without such a budget is not counted.
func (e *Edge) charge(c *gin.Context, o op.Operation, out any) error {
	if o.Meta().PerClient == 0 {
		return nil
	}
	ofClient, ok := out.(op.OfClient)
	if !ok {
		return fmt.Errorf("operation %s: %T names no client", o.Meta().ID, out)
	}
	ctx := c.Request.Context()
	state := e.budgets.charge(ctx, budgetName(ctx, o, ofClient.BudgetClient()), e.clientLimit(o))
	setBudgetHeaders(c, state, e.Clock.Now())
	if state.exceeded() {
		return state.refusal("to this operation for this client")
	}
	return nil
}
