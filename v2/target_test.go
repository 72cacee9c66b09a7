package v2_test

import (
	"fmt"
	"net/url"
	"reflect"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"partnerapi/domain"
	"partnerapi/domain/rule"
	"partnerapi/v2/api"
	"partnerapi/v2/op"
)

// TestTargets: for every operation, a request is bound, put back into a path and a
// query, and bound again: the input is the same.
func TestTargets(t *testing.T) {
	t.Parallel()
	for _, o := range api.Operations {
		t.Run(o.Meta().ID, func(t *testing.T) {
			t.Parallel()
			rapid.Check(t, func(t *rapid.T) {
				path, query := map[string]string{}, url.Values{}
				for _, p := range o.Input().Path {
					path[p.Name] = textOf(t, p)
				}
				for _, p := range o.Input().Query {
					if rapid.Bool().Draw(t, "give "+p.Name) {
						query.Set(p.Name, textOf(t, p))
					}
				}
				want := bindTarget(t, o, path, query)

				target, err := op.Target(o, want)
				if err != nil {
					t.Fatalf("%+v: %v", want, err)
				}
				if got := bindTarget(t, o, pathOfTarget(t, o, target), queryOfTarget(t, target)); !reflect.DeepEqual(got, want) {
					t.Fatalf("%s binds to %+v, not to %+v", target, got, want)
				}
			})
		})
	}
}

// bindTarget binds the parameters to an input of the operation.
func bindTarget(t *rapid.T, o op.Declaration, path map[string]string, query url.Values) any {
	in := o.New()
	r := op.Request{Path: func(name string) string { return path[name] }, Query: query, Body: []byte("{}"), Lenient: true}
	if err := o.Input().Bind(in, r); err != nil {
		t.Fatalf("%v?%s: %v", path, query.Encode(), err)
	}
	return in
}

// pathOfTarget reads the parameters off the path of a target.
func pathOfTarget(t *rapid.T, o op.Declaration, target string) map[string]string {
	path, _, _ := strings.Cut(target, "?")
	segments, names := strings.Split(path, "/"), strings.Split(o.Meta().Path, "/")
	if len(segments) != len(names) {
		t.Fatalf("%s is no path of %s", target, o.Meta().Path)
	}
	found := map[string]string{}
	for i, segment := range segments {
		name, ok := strings.CutPrefix(names[i], ":")
		if !ok {
			if segment != names[i] {
				t.Fatalf("%s is no path of %s", target, o.Meta().Path)
			}
			continue
		}
		text, err := url.PathUnescape(segment)
		if err != nil {
			t.Fatal(err)
		}
		found[name] = text
	}
	return found
}

func queryOfTarget(t *rapid.T, target string) url.Values {
	_, query, _ := strings.Cut(target, "?")
	if strings.Trim(target, targetChars) != "" {
		t.Fatalf("%q holds characters that need to be escaped", target)
	}
	values, err := url.ParseQuery(query)
	if err != nil {
		t.Fatalf("%s: %v", target, err)
	}
	return values
}

// targetChars are the characters of targets.
const targetChars = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~/?=&,:%"

// textOf draws a text that the parameter takes.
func textOf(t *rapid.T, p op.Param) string {
	typ := p.Type
	if typ.Kind() == reflect.Pointer {
		typ = typ.Elem()
	}
	_, isEnum := reflect.Zero(typ).Interface().(rule.Enum)
	object, isID := reflect.Zero(typ).Interface().(interface{ Prefix() string })
	switch {
	case isID:
		return idText(t, object.Prefix())
	case typ == reflect.TypeFor[domain.Time]():
		at := time.Unix(rapid.Int64Range(-62e9, 250e9).Draw(t, "seconds"), rapid.Int64Range(0, 999_999_999).Draw(t, "fraction"))
		return at.In(time.FixedZone("", rapid.IntRange(-23, 23).Draw(t, "hours")*3600)).Format(time.RFC3339Nano)
	case typ.Kind() == reflect.Int:
		return fmt.Sprint(rapid.IntRange(1, 500).Draw(t, p.Name))
	case typ.Kind() == reflect.String && !isEnum:
		return rapid.StringMatching(`[^\x00]{1,20}`).Draw(t, p.Name)
	}
	return rapid.SampledFrom(filterTexts(t, p)).Draw(t, p.Name)
}

func idText(t *rapid.T, prefix string) string {
	id := domain.ClientID(rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(t, prefix))
	id[15] |= 1 // the zero id names nothing
	_, digits, _ := strings.Cut(id.String(), "_")
	return prefix + "_" + digits
}
