package op_test

import (
	"context"
	"errors"
	"reflect"
	"strings"
	"testing"

	"partnerapi/domain"
	"partnerapi/v2/op"
)

// attempt is an input whose name says what becomes of it.
type attempt struct {
	Body struct {
		Name   string `json:"name" validate:"filled,max=10"`
		DryRun bool   `json:"dry_run"`
	}
	learned string
}

// runner is one of the ways to run an operation.
type runner func(context.Context, any) (any, error)

// TestRun: however an operation is run, the checks of scope and input come first, then the step
// before the transaction, then the work, within what runs around a write, which a dry run undoes.
func TestRun(t *testing.T) {
	t.Parallel()
	var steps []string
	step := func(name string) { steps = append(steps, name) }
	refused := errors.New("refused")
	set := &op.Set{AroundWrite: func(ctx context.Context, _ op.Operation, _ any, work func(context.Context) (any, error)) error {
		step("begin")
		_, err := work(ctx)
		step("end")
		return err
	}}
	declared := op.Add(set, metaOf("POST", "/x"), func(_ context.Context, in *attempt) (*op.NoContent, error) {
		step("run " + in.learned)
		if in.Body.Name == "refuse" {
			return nil, refused
		}
		return &op.NoContent{}, nil
	})
	op.BindPrepare(set, declared, func(_ context.Context, in *attempt) error {
		step("prepare")
		if in.Body.Name == "unready" {
			return refused
		}
		in.learned = in.Body.Name
		return nil
	})
	o := set.Operation(declared)
	ways := map[string]runner{
		"Run":  o.Run,
		"Call": func(ctx context.Context, in any) (any, error) { return op.Call(ctx, set, declared, in.(*attempt)) },
		"halves": func(ctx context.Context, in any) (any, error) {
			if err := o.Prepare(ctx, in); err != nil {
				return nil, err
			}
			return o.RunPrepared(ctx, in)
		},
	}
	in := func(name string, dry bool) *attempt {
		steps = nil
		in := &attempt{}
		in.Body.Name, in.Body.DryRun = name, dry
		return in
	}

	writer, reader := scoped(t, domain.Write), scoped(t, domain.Read)
	if _, err := o.Run(writer, in("a", true)); err == nil || len(steps) != 1 {
		t.Errorf("a set without dry runs does %q: %v", steps, err)
	}
	set.DryRun = func(ctx context.Context, work func(context.Context) error) error {
		err := work(ctx)
		step("undo")
		return err
	}
	for _, c := range []struct {
		name  string
		dry   bool
		err   error
		steps string
	}{
		{"a", false, nil, "prepare, begin, run a, end"},
		{"refuse", false, refused, "prepare, begin, run refuse, end"},
		{"unready", false, refused, "prepare"},
		{"a", true, nil, "prepare, begin, run a, end, undo"},
		{"refuse", true, refused, "prepare, begin, run refuse, end, undo"},
	} {
		for way, run := range ways {
			if _, err := run(writer, in(c.name, c.dry)); !errors.Is(err, c.err) || strings.Join(steps, ", ") != c.steps {
				t.Errorf("%s of %s: steps are %q, not %q: %v", way, c.name, steps, c.steps, err)
			}
		}
	}
	if !o.Prepares() || !o.Input().HasDryRun() || op.Describe(reflect.TypeFor[withBody]()).HasDryRun() {
		t.Error("which operations prepare or have dry runs is wrong")
	}

	ways["second half"] = o.RunPrepared
	for way, run := range ways {
		if _, err := run(writer, in(" ", false)); !domain.IsCode(err, domain.InvalidRequest) || steps != nil {
			t.Errorf("%s of an invalid input does %q: %v", way, steps, err)
		}
		for _, ctx := range []context.Context{t.Context(), scoped(t), reader} { // the scope comes first
			if _, err := run(ctx, in(" ", false)); !domain.IsCode(err, domain.Forbidden) || steps != nil {
				t.Errorf("%s without the scope does %q: %v", way, steps, err)
			}
		}
	}
	if _, err := o.Run(writer, &nothing{}); err == nil || domain.IsCode(err, domain.InvalidRequest) {
		t.Errorf("an input of another type: %v", err)
	}
}
