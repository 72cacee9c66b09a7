// Package op says what an operation of the service is. An operation is
// declared once, with Add; the surfaces (routes, OpenAPI documents, the v1
// facade) are made from that declaration. Nothing can run an operation's
// function but Call, Run and RunPrepared, which check the caller's scope and
// validate the input first. The package knows nothing of HTTP servers.
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

// Meta is what is declared of an operation beside its types.
type Meta struct {
	// ID names the operation everywhere: metrics, documents, cursors, logs.
	ID string
	// Method and Path are its place below /v2; parameters of the path are
	// written :name and bound to the input's Path part.
	Method, Path string
	// Summary is one imperative phrase, such as "Read a client".
	Summary string
	// Description says in Markdown, in one or two sentences, what the summary
	// leaves open.
	Description string
	// Tag is the resource that documents list the operation under; empty for the
	// part of ID before its first point.
	Tag string
	// Starred says that the operation is not in the published document of the
	// interface. Documents show a badge with it.
	Starred bool
	Scope   domain.Scope
	// AllClients says that the operation needs a key with access to all clients
	// of its partner, beside the scope.
	AllClients bool
	// Since is the first release whose public edge serves the operation.
	Since Release
	// Status is the HTTP status of success.
	Status int
	// PerClient is how many calls a minute each key may make for one client;
	// zero means only the key's own budget counts. The output must then say
	// which client it is about (OfClient).
	PerClient int
	// Fails lists the codes that the operation itself can end in, beyond those
	// that every operation shares (see Codes).
	Fails []domain.Code
	// ReachesOut says that a call reaches beyond the service, at once or later: it
	// sends mail, calls an address that callers choose, or reads a directory.
	ReachesOut bool
	// Secret says that the output holds a secret: what a surface keeps of it, it
	// keeps encrypted.
	Secret bool
	// Columns are, for a list, the fields of an item that its compact form shows, as
	// paths such as risk.score: those by which a reader tells items apart, and judges
	// them.
	Columns []string
}

// Resource is the operation's tag.
func (m *Meta) Resource() string {
	if m.Tag != "" {
		return m.Tag
	}
	prefix, _, _ := strings.Cut(m.ID, ".")
	return prefix
}

// OfClient is an output or a path that knows which client it is about, so that
// the call can be charged to that client's budget.
type OfClient interface {
	BudgetClient() domain.ClientID
}

// Operation is an Op without its types, as the surfaces see it.
type Operation interface {
	Meta() *Meta
	// Input describes the named parts of the input.
	Input() *Input
	// Output is the type of the output; NoContent where there is none.
	Output() reflect.Type
	// New returns a pointer to an input that holds the parameters' defaults.
	New() any
	// Validate is the check of the input that Run begins with, for surfaces
	// that have something to do between the two.
	Validate(in any) error
	// Run is Call for a pointer to an input that New made.
	Run(ctx context.Context, in any) (any, error)
	// Prepares reports whether the operation has work before its transaction.
	Prepares() bool
	// Prepare is the first half of Run: all that comes before the transaction.
	Prepare(ctx context.Context, in any) error
	// RunPrepared is the second half of Run, for an input that Prepare was given.
	RunPrepared(ctx context.Context, in any) (any, error)
}

// Op is an operation that takes In and gives Out.
type Op[In, Out any] struct {
	meta  Meta
	input *Input
	set   *Set
	run   func(context.Context, *In) (*Out, error)
	// prepare is the work before the transaction; nil where there is none.
	prepare func(context.Context, *In) error
}

// NoContent is the output of an operation that answers without a body.
type NoContent struct{}

// Set is the operations of the service, in the order they were declared.
type Set struct {
	// Cursors seals the cursors of the set's lists.
	Cursors domain.CursorSealer
	// Tags are the resources, in the order in which documents list them.
	Tags []Tag
	// Objects say in a sentence what bodies are, by the names of their schemas.
	Objects map[string]string
	// Examples holds an example of each operation, in a file ID.json; nil for none.
	// openapi.Example says what is in one.
	Examples fs.FS
	// AroundWrite, where set, runs around every operation of scope write. It is
	// set before the first call.
	AroundWrite AroundWrite
	// Trace, where set, makes a span of each call, named by the operation's id. It
	// is set before the first call.
	Trace domain.Trace

	ops []Operation
	ids map[string]bool
}

// Tag is a resource that operations are listed under in documents.
type Tag struct {
	// Name is what an operation's Tag or ID says.
	Name string
	// Title is the name as people read it.
	Title string
	// Description is Markdown.
	Description string
}

// All returns the operations in the order they were declared.
func (s *Set) All() []Operation { return s.ops }

// Add declares an operation. A declaration that contradicts itself or the
// input's type is a programming error, and panics at start-up.
func Add[In, Out any](s *Set, meta Meta, run func(context.Context, *In) (*Out, error)) *Op[In, Out] {
	o := &Op[In, Out]{meta: meta, input: Describe(reflect.TypeFor[In]()), set: s, run: run}
	if err := o.checkDeclaration(s); err != nil {
		panic(fmt.Sprintf("operation %s: %v", meta.ID, err))
	}
	if s.ids == nil {
		s.ids = map[string]bool{}
	}
	s.ids[meta.ID] = true
	s.ops = append(s.ops, o)
	return o
}

func (o *Op[In, Out]) checkDeclaration(s *Set) error {
	m := o.meta
	switch {
	case m.ID == "" || s.ids[m.ID]:
		return fmt.Errorf("its id is empty or taken")
	case m.Status < 200 || m.Status > 299:
		return fmt.Errorf("status %d is not one of success", m.Status)
	case m.Scope != domain.Read && m.Scope != domain.Write:
		return fmt.Errorf("scope %q is unknown", m.Scope)
	case m.Since == 0:
		return fmt.Errorf("it names no release")
	case m.Summary == "":
		return fmt.Errorf("it has no summary")
	}
	if _, ok := any(new(Out)).(OfClient); m.PerClient > 0 && !ok {
		return fmt.Errorf("it has a budget per client but its output names no client")
	}
	return o.input.matchPath(m.Path)
}

// Meta returns the declaration.
func (o *Op[In, Out]) Meta() *Meta { return &o.meta }

// Input describes the named parts of In.
func (o *Op[In, Out]) Input() *Input { return o.input }

// Output returns the type Out.
func (o *Op[In, Out]) Output() reflect.Type { return reflect.TypeFor[Out]() }

// New returns a *In that holds the parameters' defaults.
func (o *Op[In, Out]) New() any { return o.input.New() }

// Validate reports InvalidRequest for an input that breaks a rule of its tags.
func (o *Op[In, Out]) Validate(in any) error { return o.input.Validate(in) }

// Call runs the operation for the caller of ctx: Forbidden where Authorize says
// so, InvalidRequest for an input that breaks a rule of its tags, and what the
// operation itself says.
func (o *Op[In, Out]) Call(ctx context.Context, in *In) (*Out, error) {
	if err := o.check(ctx, in); err != nil {
		return nil, err
	}
	if o.prepare != nil {
		if err := o.prepare(ctx, in); err != nil {
			return nil, err
		}
	}
	return o.perform(ctx, in)
}

// check checks the scope and the input of a call.
func (o *Op[In, Out]) check(ctx context.Context, in *In) error {
	if err := Authorize(ctx, &o.meta); err != nil {
		return err
	}
	return o.input.Validate(in)
}

// perform runs the operation on an input that was checked.
func (o *Op[In, Out]) perform(ctx context.Context, in *In) (*Out, error) {
	do := o.run
	if o.meta.Scope == domain.Write && o.set.AroundWrite != nil {
		do = o.write
	}
	if o.set.Trace == nil {
		return do(ctx, in)
	}
	ctx, end := o.set.Trace(ctx, o.meta.ID)
	out, err := do(ctx, in)
	end(err)
	return out, err
}

// Run is Call for a *In.
func (o *Op[In, Out]) Run(ctx context.Context, in any) (any, error) {
	typed, err := o.typed(in)
	if err != nil {
		return nil, err
	}
	out, err := o.Call(ctx, typed)
	if err != nil {
		return nil, err
	}
	return out, nil
}

func (o *Op[In, Out]) typed(in any) (*In, error) {
	typed, ok := in.(*In)
	if !ok {
		return nil, fmt.Errorf("operation %s takes %T, not %T", o.meta.ID, new(In), in)
	}
	return typed, nil
}

// Authorize reports Forbidden when the key of ctx's caller lacks the operation's
// scope, or the access to all clients that it needs, or when the operation writes
// and ctx is one of WithReadOnly.
func Authorize(ctx context.Context, m *Meta) error {
	caller := domain.CallerFrom(ctx)
	if !caller.Can(m.Scope) {
		return domain.ErrForbidden("this key lacks the scope " + string(m.Scope))
	}
	if m.AllClients && !caller.AllClients {
		return domain.ErrForbidden("this operation needs a key with access to all clients")
	}
	if m.Scope == domain.Write && isReadOnly(ctx) {
		return domain.ErrForbidden("only reads are allowed here: the session or the server is read-only")
	}
	return nil
}

// Codes returns every code that a surface may answer the operation with: those
// of all operations, those that its declaration makes possible, and its own.
// NotFound is possible where the path names an object.
func Codes(o Operation) []domain.Code {
	codes := []domain.Code{
		domain.InvalidRequest, domain.Unauthorized, domain.Forbidden,
		domain.RateLimited, domain.Internal, domain.Unavailable,
	}
	add := func(code domain.Code) {
		if !slices.Contains(codes, code) {
			codes = append(codes, code)
		}
	}
	if len(o.Input().Path) > 0 {
		add(domain.NotFound)
	}
	if o.Input().Body != nil {
		add(domain.RequestTimeout)
		add(domain.PayloadTooLarge)
	}
	if o.Meta().Method == "POST" { // its Idempotency-Key may be in use
		add(domain.Conflict)
	}
	for _, c := range o.Meta().Fails {
		add(c)
	}
	return codes
}
