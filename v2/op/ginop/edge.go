// Package ginop serves operations over HTTP with Gin: routes, admission (key, budgets, release), decoding, idempotency
// and the rendering of errors. v1's facade uses the same edge for its own routes, with its own format of errors.
package ginop

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"runtime"
	"strings"

	"github.com/gin-gonic/gin"
	"golang.org/x/sync/semaphore"

	"partnerapi/domain"
	"partnerapi/v2/op"
)

// Config holds the dependencies and settings of an Edge.
type Config struct {
	Keys *Keys
	// Limits are the budgets. Shared counts requests; nil means that this process's memory does. Clock is the clock of
	// that memory and of Retry-After; nil means the system's.
	Limits Limits
	Shared Store
	Clock  domain.Clock
	// Once runs a request's work at most once per Idempotency-Key; see db.Once.
	Once Once
	// Reserve reserves an Idempotency-Key for a request with a step before its transaction, and Finish is Once for the
	// rest of that request's work; see db.Reserve and db.Finish.
	Reserve func(
		ctx context.Context, key string, request domain.RequestDigest,
	) (recorded *domain.Outcome, release func(), err error)
	Finish Once
	// Secrets encrypts recorded outcomes that hold secrets. Nil means no encryption key: such an outcome is an error.
	Secrets Sealer
	// Reach returns NotFound for a client or a user, unless zero, to which the caller has no access. It is called
	// before a recorded answer is replayed; nil disables the check.
	Reach func(ctx context.Context, client domain.ClientID, user domain.UserID) error
	// Audit adds an audit entry in the transaction of the write that it records, which InTx runs. A nil Audit disables
	// the audit trail; otherwise both are set.
	Audit func(ctx context.Context, entry domain.AuditEntry) error
	InTx  func(ctx context.Context, work func(context.Context) error) error
	// Address returns the service's address as the caller of a request knows it; links in errors start with it. Nil
	// means none: links are paths.
	Address func(*http.Request) string
	Log     *slog.Logger
	// Metrics may be nil.
	Metrics *Metrics
	// Tracing may be nil.
	Tracing Tracing
}

// Once runs a request's work at most once per caller and Idempotency-Key.
type Once func(
	ctx context.Context, key string, request domain.RequestDigest, work func(context.Context) (domain.Outcome, error),
) (domain.Outcome, error)

// Tracing describes the span of a request: Begun at its start, Answered after its response. key is the prefix of the
// API key, empty if the request had no valid key; err is nil for a success.
type Tracing interface {
	Begun(ctx context.Context, version, operation, requestID string)
	Answered(ctx context.Context, key string, err error)
}

// Sealer encrypts a value for a context, and decrypts values that were encrypted for the same context.
type Sealer interface {
	Seal(plain, context []byte) ([]byte, error)
	Open(sealed, context []byte) ([]byte, error)
}

// Edge is the public edge of the service: admission, limits, logging and metrics around the requests of every surface.
type Edge struct {
	Config
	budgets  *budgets
	lookUps  *memory // see allowLookup
	progress bounds
	bodies   bounds // in bytes
	// parsing bounds the large bodies that are parsed at a time, so that other requests have half of the processors.
	parsing *semaphore.Weighted
	// draining bounds the requests whose bodies are drained after a 413.
	draining *semaphore.Weighted
	refusals *refusals
	surfaces []*Surface
	// release is the release of v2 that Mount serves.
	release op.Release
	// watchers are called for every answered request.
	watchers []func(Answered)
}

// Answered is a request that a surface has answered.
type Answered struct {
	// Surface is the surface's prefix without its slash, such as v2, and Operation the name of the route; "unknown" if
	// no route matches.
	Surface, Operation string
	// Caller is nil if the request had no valid key.
	Caller *domain.Caller
	// Status is the HTTP status of the response; 499 if the caller disconnected before.
	Status    int
	UserAgent string
}

// Watch registers fn, which is called after each answered request, before the next of its connection is read. fn
// must not block. Watch must be called before the first request.
func (e *Edge) Watch(fn func(Answered)) { e.watchers = append(e.watchers, fn) }

// NewEdge returns an edge without surfaces. A nil Clock is the system's, and a nil Address returns "".
func NewEdge(c Config) *Edge {
	if c.Clock == nil {
		c.Clock = domain.SystemClock{}
	}
	if c.Address == nil {
		c.Address = func(*http.Request) string { return "" }
	}
	return &Edge{
		Config: c, budgets: newBudgets(c.Shared, c.Clock, c.Log), lookUps: newMemory(c.Clock),
		progress: newBounds(keyInProgress, partnerInProgress, allInProgress),
		bodies:   newBounds(keyBodies, partnerBodies, allBodies),
		parsing:  semaphore.NewWeighted(int64(max(runtime.GOMAXPROCS(0)/2, 1))), // half of the processors
		refusals: newRefusals(c.Log), draining: semaphore.NewWeighted(maxDraining),
	}
}

// Renderer writes an error in the format of a surface. If it returns an error, it has written nothing.
type Renderer func(c *gin.Context, err *domain.Error) error

// Surface is one version of the interface: the routes below a prefix.
type Surface struct {
	edge   *Edge
	prefix string
	render Renderer
	group  *gin.RouterGroup
	// headers, if set, adds headers to every response, before the request's work.
	headers func(c *gin.Context, operation string)
	// before is that of Protocol.
	before func(http.ResponseWriter, *http.Request) (answered bool, err error)
	// uncounted says that requests count against no key's budget.
	uncounted bool
	// unmarked has the names of the routes whose requests are not recorded as the key's last use.
	unmarked map[string]bool
}

// Surface adds a version of the interface below a prefix.
func (e *Edge) Surface(engine *gin.Engine, prefix string, render Renderer) *Surface {
	s := &Surface{edge: e, prefix: prefix, render: render, group: engine.Group(prefix)}
	e.surfaces = append(e.surfaces, s)
	return s
}

// Engine returns the Gin engine of the edge's surfaces. The remote address of a request, domain.AddressFrom, is taken
// from X-Forwarded-For only if one of the proxies sent it. The body of a GET or a HEAD is discarded.
func (e *Edge) Engine(proxies []string) (*gin.Engine, error) {
	gin.SetMode(gin.ReleaseMode)
	engine := gin.New()
	engine.RedirectTrailingSlash = false
	engine.UseRawPath = true // a path parameter may hold an escaped slash
	trusted, err := domain.ParseNetworks(proxies)
	if err != nil {
		return nil, fmt.Errorf("trusted proxies: %w", err)
	}
	// Gin would trust other headers too.
	engine.ForwardedByClientIP = false
	engine.Use(func(c *gin.Context) {
		address := domain.RemoteAddress(c.Request.RemoteAddr, c.Request.Header["X-Forwarded-For"], trusted)
		c.Request = c.Request.WithContext(domain.WithAddress(c.Request.Context(), address))
		discardBody(c)
	})
	engine.NoRoute(e.noRoute)
	return engine, nil
}

// noRoute answers a request that matches no route with 404: below a surface's prefix in the surface's format, after
// authentication, and elsewhere as v2 does, without.
func (e *Edge) noRoute(c *gin.Context) {
	for _, s := range e.surfaces {
		if strings.HasPrefix(c.Request.URL.Path, s.prefix+"/") || c.Request.URL.Path == s.prefix {
			s.serve(c, "unknown", func(*gin.Context) error { return errNoRoute(c, "no such operation", s.prefix) })
			return
		}
	}
	outside := &Surface{edge: e, render: e.renderEnvelope}
	outside.setHeaders(c, "unknown")
	_ = outside.fail(c, errNoRoute(c, "no such path", "/v2")) // which is not logged: anyone can make many such requests
}

// errNoRoute returns the error for a path that matches no route. Of a path that ends in a slash it says so. what is the
// start of the message, and prefix that of the surface whose document it names.
func errNoRoute(c *gin.Context, what, prefix string) error {
	if path := c.Request.URL.Path; path != "/" && strings.HasSuffix(path, "/") {
		what += ": no path of the API ends in a slash"
	}
	return &domain.Error{Code: domain.NotFound, Message: what + "; see " + prefix + "/openapi.yaml"}
}

// Headers registers fn, which adds the headers that all responses of the surface carry, errors and documents
// included. It runs before the work of each request. operation is the route's name, "document" for a document, or
// "unknown". Headers must be called before the first request.
func (s *Surface) Headers(fn func(c *gin.Context, operation string)) { s.headers = fn }

// KeepLastUse excludes the requests of the named routes from the key's last use. It must be called before the first
// request.
func (s *Surface) KeepLastUse(routes ...string) {
	s.unmarked = map[string]bool{}
	for _, name := range routes {
		s.unmarked[name] = true
	}
}

// Handle adds a route, named name in logs and metrics. fn runs for requests with a valid key whose budget is not used
// up, and writes the response unless it returns an error. fn must do no slow work before it calls Decode, which waits
// until few enough requests are in progress. A GET route answers HEAD too.
func (s *Surface) Handle(method, path, name string, fn func(*gin.Context) error) {
	handlers := func(c *gin.Context) {
		s.serve(c, name, func(c *gin.Context) error {
			if state := turnOf(c).budget; state.exceeded() {
				return state.refusal("with this key")
			}
			return fn(c)
		})
	}
	s.group.Handle(method, path, handlers)
	if method == http.MethodGet {
		s.group.HEAD(path, handlers)
	}
}

// Open adds a route for a document, for GET and HEAD. Its requests need no key and are not counted. The response has
// the surface's headers, and those of the budget of the address. Pages of other origins may read it: it holds no
// secret.
func (s *Surface) Open(path string, document http.Handler) {
	handler := func(c *gin.Context) {
		s.setHeaders(c, "document")
		setBudgetHeaders(c, s.edge.budgets.peek(c.Request.Context(), addressBudget(c), s.edge.Limits.PerAddress), s.edge.Clock.Now())
		c.Header("Access-Control-Allow-Origin", "*")
		document.ServeHTTP(c.Writer, c.Request)
	}
	s.group.GET(path, handler)
	s.group.HEAD(path, handler)
}
