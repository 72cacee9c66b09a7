package op_test

import (
	"context"
	"errors"
	"reflect"
	"slices"
	"testing"

	"partnerapi/domain"
	"partnerapi/v2/op"
)

type tried struct {
	Body struct {
		Fails  bool `json:"fails"`
		DryRun bool `json:"dry_run"`
	}
}

// TestDryRun: a dry run runs the operation, with what is around a write, in the set's DryRun, and answers as it does.
func TestDryRun(t *testing.T) {
	t.Parallel()
	var steps []string
	refused := errors.New("refused")
	set := &op.Set{AroundWrite: func(ctx context.Context, _ op.Operation, _ any, work func(context.Context) (any, error)) error {
		_, err := work(ctx)
		steps = append(steps, "audit")
		return err
	}}
	declared := op.Add(set, op.Meta{
		ID: "x", Method: "POST", Path: "/x", Scope: domain.Write, Since: op.V2_0, Status: 200, Summary: "X",
	}, func(_ context.Context, in *tried) (*string, error) {
		steps = append(steps, "run")
		if in.Body.Fails {
			return nil, refused
		}
		return new("done"), nil
	})
	writer := domain.WithCaller(t.Context(), &domain.Caller{Scopes: []domain.Scope{domain.Write}})
	call := func(dry, fails bool) (*string, error) {
		steps = nil
		in := &tried{}
		in.Body.DryRun, in.Body.Fails = dry, fails
		return op.Call(writer, set, declared, in)
	}

	if _, err := call(true, false); err == nil || steps != nil {
		t.Errorf("a set without dry runs does %q", steps)
	}
	set.DryRun = func(ctx context.Context, work func(context.Context) error) error {
		err := work(ctx)
		steps = append(steps, "undo")
		return err
	}
	if out, err := call(true, false); err != nil || *out != "done" || !slices.Equal(steps, []string{"run", "audit", "undo"}) {
		t.Errorf("a dry run does %q: %v", steps, err)
	}
	if out, err := call(true, true); !errors.Is(err, refused) || out != nil || steps[len(steps)-1] != "undo" {
		t.Errorf("a dry run that fails does %q: %v", steps, err)
	}
	if out, err := call(false, false); err != nil || *out != "done" || !slices.Equal(steps, []string{"run", "audit"}) {
		t.Errorf("a call does %q: %v", steps, err)
	}
	if !declared.Input().HasDryRun() || op.Describe(reflect.TypeFor[withBody]()).HasDryRun() {
		t.Error("which inputs have dry_run is wrong")
	}
}
