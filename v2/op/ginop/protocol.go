package ginop

import (
	"cmp"
	"context"
	"net/http"
	"strings"

	"github.com/gin-gonic/gin"

	"partnerapi/domain"
	"partnerapi/v2/op"
)

// Protocol is another protocol for the operations: its messages are requests to one path, and each call of an operation
// in them becomes a request to the engine.
type Protocol struct {
	// Path is the path of messages, such as /mcp.
	Path string
	// Before, if set, may answer a request before its key is checked, set headers of the response, or return an error to
	// reject the request.
	Before func(http.ResponseWriter, *http.Request) (answered bool, err error)
	// Serve answers a request with a valid key; its context has the caller. body is that of a POST; other bodies are
	// not read. The request has a place in progress, which it shares with the requests to operations in
	// its context. An error is rendered, by Fault or as v2 does, unless something was written.
	Serve func(w http.ResponseWriter, r *http.Request, body []byte) error
	// Fault, if set, returns the body of the response to an error. If it returns nil, the error is rendered as v2 does.
	Fault func(r *http.Request, e *domain.Error, requestID string) []byte
}

// messageWeight is the memory of a message per byte (see op.Weigher): the message, its arguments, the request made of
// them, and the decoded input.
const messageWeight = 4

// Protocol adds the path of a protocol, for every method. The key may also be sent as a bearer token. Requests
// without a valid key count against the address; p.Serve must count those with one (Count, CountMessage).
func (e *Edge) Protocol(engine *gin.Engine, p Protocol) {
	s := &Surface{edge: e, prefix: p.Path, render: e.renderOf(p), before: p.Before, uncounted: true}
	engine.Any(p.Path, func(c *gin.Context) {
		useBearerToken(c.Request)
		s.serve(c, "message", func(c *gin.Context) error { return e.serveMessage(c, p.Serve) })
	})
}

// renderOf returns the Renderer of the protocol's errors. The body is that of p.Fault or, if p.Fault is nil or returns
// nil, that of v2. It adds WWW-Authenticate to Unauthorized.
func (e *Edge) renderOf(p Protocol) Renderer {
	return func(c *gin.Context, err *domain.Error) error {
		if err.Code == domain.Unauthorized {
			c.Header("WWW-Authenticate", `Bearer realm="partnerapi"`)
		}
		if p.Fault != nil {
			if body := p.Fault(c.Request, err, RequestID(c)); body != nil {
				writeBody(c, op.StatusOf(err.Code), body)
				return nil
			}
		}
		return e.renderEnvelope(c, err)
	}
}

// serveMessage serves a message of a protocol within the bounds on bodies and requests in progress. Requests that serve
// makes in its context share the message's turn, and acquire nothing. A message whose body cannot be received is
// counted here, as serve does not run.
func (e *Edge) serveMessage(c *gin.Context, serve func(http.ResponseWriter, *http.Request, []byte) error) error {
	t := turnOf(c)
	var body []byte
	if c.Request.Method == http.MethodPost {
		var err error
		if body, err = t.receive(c, messageWeight); err == nil {
			err = rejectCoding(c.Request.Header, body)
		}
		if err != nil {
			return cmp.Or(e.CountMessage(c.Request.Context()), err)
		}
	}
	if err := t.enter(c); err != nil {
		return err
	}
	return serve(c.Writer, c.Request.WithContext(context.WithValue(c.Request.Context(), nestedTurn{}, true)), body)
}

// rejectCoding returns UnsupportedEncoding for a body with a content coding.
func rejectCoding(h http.Header, body []byte) error {
	if coding := contentCoding(h); coding != "" && len(body) > 0 {
		return op.ErrEncoded(coding)
	}
	return nil
}

// useBearerToken sets X-API-Key to the request's bearer token, unless it has that header.
func useBearerToken(r *http.Request) {
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if r.Header.Get("X-API-Key") == "" && strings.EqualFold(scheme, "Bearer") {
		r.Header.Set("X-API-Key", strings.TrimSpace(token))
	}
}

// Count counts a request that no route counts against the budget of ctx's caller; RateLimited if that is used up.
func (e *Edge) Count(ctx context.Context) error {
	if state := e.chargeKey(ctx, domain.CallerFrom(ctx)); state.exceeded() {
		return state.refusal("with this key")
	}
	return nil
}

// CountMessage counts a message that runs no operation, against a separate budget of ctx's caller, as large as the
// key's; RateLimited if it is used up.
func (e *Edge) CountMessage(ctx context.Context) error {
	state := e.budgets.charge(ctx, "messages/"+domain.CallerFrom(ctx).Name(), e.Limits.PerKey)
	if state.exceeded() {
		return state.refusal("that run no operation with this key")
	}
	return nil
}

// Envelope returns the status and the body of v2's answer to an error of a request.
func (e *Edge) Envelope(r *http.Request, err error, requestID string) (status int, body []byte) {
	fault := domain.AsError(err)
	body, _ = Encode(op.EnvelopeOf(fault, requestID, e.Address(r))) // never fails for a struct of texts
	return op.StatusOf(fault.Code), body
}
