package v1compat

import (
	"bytes"
	"fmt"
	"reflect"
	"slices"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"partnerapi/domain"
	"partnerapi/idmap"
	"partnerapi/v2/op"
)

// LaterFields are the members of v1's items, for a route, whose values v2 has only from a later release on.
type LaterFields struct {
	Meta
	Fields []string // sorted
}

// LaterFields returns the members of v1's items for which a release of v2 has no values, by route in the order of the
// table. Routes without such members are omitted, and so are those whose successor the release lacks.
func (f *Facade) LaterFields(release op.Release) (all []LaterFields, err error) {
	for _, r := range f.routes {
		if r.Additive || r.Successor.Meta().Since > release {
			continue
		}
		fields, err := r.laterFields(release)
		if err != nil {
			return nil, fmt.Errorf("route %s: %w", r.ID, err)
		}
		if len(fields) > 0 {
			all = append(all, LaterFields{r.Meta, fields})
		}
	}
	return all, nil
}

// LaterFields returns the members of v1's items for which a release of v2 has no values, sorted.
func (t *Translator) LaterFields(release op.Release) ([]string, error) {
	return t.route.laterFields(release)
}

// laterFields finds the members by translating two outputs of v2 that differ only in the fields that the release lacks.
func (r *route) laterFields(release op.Release) (names []string, err error) {
	empty, filled := reflect.New(r.v2Output), reflect.New(r.v2Output)
	fillLater(filled.Elem(), release, false)
	var items [2]map[string]jsontext.Value
	for i, shown := range []reflect.Value{empty, filled} {
		item := r.fromV2(shown.Interface())
		err := idmap.NumberBy(func(keys []idmap.IDKey) (map[idmap.IDKey]int64, error) {
			numbers := map[idmap.IDKey]int64{}
			for _, key := range keys {
				numbers[key] = NoNumber
			}
			return numbers, nil
		}, item)
		if err != nil {
			return nil, err
		}
		text, err := json.Marshal(item)
		if err == nil {
			err = json.Unmarshal(text, &items[i])
		}
		if err != nil {
			return nil, err
		}
	}
	for name, value := range items[1] {
		if !bytes.Equal(value, items[0][name]) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names, nil
}

// fillLater sets the fields of a struct that a release lacks, at any depth, to values that are not zero; all fields if
// later is true.
func fillLater(v reflect.Value, release op.Release, later bool) {
	if at, ok := v.Addr().Interface().(*domain.Time); ok {
		if later {
			*at = domain.At(time.Unix(1, 0))
		}
		return
	}
	if v.Kind() == reflect.Struct {
		for f, field := range v.Fields() {
			if field.CanSet() {
				fillLater(field, release, later || !release.Includes(f.Tag.Get("since")))
			}
		}
		return
	}
	if !later {
		return
	}
	switch v.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fillLater(v.Elem(), release, true)
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int32, reflect.Int64:
		v.SetInt(1)
	case reflect.Float64:
		v.SetFloat(1)
	case reflect.String:
		v.SetString("later")
	}
}
