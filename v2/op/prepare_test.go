package op_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	"partnerapi/domain"
	"partnerapi/v2/op"
)

type prepared struct {
	Body struct {
		Name string `json:"name" validate:"filled,max=10"`
	}
	learned string
}

// TestPrepare: the work before the transaction comes after the checks, once, and
// outside of what runs around a write.
func TestPrepare(t *testing.T) {
	t.Parallel()
	var steps []string
	set := &op.Set{AroundWrite: func(ctx context.Context, _ op.Operation, _ any, work func(context.Context) (any, error)) error {
		steps = append(steps, "begin")
		_, err := work(ctx)
		steps = append(steps, "end")
		return err
	}}
	failing := errors.New("refused")
	declared := op.Add(set, op.Meta{
		ID: "x", Method: "POST", Path: "/x", Scope: domain.Write, Since: op.V2_0, Status: 200, Summary: "X",
	}, func(_ context.Context, in *prepared) (*op.NoContent, error) {
		steps = append(steps, "run "+in.learned)
		return &op.NoContent{}, nil
	})
	op.BindPrepare(set, declared, func(_ context.Context, in *prepared) error {
		steps = append(steps, "prepare")
		if in.Body.Name == "fail" {
			return failing
		}
		in.learned = in.Body.Name
		return nil
	})
	o := set.Operation(declared)
	writer := domain.WithCaller(t.Context(), &domain.Caller{Scopes: []domain.Scope{domain.Write}})
	in := func(name string) *prepared {
		steps = nil
		in := &prepared{}
		in.Body.Name = name
		return in
	}
	want := func(want ...string) {
		t.Helper()
		if !slices.Equal(steps, want) {
			t.Errorf("steps are %q, not %q", steps, want)
		}
	}

	if _, err := op.Call(writer, set, declared, in("a")); err != nil || !o.Prepares() {
		t.Error(err)
	}
	want("prepare", "begin", "run a", "end")
	if _, err := o.Run(writer, in("b")); err != nil {
		t.Error(err)
	}
	want("prepare", "begin", "run b", "end")
	given := in("c")
	if err := o.Prepare(writer, given); err != nil {
		t.Error(err)
	}
	if _, err := o.RunPrepared(writer, given); err != nil {
		t.Error(err)
	}
	want("prepare", "begin", "run c", "end")
	if _, err := o.Run(writer, in("fail")); !errors.Is(err, failing) {
		t.Error(err)
	}
	want("prepare")

	for _, run := range []func(context.Context, any) (any, error){o.Run, o.RunPrepared} {
		if _, err := run(writer, in(" ")); !domain.IsCode(err, domain.InvalidRequest) {
			t.Error(err)
		}
		want()
		if _, err := run(domain.WithCaller(t.Context(), &domain.Caller{}), in("a")); !domain.IsCode(err, domain.Forbidden) {
			t.Error(err)
		}
		want()
		if _, err := run(writer, &struct{}{}); err == nil {
			t.Error("another input is taken")
		}
	}
}
