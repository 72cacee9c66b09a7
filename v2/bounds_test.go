package v2_test

import (
	"encoding"
	"reflect"
	"slices"
	"strings"
	"testing"

	"partnerapi/domain/rule"
	"partnerapi/v2/api"
	"partnerapi/v2/op"
)

// TestBounds: everything that an operation reads has a bound, and no rule that
// costs more than counting comes before it (decisions 2.5).
func TestBounds(t *testing.T) {
	t.Parallel()
	for _, o := range api.Operations {
		for _, p := range slices.Concat(o.Input().Path, o.Input().Query) {
			checkBound(t, o.Meta().ID+" "+p.Name, p.Type, p.Tag)
		}
		if body := o.Input().Body; body != nil {
			checkMembers(t, o.Meta().ID+" body", body)
		}
	}
}

func checkMembers(t *testing.T, where string, body reflect.Type) {
	for _, f := range reflect.VisibleFields(body) {
		if name := rule.WireName(f); name != "" {
			checkBound(t, where+"."+name, f.Type, f.Tag)
		}
	}
}

func checkBound(t *testing.T, where string, typ reflect.Type, tag reflect.StructTag) {
	if element, _ := rule.OptionalElement(typ); element != nil {
		typ = element
	}
	if typ.Kind() == reflect.Pointer {
		typ = typ.Elem()
	}
	own, items, _ := strings.Cut(tag.Get("validate"), "dive,")
	rules := strings.Split(own, ",")
	most := slices.IndexFunc(rules, func(rule string) bool { return strings.HasPrefix(rule, "max=") })
	if email := slices.Index(rules, "email"); email >= 0 && email < most {
		t.Errorf("%s: email runs before the bound", where)
	}

	value := reflect.New(typ).Interface()
	_, isEnum := value.(rule.Enum)
	switch reader, _ := value.(encoding.TextUnmarshaler); {
	case reader != nil:
		if many, ok := value.(op.ListParam); ok && many.MaxItems() > 0 {
			return
		}
		for _, text := range []string{strings.Repeat("1", 1<<20), "2026-01-31T08:00:00." + strings.Repeat("1", 1<<20) + "Z"} {
			if reader.UnmarshalText([]byte(text)) == nil {
				t.Errorf("%s: a %s of 1 MiB is taken", where, typ)
			}
		}
	case isEnum:
	case typ.Kind() == reflect.String, typ.Kind() == reflect.Slice:
		if most < 0 {
			t.Errorf("%s has no bound", where)
		}
		if typ.Kind() == reflect.Slice {
			checkBound(t, where+"[]", typ.Elem(), reflect.StructTag(`validate:"`+items+`"`))
		}
	case typ.Kind() == reflect.Struct:
		checkMembers(t, where, typ)
	}
}
