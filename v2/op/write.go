package op

import (
	"context"
	"reflect"

	"partnerapi/domain"
)

// AroundWrite runs the work of an operation that writes, whatever surface
// called it: it may do so in a transaction, and note in it what was done. work
// returns the operation's output. An error of work must be returned.
type AroundWrite func(ctx context.Context, o Operation, in any, work func(context.Context) (any, error)) error

// perform runs the operation on an input that was checked.
func (o *Op[In, Out]) perform(ctx context.Context, in *In) (*Out, error) {
	if o.set.Trace == nil {
		return o.do(ctx, in)
	}
	ctx, end := o.set.Trace(ctx, o.meta.ID)
	out, err := o.do(ctx, in)
	end(err)
	return out, err
}

// do runs the operation, within AroundWrite where it writes.
func (o *Op[In, Out]) do(ctx context.Context, in *In) (*Out, error) {
	if o.set.AroundWrite == nil || o.meta.Scope != domain.Write {
		return o.run(ctx, in)
	}
	var out *Out
	err := o.set.AroundWrite(ctx, o, in, func(ctx context.Context) (any, error) {
		var err error
		out, err = o.run(ctx, in)
		return out, err
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

// Subject returns the client and the user that the path of an input names; zero
// where it names none.
func (in *Input) Subject(input any) (client domain.ClientID, user domain.UserID) {
	v := reflect.ValueOf(input).Elem()
	for _, p := range in.Path {
		switch id := v.FieldByIndex(p.index).Interface().(type) {
		case domain.ClientID:
			client = id
		case domain.UserID:
			user = id
		}
	}
	return client, user
}
