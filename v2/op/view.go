package op

import (
	"encoding"
	"fmt"
	"reflect"
	"sync"

	"github.com/go-json-experiment/json"
)

// View returns the value to encode as JSON for an output in the release: the output itself, if the release has all of
// its fields, otherwise a copy without the others. A value that is wrapped in an interface is viewed by its own type.
func (r Release) View(output any) any {
	t := reflect.TypeOf(output)
	if t == nil {
		return nil
	}
	view := r.viewOf(t)
	if view == nil {
		return output
	}
	out := reflect.New(view.t).Elem()
	view.copy(out, reflect.ValueOf(output))
	return out.Interface()
}

// view is how values of a type are copied to another one, without the fields that a release lacks.
type view struct {
	t    reflect.Type
	copy func(dst, src reflect.Value)
}

// viewKey identifies a view: a type in a release.
type viewKey struct {
	r Release
	t reflect.Type
}

// views caches the result of viewOf.
var views sync.Map

// viewOf returns the view of a type in the release; nil if the release has all of it. Types must not contain
// themselves.
func (r Release) viewOf(t reflect.Type) *view {
	key := viewKey{r, t}
	if cached, ok := views.Load(key); ok {
		return cached.(*view)
	}
	made, _ := views.LoadOrStore(key, r.makeView(t))
	return made.(*view)
}

// makeView makes the view of a type. A type with its own JSON is copied as it is.
func (r Release) makeView(t reflect.Type) *view {
	if t.Kind() == reflect.Interface {
		return &view{t, func(dst, src reflect.Value) {
			if !src.IsNil() {
				dst.Set(reflect.ValueOf(r.View(src.Elem().Interface())))
			}
		}}
	}
	if marshalsItself(t) {
		return nil
	}
	switch t.Kind() {
	case reflect.Pointer:
		if of := r.viewOf(t.Elem()); of != nil {
			return &view{reflect.PointerTo(of.t), func(dst, src reflect.Value) {
				if !src.IsNil() {
					dst.Set(reflect.New(of.t))
					of.copy(dst.Elem(), src.Elem())
				}
			}}
		}
	case reflect.Slice:
		if of := r.viewOf(t.Elem()); of != nil {
			return &view{reflect.SliceOf(of.t), func(dst, src reflect.Value) {
				dst.Set(reflect.MakeSlice(dst.Type(), src.Len(), src.Len()))
				for i := range src.Len() {
					of.copy(dst.Index(i), src.Index(i))
				}
			}}
		}
	case reflect.Map, reflect.Array:
		if r.viewOf(t.Elem()) != nil {
			panic(fmt.Sprintf("a %s must not contain fields with the tag since", t))
		}
	case reflect.Struct:
		return r.structView(t)
	}
	return nil
}

// structView makes the view of a struct: a struct with the members that the release has. Fields that are no members,
// which JSON does not show, are omitted.
func (r Release) structView(t reflect.Type) *view {
	type member struct {
		from int // the index of the field in t
		of   *view
	}
	var members []member
	var fields []reflect.StructField
	differs, unexported := false, ""
	for f := range t.Fields() {
		switch {
		case !r.Includes(f.Tag.Get("since")):
			differs = true
			continue
		case f.Anonymous && !f.IsExported(): // its fields are members, but no made type can have them
			unexported = f.Name
			differs = differs || r.viewOf(f.Type) != nil
			continue
		case !f.IsExported() || f.Tag.Get("json") == "-":
			continue
		}
		field := reflect.StructField{Name: f.Name, Type: f.Type, Tag: f.Tag}
		if f.Anonymous && f.Tag.Get("json") == "" {
			field.Tag = `json:",embed"` // an embedded field would bring its methods, which a made type cannot have
		}
		of := r.viewOf(f.Type)
		if r.ShowsNull(f) {
			of = emptyAsNull
		}
		if of != nil {
			field.Type, differs = of.t, true
		}
		members, fields = append(members, member{f.Index[0], of}), append(fields, field)
	}
	if !differs {
		return nil
	}
	if unexported != "" {
		panic(fmt.Sprintf("%s embeds %s, which must be exported because it has fields with the tag since", t, unexported))
	}
	return &view{reflect.StructOf(fields), func(dst, src reflect.Value) {
		for i, m := range members {
			if m.of == nil {
				dst.Field(i).Set(src.Field(m.from))
			} else {
				m.of.copy(dst.Field(i), src.Field(m.from))
			}
		}
	}}
}

// emptyAsNull is the view of a string that is null if it is empty.
var emptyAsNull = &view{reflect.TypeFor[*string](), func(dst, src reflect.Value) {
	if text := src.String(); text != "" {
		dst.Set(reflect.ValueOf(&text))
	}
}}

// ShowsNull reports whether a string field is null in the release where it is empty. The tag null names the first
// release in which it may be, such as null:"2.5". Earlier documents promise a string, and callers in Go keep one.
func (r Release) ShowsNull(f reflect.StructField) bool {
	since, ok := f.Tag.Lookup("null")
	return ok && r.Includes(since)
}

// marshalsItself reports whether a type writes its own JSON or text.
func marshalsItself(t reflect.Type) bool {
	for _, own := range []reflect.Type{
		reflect.TypeFor[json.Marshaler](), reflect.TypeFor[json.MarshalerTo](),
		reflect.TypeFor[encoding.TextMarshaler](), reflect.TypeFor[encoding.TextAppender](),
	} {
		if t.Implements(own) || reflect.PointerTo(t).Implements(own) {
			return true
		}
	}
	return false
}
