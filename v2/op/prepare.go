package op

import "context"

// Preparing gives an operation that writes work to do before its transaction:
// what talks to the outside world, or takes long. It runs for every call, after
// the scope and the input were checked, and leaves what it learned in fields of
// the input that no surface binds. The reach of what the input names is for it to
// check before it talks to anybody. What it learned may be out of date when the
// transaction begins. Preparing returns o, and is called where o is declared.
func (o *Op[In, Out]) Preparing(prepare func(context.Context, *In) error) *Op[In, Out] {
	o.prepare = prepare
	return o
}

// Prepares reports whether the operation has work before its transaction.
func (o *Op[In, Out]) Prepares() bool { return o.prepare != nil }

// Prepare checks the scope and the input, a *In, and does the operation's work
// before its transaction, where it has some.
func (o *Op[In, Out]) Prepare(ctx context.Context, in any) error {
	typed, err := o.typed(in)
	if err != nil {
		return err
	}
	if err := o.check(ctx, typed); err != nil || o.prepare == nil {
		return err
	}
	return o.prepare(ctx, typed)
}

// RunPrepared runs the operation on an input that Prepare was given. It checks the
// scope and the input again.
func (o *Op[In, Out]) RunPrepared(ctx context.Context, in any) (any, error) {
	typed, err := o.typed(in)
	if err != nil {
		return nil, err
	}
	if err := o.check(ctx, typed); err != nil {
		return nil, err
	}
	out, err := o.perform(ctx, typed)
	if err != nil {
		return nil, err
	}
	return out, nil
}
