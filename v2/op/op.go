// Package op declares the operations of the service. Declare declares an operation once; documents, clients and lists
// of tools are built from that declaration. Bind binds it, in a Set, to the function that does the work; routes are built
// from the Set. Only Call, Run and RunPrepared run that function, and they check the caller's scope and validate the
// input first. The package does not depend on HTTP servers. A surface is a protocol that calls operations, such as the
// routes of v2, those of v1 or MCP.
package op

import (
	"context"
	"fmt"
	"io/fs"
	"reflect"
	"slices"
	"strings"

	"partnerapi/domain"
)

// Meta is the declaration of an operation, without its types.
type Meta struct {
	// ID names the operation everywhere: metrics, documents, cursors, logs.
	ID string
	// Method and Path are the operation's method and its path below /v2. A path parameter
	// is written :name and bound to the input's Path part.
	Method, Path string
	// Summary is one imperative phrase, such as "Get a client".
	Summary string
	// Description says in Markdown, in one or two sentences, what the summary does not.
	Description string
	// Tag is the resource that documents list the operation under; empty means the part of ID before its first dot.
	Tag string
	// Starred says that the operation is an addition: the document that the owner of the interface published does not
	// have it. Documents of this service say so.
	Starred bool
	// Scope is the scope that the key must have.
	Scope domain.Scope
	// AllClients says that the operation needs a key with access to all clients of its partner, in addition to the scope.
	AllClients bool
	// Since is the first release whose public edge serves the operation.
	Since Release
	// Status is the HTTP status of success.
	Status int
	// PerClient is how many calls a minute each key may make for one client; zero means that only the key's own budget
	// counts. With PerClient, the output must be an OfClient.
	PerClient int
	// Fails lists the error codes that the operation itself can return, beyond
	// those that every operation shares (see Codes).
	Fails []domain.Code
	// ReachesOut says that a call reaches beyond the service, at once or later: it
	// sends email, calls an address that callers choose, or reads a directory.
	ReachesOut bool
	// Secret says that the output holds a secret: a surface that stores the output encrypts it.
	Secret bool
	// Columns are the fields of a list's items that the compact form shows by default, as paths such as risk.score: the
	// fields by which a reader tells items apart and judges them.
	Columns []string
}

// Resource returns the operation's tag, otherwise the part of its ID before the first dot.
func (m *Meta) Resource() string {
	if m.Tag != "" {
		return m.Tag
	}
	prefix, _, _ := strings.Cut(m.ID, ".")
	return prefix
}

// OfClient is an output or a path part that names the client of the call. The call counts against the budget that the
// key has for this client.
type OfClient interface {
	BudgetClient() domain.ClientID
}

// Declaration is an Op without its types: all that can be known of an operation without running it.
type Declaration interface {
	Meta() *Meta
	// Input describes the named parts of the input.
	Input() *Input
	// Output is the type of the output; NoContent if there is none.
	Output() reflect.Type
	// New returns a pointer to an input that holds the parameters' defaults.
	New() any
	// Validate checks an input as Run does, for surfaces that need the check before Run.
	Validate(in any) error
}

// Operation is a declaration bound to its function.
type Operation interface {
	Declaration
	// Run runs the operation on an input that New returned. It returns Forbidden as Authorize does, InvalidRequest for
	// an input that breaks a rule of its tags, or the operation's own error.
	Run(ctx context.Context, in any) (any, error)
	// Prepares reports whether the operation has a step before its transaction (see BindPrepare).
	Prepares() bool
	// Prepare is the first half of Run: the checks, and the step before the transaction.
	Prepare(ctx context.Context, in any) error
	// RunPrepared is the second half of Run, for an input that was passed to Prepare.
	RunPrepared(ctx context.Context, in any) (any, error)
}

// Op is the declaration of an operation that takes In and returns Out.
type Op[In, Out any] struct {
	meta  Meta
	input *Input
	// paging is the index of the paging in the input of a list or a feed; nil for others.
	paging []int
}

// NoContent is the output of an operation that answers without a body.
type NoContent struct{}

// Tag is a resource that operations are listed under in documents.
type Tag struct {
	// Name is what an operation's Tag or ID says.
	Name string
	// Title is the name as people read it.
	Title string
	// Description is Markdown.
	Description string
}

// Interface describes the declared operations for documents.
type Interface struct {
	// Operations are in the order in which documents list them.
	Operations []Declaration
	// Tags are the resources, in the order in which documents list them.
	Tags []Tag
	// Objects describes bodies, each in a sentence, by the name of its schema.
	Objects map[string]string
	// Examples holds an example of each operation, in a file ID.json; nil for none.
	// The format of a file is openapi.Example.
	Examples fs.FS
}

// Declare declares an operation. A declaration that is incomplete or contradicts a type is a programming error, and
// panics when the program starts.
func Declare[In, Out any](meta Meta) *Op[In, Out] {
	o := &Op[In, Out]{meta: meta, input: Describe(reflect.TypeFor[In]())}
	if err := o.check(); err != nil {
		panic(fmt.Sprintf("operation %s: %v", meta.ID, err))
	}
	return o
}

// check returns an error if the declaration is incomplete or contradicts a type.
func (o *Op[In, Out]) check() error {
	m := o.meta
	switch {
	case m.ID == "":
		return fmt.Errorf("its ID is empty")
	case m.Status < 200 || m.Status > 299:
		return fmt.Errorf("status %d is not one of success", m.Status)
	case m.Scope != domain.Read && m.Scope != domain.Write && m.Scope != domain.AnyScope:
		return fmt.Errorf("scope %q is unknown", m.Scope)
	case m.Since == 0:
		return fmt.Errorf("it names no release")
	case m.Summary == "":
		return fmt.Errorf("it has no summary")
	}
	if _, ok := any(new(Out)).(OfClient); m.PerClient > 0 && !ok {
		return fmt.Errorf("it has a budget per client, but its output names no client")
	}
	V2_0.viewOf(reflect.TypeFor[Out]()) // panics where a field cannot be omitted
	if name := o.input.requiredSince(); name != "" {
		return fmt.Errorf("it requires %s, which earlier releases do not know", name)
	}
	return o.input.matchPath(m.Path)
}

// Meta returns the declaration, without the types.
func (o *Op[In, Out]) Meta() *Meta { return &o.meta }

// Input describes the named parts of In.
func (o *Op[In, Out]) Input() *Input { return o.input }

// Output returns the type Out.
func (o *Op[In, Out]) Output() reflect.Type { return reflect.TypeFor[Out]() }

// New returns a *In that holds the parameters' defaults.
func (o *Op[In, Out]) New() any { return o.input.New() }

// Validate returns InvalidRequest for an input that breaks a rule of its tags.
func (o *Op[In, Out]) Validate(in any) error { return o.input.Validate(in) }

// Codes returns the error codes that callers of the operation meet, each once: those of all operations, those that its
// declaration makes possible, and its Fails. They do not meet Misdirected: a router of cells follows it.
func Codes(o Declaration) []domain.Code {
	codes := []domain.Code{
		domain.InvalidRequest, domain.Unauthorized, domain.RateLimited, domain.Internal, domain.Unavailable,
	}
	add := func(code domain.Code) {
		if !slices.Contains(codes, code) {
			codes = append(codes, code)
		}
	}
	if o.Meta().Scope != domain.AnyScope || o.Meta().AllClients {
		add(domain.Forbidden)
	}
	if len(o.Input().Path) > 0 {
		add(domain.NotFound)
	}
	if o.Input().Body != nil {
		add(domain.RequestTimeout)
		add(domain.PayloadTooLarge)
		add(domain.UnsupportedEncoding)
	}
	if o.Meta().Method == "POST" { // its Idempotency-Key may be in use
		add(domain.Conflict)
	}
	for _, c := range o.Meta().Fails {
		add(c)
	}
	return codes
}
