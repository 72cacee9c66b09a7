package op

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"partnerapi/domain"
	"partnerapi/domain/rule"
)

// AroundWrite runs the work of an operation that writes, for calls of every surface. It may run work in a transaction,
// and add an audit entry there. work returns the operation's output. An error of work must be returned.
type AroundWrite func(ctx context.Context, o Operation, in any, work func(context.Context) (any, error)) error

// write runs the operation within the set's AroundWrite. As that returns no output, write keeps the operation's.
func (b *bound) write(ctx context.Context, in any) (out any, err error) {
	err = b.set.AroundWrite(ctx, b, in, func(ctx context.Context) (any, error) {
		var err error
		out, err = b.run(ctx, in)
		return out, err
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

// InWrite runs work within the set's AroundWrite, as a part of an operation that writes and is bound in the set. A step
// before the transaction (BindPrepare) thus writes in separate transactions.
func InWrite[In, Out any](ctx context.Context, s *Set, o *Op[In, Out], in *In, work func(context.Context) error) error {
	if s.AroundWrite == nil {
		return work(ctx)
	}
	return s.AroundWrite(ctx, s.bound[o], in, func(ctx context.Context) (any, error) { return nil, work(ctx) })
}

// dryRun returns do as a dry run: it returns the results of do, but keeps nothing that do writes, not even its audit
// entry. It fails if the set has no DryRun.
func (b *bound) dryRun(do func(context.Context, any) (any, error)) func(context.Context, any) (any, error) {
	return func(ctx context.Context, in any) (out any, err error) {
		if b.set.DryRun == nil {
			return nil, fmt.Errorf("operation %s: its set has no dry runs", b.Meta().ID)
		}
		err = b.set.DryRun(ctx, func(ctx context.Context) error {
			out, err = do(ctx, in)
			return err
		})
		if err != nil {
			return nil, err
		}
		return out, nil
	}
}

// Subject returns the client and the user that the path of an input names; zero if it names none.
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

// Object returns the object that the path of an input names: the last one that is neither a client nor a user,
// otherwise the user, otherwise the client. It is zero if the path names none.
func (in *Input) Object(input any) (named domain.AuditObject) {
	v := reflect.ValueOf(input).Elem()
	rank := 0 // of named: 1 for a client, 2 for a user, 3 for another object
	for _, p := range in.Path {
		switch value := v.FieldByIndex(p.index).Interface().(type) {
		case domain.ClientID:
			if rank <= 1 {
				named, rank = ObjectOf(value), 1
			}
		case domain.UserID:
			if rank <= 2 {
				named, rank = ObjectOf(value), 2
			}
		case string: // a name, such as breach_name
			kind, _, _ := strings.Cut(p.Name, "_")
			named, rank = domain.AuditObject{Kind: kind, ID: value}, 3
		default:
			if object := ObjectOf(value); object != (domain.AuditObject{}) {
				named, rank = object, 3
			}
		}
	}
	return named
}

// ObjectOf returns the object that an id identifies; zero if id is not an object's id, or is the zero id.
func ObjectOf(id any) domain.AuditObject {
	object, ok := id.(interface {
		Noun() string
		String() string
		IsZero() bool
	})
	if !ok || object.IsZero() {
		return domain.AuditObject{}
	}
	return domain.AuditObject{Kind: object.Noun(), ID: object.String()}
}

// FieldName is a path parameter that names a field of the object of the path.
type FieldName string

// Fields returns the sorted JSON names of the fields that an input sets: the body members that are Optionals and given,
// others that are not zero, and a FieldName of the path. It is nil if there are none, or if the body is no struct.
func (in *Input) Fields(input any) (names []string) {
	for _, p := range in.Path {
		if field, ok := reflect.ValueOf(input).Elem().FieldByIndex(p.index).Interface().(FieldName); ok {
			names = append(names, string(field))
		}
	}
	if in.Body == nil || in.Body.Kind() != reflect.Struct {
		return names
	}
	body := reflect.ValueOf(input).Elem().FieldByIndex(in.body)
	for _, f := range reflect.VisibleFields(in.Body) {
		name := rule.WireName(f)
		if name == "" {
			continue
		}
		value := body.FieldByIndex(f.Index)
		if o, ok := value.Interface().(rule.Optional); ok && !o.IsZero() || !ok && !value.IsZero() {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}
