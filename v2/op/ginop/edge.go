// Package ginop puts operations on the wire with Gin: routes, admission (key,
// budgets, release), decoding, idempotency and the rendering of errors. v1's
// facade uses the same edge for its own routes, with another rendering.
package ginop

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"regexp"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/ulule/limiter/v3"

	"partnerapi/domain"
)

// Config is what an Edge is made of.
type Config struct {
	Keys *Keys
	// Limits are the budgets; Shared is the store they are counted in, nil for
	// this process's memory.
	Limits Limits
	Shared limiter.Store
	// Once runs a request's work at most once per Idempotency-Key; see db.Once.
	Once func(ctx context.Context, key string, hash []byte, work func(context.Context) (domain.Outcome, error)) (domain.Outcome, error)
	Log  *slog.Logger
	// Metrics may be nil.
	Metrics *Metrics
}

// Edge is the public edge of the service: what happens to every request of
// every surface before and after its own work.
type Edge struct {
	Config
	budgets  *budgets
	surfaces []*Surface
}

// NewEdge makes an edge.
func NewEdge(c Config) *Edge {
	return &Edge{Config: c, budgets: newBudgets(c.Shared, c.Log)}
}

// Renderer writes an error in the words of a surface.
type Renderer func(c *gin.Context, err *domain.Error)

// Surface is one version of the interface: the routes below a prefix.
type Surface struct {
	edge   *Edge
	prefix string
	render Renderer
	group  *gin.RouterGroup
}

// Surface adds a version of the interface below a prefix.
func (e *Edge) Surface(engine *gin.Engine, prefix string, render Renderer) *Surface {
	s := &Surface{edge: e, prefix: prefix, render: render, group: engine.Group(prefix)}
	e.surfaces = append(e.surfaces, s)
	return s
}

// Engine makes the Gin engine for the edge's surfaces. A remote address is
// taken from forwarding headers only when one of the proxies sent them.
func (e *Edge) Engine(proxies []string) (*gin.Engine, error) {
	gin.SetMode(gin.ReleaseMode)
	engine := gin.New()
	engine.RedirectTrailingSlash = false
	engine.UseRawPath = true // a path parameter may hold an escaped slash
	if err := engine.SetTrustedProxies(proxies); err != nil {
		return nil, fmt.Errorf("trusted proxies: %w", err)
	}
	engine.NoRoute(e.noRoute)
	return engine, nil
}

// noRoute answers what no route matches: below a surface's prefix as that
// surface does, after the key was checked.
func (e *Edge) noRoute(c *gin.Context) {
	for _, s := range e.surfaces {
		if strings.HasPrefix(c.Request.URL.Path, s.prefix+"/") || c.Request.URL.Path == s.prefix {
			s.serve(c, "unknown", func(c *gin.Context) error {
				return &domain.Error{Code: domain.NotFound, Message: "no such operation; see " + s.prefix + "/openapi.yaml"}
			})
			return
		}
	}
	c.String(http.StatusNotFound, "not found\n")
}

// Handle adds a route. The function runs for requests with a valid key within
// its budget, and writes the response unless it returns an error; name is the
// operation's, for logs and metrics.
func (s *Surface) Handle(method, path, name string, fn func(*gin.Context) error) {
	s.group.Handle(method, path, func(c *gin.Context) {
		s.serve(c, name, func(c *gin.Context) error {
			if state, _ := c.Get(budgetState); state.(limiter.Context).Reached {
				return exceeded(state.(limiter.Context), "with this key")
			}
			return fn(c)
		})
	})
}

// Open adds a route for a document: it needs no key and is not counted, but
// carries the headers of every response.
func (s *Surface) Open(path, contentType string, document []byte) {
	s.group.GET(path, func(c *gin.Context) {
		c.Header("X-Request-Id", requestID(c.GetHeader("X-Request-Id")))
		report(c, s.edge.budgets.look(c.Request.Context(), addressBudget(c), s.edge.Limits.PerAddress))
		c.Data(http.StatusOK, contentType, document)
	})
}

// addressBudget names the budget of a remote address without a valid key.
func addressBudget(c *gin.Context) string { return "address/" + c.ClientIP() }

const budgetState = "ginop.budget"

// serve runs a request's work between what every request has: an id, the key's
// budget in the headers, a rendered error, a log line and a metric.
func (s *Surface) serve(c *gin.Context, name string, work func(*gin.Context) error) {
	start := time.Now()
	id := requestID(c.GetHeader("X-Request-Id"))
	c.Header("X-Request-Id", id)
	ctx, cancel := context.WithTimeout(c.Request.Context(), requestTime)
	defer cancel()
	c.Request = c.Request.WithContext(ctx)
	err := s.guarded(c, work)
	if err != nil {
		s.fail(c, err)
	}
	s.edge.observe(c, s, name, id, time.Since(start), err)
}

// guarded admits the request and runs its work; a panic becomes an error.
func (s *Surface) guarded(c *gin.Context, work func(*gin.Context) error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
		}
	}()
	caller, err := s.edge.admit(c)
	if err != nil {
		return err
	}
	c.Request = c.Request.WithContext(domain.WithCaller(c.Request.Context(), caller))
	return work(c)
}

// admit recognizes the caller and counts the request: against the key's
// budget, or without a valid key against the remote address's.
func (e *Edge) admit(c *gin.Context) (*domain.Caller, error) {
	ctx := c.Request.Context()
	caller, err := e.Keys.Caller(ctx, c.GetHeader("X-API-Key"))
	if err == nil {
		state := e.budgets.take(ctx, "key/"+caller.Prefix, e.Limits.PerKey)
		report(c, state)
		c.Set(budgetState, state)
		return caller, nil
	}
	address := addressBudget(c)
	if !domain.IsCode(err, domain.Unauthorized) {
		report(c, e.budgets.look(ctx, address, e.Limits.PerAddress))
		return nil, err
	}
	state := e.budgets.take(ctx, address, e.Limits.PerAddress)
	report(c, state)
	if state.Reached {
		return nil, exceeded(state, "without a valid key from this address")
	}
	return nil, err
}

// requestTime bounds how long a request may take. A database that keeps silent
// for so long counts as one that cannot be reached.
const requestTime = 20 * time.Second

// statusGone is what is recorded of a request whose caller hung up: nobody gets
// it, and the service did nothing wrong.
const statusGone = 499

// fail renders an error, unless the response is already under way or nobody
// waits for it.
func (s *Surface) fail(c *gin.Context, err error) {
	if c.Writer.Written() {
		return
	}
	if errors.Is(err, context.Canceled) && errors.Is(c.Request.Context().Err(), context.Canceled) {
		c.Status(statusGone)
		return
	}
	e := domain.AsError(err)
	if e.RetryAfter > 0 {
		c.Header("Retry-After", strconv.Itoa(int((e.RetryAfter+time.Second-1)/time.Second)))
	}
	s.render(c, e)
}

var goodRequestID = regexp.MustCompile(`^[A-Za-z0-9._-]{1,128}$`)

// requestID keeps the caller's id where it is well formed, else makes one.
func requestID(given string) string {
	if goodRequestID.MatchString(given) {
		return given
	}
	return "req_" + strings.ToLower(rand.Text())
}

// RequestID is the id of the request, as its response shows it.
func RequestID(c *gin.Context) string { return c.Writer.Header().Get("X-Request-Id") }
