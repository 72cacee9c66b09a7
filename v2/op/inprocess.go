package op

import (
	"context"

	"partnerapi/domain"
)

type (
	faultsKey   struct{}
	readOnlyKey struct{}
)

// WithFaults returns the context of a request that this process made from a call
// in another form, and in which those fields are wrong: the request is refused
// for them where it is for its own, in one list.
func WithFaults(ctx context.Context, fields []domain.FieldError) context.Context {
	return context.WithValue(ctx, faultsKey{}, fields)
}

// FaultsOf returns the fields of WithFaults; none for requests from outside.
func FaultsOf(ctx context.Context) []domain.FieldError {
	fields, _ := ctx.Value(faultsKey{}).([]domain.FieldError)
	return fields
}

// WithReadOnly returns a context in which Authorize refuses operations of scope
// write, whatever the key may do.
func WithReadOnly(ctx context.Context) context.Context {
	return context.WithValue(ctx, readOnlyKey{}, true)
}

func isReadOnly(ctx context.Context) bool { return ctx.Value(readOnlyKey{}) != nil }
