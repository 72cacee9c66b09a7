package telemetry_test

import (
	"context"
	"testing"

	"partnerapi/cmd/internal/telemetry"
	"partnerapi/domain"
)

// TestOffAllocatesNothing: what packages do for tracing costs nothing where it is off,
// and the id of a request comes with its caller.
func TestOffAllocatesNothing(t *testing.T) {
	var off *telemetry.Telemetry
	work, tracer, ctx := off.Work(), off.Statements(), t.Context()
	caller, id := &domain.Caller{}, "request"
	for name, one := range map[string]struct {
		want float64
		do   func()
	}{
		"a span":    {0, func() { _, end := work.Begin(ctx, "work"); end(nil) }},
		"a tracer":  {0, func() { _ = tracer == nil }},
		"a request": {1, func() { kept = domain.WithRequest(ctx, caller, id) }},
		"a caller":  {1, func() { kept = domain.WithCaller(ctx, caller) }}, // as it was without ids
	} {
		if got := testing.AllocsPerRun(100, one.do); got != one.want {
			t.Errorf("%s allocates %v times, not %v", name, got, one.want)
		}
	}
}

// kept keeps a result from being optimized away.
var kept context.Context
