package op_test

import (
	"strings"
	"testing"
	"time"

	"partnerapi/domain"
	"partnerapi/v2/op"
)

// TestTarget: a time is given in UTC, a false that is not the default is given, and what no surface
// binds is left out. An input that no request binds to has no target.
func TestTarget(t *testing.T) {
	t.Parallel()
	o := newOp()
	of := func(change func(*sample)) *sample {
		in := o.New().(*sample)
		in.Path.ID = domain.ClientID{1}
		change(in)
		return in
	}
	at := time.Date(2026, 1, 31, 9, 0, 0, 123456789, time.FixedZone("", 3600))
	for want, in := range map[string]*sample{
		"":                                      of(func(in *sample) { in.Query.Rows, in.Query.Secret, in.Body.Name = 7, "x", "n" }),
		"?draft=false":                          of(func(in *sample) { in.Query.Draft = false }),
		"?ids=":                                 of(func(in *sample) { in.Query.IDs = &op.IDList[domain.ClientKind]{} }),
		"?note=%C3%A9%20%26%3E%22":              of(func(in *sample) { in.Query.Note = new("é &>\"") }),
		"?since=2026-01-31T08:00:00.123456789Z": of(func(in *sample) { in.Query.Since = &domain.Time{Time: at} }),
	} {
		got, err := op.Target(o, in)
		if path, query, _ := strings.Cut(got, in.Path.ID.String()); err != nil || path != "/samples/" || query != want {
			t.Errorf("%s, %v\nbut expected %s", got, err, want)
		}
	}

	for name, in := range map[string]any{
		"no object": o.New(), "another input": &numbers{}, "a value": sample{},
		"an empty text": of(func(in *sample) { in.Query.Note = new("") }),
	} {
		if target, err := op.Target(o, in); err == nil {
			t.Errorf("%s: %q", name, target)
		}
	}
}
