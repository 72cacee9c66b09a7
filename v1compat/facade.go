// Package v1compat is version 1 of the interface, as a table of routes onto v2's operations: route.go begins with an
// example of one. Nothing here reads a table or decides a rule: v2 does, whatever release its public edge serves. The
// rules in the tags of v1's bodies are for the document only. The package can be deleted.
package v1compat

import (
	"net/http"
	"slices"

	"github.com/gin-gonic/gin"

	"partnerapi/domain"
	"partnerapi/idmap"
	"partnerapi/v1compat/retire"
	"partnerapi/v1compat/usage"
	v2 "partnerapi/v2"
	"partnerapi/v2/op"
	"partnerapi/v2/op/ginop"
)

// Config holds the dependencies of a Facade. The zero Config is enough for Declare.
type Config struct {
	// Registry maps v1's numbers to ids and back.
	Registry *idmap.Registry
	// Store keeps the checkpoints of walks by offset, shared by replicas; nil keeps them in this process.
	Store Store
	// Clock returns the time; nil means the system's clock.
	Clock domain.Clock
	// Release is the release that v2's public edge serves. It decides which successors are linked, not what v1 calls.
	Release op.Release
	// SampleBase is the prefix of the server URL in the served document. DocumentHandler serves the document with
	// the address by which the caller knows the service in its place; nil serves it unchanged.
	SampleBase      string
	DocumentHandler func(contentType string, encode func() ([]byte, error)) http.Handler
	// Root is the path prefix of links.
	Root string
	// SupportURL is where partners get help, for the document; empty for nowhere.
	SupportURL string
	// Keeper has the state of v1's retirement, and keeps callers' rehearsals. Without it, v1 is on for all keys, nothing is
	// announced, and rehearsals fail with Unavailable.
	Keeper *retire.Keeper
	// Usage counts who calls what; nil counts nothing, and GET /v1/usage has no items.
	Usage *usage.Counter
}

// Facade is version 1 of the interface.
type Facade struct {
	Config
	routes []*route
	// v1 holds the operations that v2 has only for v1; nil in a facade from Declare.
	v1 *op.Set
	// own holds the operations that v1 implements itself.
	own *op.Set
	// successors maps v1's operations to v2's, and counted holds those of both that Usage counts (setOperations).
	successors map[string]string
	counted    map[usage.Surface]map[string]string
}

// New returns the facade over v2's operations. It panics if a route's operation is not bound, a programming error.
func New(core *v2.API, c Config) *Facade {
	f := Declare(c)
	f.v1, f.own.Trace = v2.ForV1(core), core.Set.Trace
	sets := []*op.Set{&core.Set, f.v1, f.own}
	for _, r := range f.routes {
		i := slices.IndexFunc(sets, func(s *op.Set) bool { return s.Operation(r.operation) != nil })
		if i < 0 {
			panic("v1 route " + r.ID + ": operation " + r.operation.Meta().ID + " is not bound")
		}
		r.set = sets[i]
	}
	return f
}

// Declare returns a facade that serves nothing but its routes' declarations, its document and its translators. It
// panics if a route does not fit its operation, a programming error.
func Declare(c Config) *Facade {
	if c.Clock == nil {
		c.Clock = domain.SystemClock{}
	}
	if c.Store == nil {
		c.Store = newMemory(c.Clock)
	}
	f := &Facade{Config: c, own: &op.Set{}}
	f.addClientRoutes()
	f.addUserRoutes()
	f.addCollectionRoutes()
	f.addPolicyRoutes()
	f.addExposureRoutes()
	f.addTrainingRoutes()
	f.addPhishingRoutes()
	f.addSendPhishingRoutes()
	f.addEmailRoutes()
	f.addReportRoutes()
	f.addExchangeRoutes()
	f.addUsageRoutes()
	f.addRehearsalRoutes()
	f.setOperations()
	return f
}

// Mount adds v1's routes and its document to the engine.
func (f *Facade) Mount(edge *ginop.Edge, engine *gin.Engine) error {
	s := edge.Surface(engine, "/v1", renderError)
	links := f.guideLinks()
	s.Headers(func(c *gin.Context, operation string) { f.setRetirementHeaders(c, operation, links) })
	s.KeepLastUse(startRehearsalID, endRehearsalID)
	for _, r := range f.routes {
		s.Handle(r.Method, r.Path, r.ID, r.serve)
	}
	if f.Usage != nil {
		edge.Watch(f.count)
	}
	return f.openDocument(s)
}
