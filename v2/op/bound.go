package op

import (
	"context"
	"fmt"
	"reflect"
	"slices"

	"partnerapi/domain"
)

// bound is an operation with its function. in and out are pointers to its input and output.
type bound struct {
	Declaration
	set *Set
	run func(ctx context.Context, in any) (out any, err error)
	// prepare runs before the transaction; nil for none.
	prepare func(ctx context.Context, in any) error
}

// Set holds the operations that a service runs. Its fields are set before the first call.
type Set struct {
	// Cursors seals the cursors of the set's lists.
	Cursors domain.CursorSealer
	// FixHorizon sets the horizon of a window, as of now, unless the position after which it begins has one. nil for none.
	FixHorizon func(ctx context.Context, w *domain.Window) error
	// AroundWrite wraps every operation of scope write; nil for nothing.
	AroundWrite AroundWrite
	// DryRun runs work and always undoes what it wrote. It must be set for operations whose body has a member dry_run.
	DryRun func(ctx context.Context, work func(context.Context) error) error
	// Trace makes a span of each call, named by the operation's id; nil for none.
	Trace domain.Trace

	ops   []Operation
	bound map[Declaration]*bound
}

// All returns the operations in the order of Complete or, before it is called, of binding.
func (s *Set) All() []Operation { return s.ops }

// Operation returns the operation of a declaration; nil if the declaration is not bound in the set.
func (s *Set) Operation(declared Declaration) Operation {
	if b := s.bound[declared]; b != nil {
		return b
	}
	return nil // not a nil *bound
}

// Complete puts the operations into the order of the declarations. The error names a declaration that is not bound,
// or an operation that is not declared.
func (s *Set) Complete(declared []Declaration) error {
	ops := make([]Operation, 0, len(declared))
	for _, d := range declared {
		o := s.bound[d]
		if o == nil {
			return fmt.Errorf("operation %s is declared but not bound to an implementation", d.Meta().ID)
		}
		ops = append(ops, o)
	}
	for _, o := range s.ops {
		if !slices.Contains(ops, o) {
			return fmt.Errorf("operation %s is bound but not declared", o.Meta().ID)
		}
	}
	s.ops = ops
	return nil
}

// Bind binds an operation in a set to a function. An output that the function returns with an error is dropped. A
// duplicate id is a programming error, and panics.
func Bind[In, Out any](s *Set, o *Op[In, Out], run func(context.Context, *In) (*Out, error)) {
	s.bind(&bound{Declaration: o, run: func(ctx context.Context, in any) (any, error) {
		out, err := run(ctx, in.(*In))
		if err != nil {
			return nil, err
		}
		return out, nil
	}}, o)
}

// bind adds b, the operation that o declares, to the set. It panics if another one has its id.
func (s *Set) bind(b *bound, o Declaration) {
	id := o.Meta().ID
	if slices.ContainsFunc(s.ops, func(other Operation) bool { return other.Meta().ID == id }) {
		panic(fmt.Sprintf("operation %s: its ID is taken", id))
	}
	if s.bound == nil {
		s.bound = map[Declaration]*bound{}
	}
	b.set = s
	s.ops = append(s.ops, b)
	s.bound[o] = b
}

// Add declares an operation and binds it in one set.
func Add[In, Out any](s *Set, meta Meta, run func(context.Context, *In) (*Out, error)) *Op[In, Out] {
	o := Declare[In, Out](meta)
	Bind(s, o, run)
	return o
}

// Call runs an operation of a set. It fails if the operation is not bound in it.
func Call[In, Out any](ctx context.Context, s *Set, o *Op[In, Out], in *In) (*Out, error) {
	b := s.bound[o]
	if b == nil {
		return nil, fmt.Errorf("operation %s is not bound in this set", o.meta.ID)
	}
	out, err := b.Run(ctx, in)
	if err != nil {
		return nil, err
	}
	return out.(*Out), nil
}

// Run prepares and performs the operation.
func (b *bound) Run(ctx context.Context, in any) (any, error) {
	if err := b.Prepare(ctx, in); err != nil {
		return nil, err
	}
	return b.perform(ctx, in)
}

// authorizeAndValidate checks the type of the input, the caller's scope and the rules of the input's tags.
func (b *bound) authorizeAndValidate(ctx context.Context, in any) error {
	if t := reflect.TypeOf(in); t.Kind() != reflect.Pointer || t.Elem() != b.Input().Type {
		return fmt.Errorf("operation %s takes *%s, not %s", b.Meta().ID, b.Input().Type, t)
	}
	if err := Authorize(ctx, b.Meta()); err != nil {
		return err
	}
	return b.Validate(in)
}

// perform runs the operation on a validated input, in a span of Trace if that is set. A write runs within AroundWrite,
// if that is set, and a dry run within DryRun.
func (b *bound) perform(ctx context.Context, in any) (any, error) {
	do := b.run
	if b.Meta().Scope == domain.Write && b.set.AroundWrite != nil {
		do = b.write
	}
	if b.Input().IsDryRun(in) {
		do = b.dryRun(do)
	}
	if b.set.Trace == nil {
		return do(ctx, in)
	}
	ctx, end := b.set.Trace(ctx, b.Meta().ID)
	out, err := do(ctx, in)
	end(err)
	return out, err
}

// Authorize returns Forbidden if the caller's key lacks the operation's scope or the access to all clients that it
// needs, or for a write in a context of WithReadOnly.
func Authorize(ctx context.Context, m *Meta) error {
	caller := domain.CallerFrom(ctx)
	if !caller.Can(m.Scope) {
		return domain.ErrForbidden("this key lacks the scope " + string(m.Scope))
	}
	if m.AllClients && !caller.AllClients {
		return domain.ErrForbidden("this operation needs a key with access to all clients")
	}
	if m.Scope == domain.Write && ctx.Value(readOnlyKey{}) != nil {
		return domain.ErrForbidden("only read operations are allowed; the session or the server is read-only")
	}
	return nil
}

// BindPrepare binds a step that runs before the transaction of an operation that writes: calls to other services, or
// slow work. The step runs for every call, after the scope and the input are checked, and stores its results in fields
// of the input that no surface binds. Before it calls another service, it must itself check that the caller has access
// to the objects that the input names. Its results may be out of date when the transaction begins. BindPrepare must be
// called after Bind.
func BindPrepare[In, Out any](s *Set, o *Op[In, Out], prepare func(context.Context, *In) error) {
	s.bound[o].prepare = func(ctx context.Context, in any) error { return prepare(ctx, in.(*In)) }
}

// Prepares reports whether the operation has a step before its transaction.
func (b *bound) Prepares() bool { return b.prepare != nil }

// Prepare checks the scope and the input, and runs the step before the transaction, if any.
func (b *bound) Prepare(ctx context.Context, in any) error {
	if err := b.authorizeAndValidate(ctx, in); err != nil || b.prepare == nil {
		return err
	}
	return b.prepare(ctx, in)
}

// RunPrepared runs the operation on a prepared input. It checks the scope and the input again.
func (b *bound) RunPrepared(ctx context.Context, in any) (any, error) {
	if err := b.authorizeAndValidate(ctx, in); err != nil {
		return nil, err
	}
	return b.perform(ctx, in)
}

type (
	faultsKey   struct{}
	readOnlyKey struct{}
)

// WithFaults returns a context for an HTTP request that this process made from a call in another protocol. fields are
// faults of the call that the request cannot express: the operation reports them together with its own.
func WithFaults(ctx context.Context, fields []domain.FieldError) context.Context {
	return context.WithValue(ctx, faultsKey{}, fields)
}

// FaultsOf returns the fields of WithFaults; nil for other contexts.
func FaultsOf(ctx context.Context) []domain.FieldError {
	fields, _ := ctx.Value(faultsKey{}).([]domain.FieldError)
	return fields
}

// WithReadOnly returns a context in which Authorize rejects operations of scope write, whatever the key's scopes.
func WithReadOnly(ctx context.Context) context.Context {
	return context.WithValue(ctx, readOnlyKey{}, true)
}
