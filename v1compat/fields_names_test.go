package v1compat

import (
	"reflect"
	"slices"
	"strings"

	"partnerapi/v2/op"
)

// publicInput is what an input of v1 becomes in the successor, by the names of its
// parameters and members.
func (r *route) publicInput(in any) map[string]string {
	texts := map[string]string{}
	v := reflect.ValueOf(r.toV2(in)).Elem()
	for _, part := range []string{"Path", "Query", "Body"} {
		if value := v.FieldByName(part); value.IsValid() {
			inputTexts(value, texts)
		}
	}
	delete(texts, "limit") // it is explained by windowField
	for own, other := range inputElsewhere[r.ID] {
		if text, ok := texts[own]; ok && other != "" {
			texts[other] = text
		}
		delete(texts, own)
	}
	return texts
}

// inputTexts are the texts of what is set in a part of an input of v2, by the names
// that callers know.
func inputTexts(v reflect.Value, texts map[string]string) {
	for i := range v.NumField() {
		f, value := v.Type().Field(i), v.Field(i)
		name := op.WireName(f)
		switch {
		case name != "":
			if text := inputText(value); !isEmpty(text) {
				texts[name] = text
			}
		case f.Anonymous:
			inputTexts(value, texts)
		}
	}
}

// inputText is the text of a parameter or a member; empty where it is absent.
func inputText(v reflect.Value) string {
	if element, _ := op.OptionalElement(v.Type()); element != nil {
		if !v.FieldByName("Given").Bool() {
			return ""
		}
		return inputText(v.FieldByName("Value"))
	}
	switch {
	case v.Kind() == reflect.Pointer && v.IsNil(), v.Kind() == reflect.Slice && v.IsNil():
		return ""
	case v.Kind() == reflect.Pointer:
		return inputText(v.Elem())
	case v.Kind() == reflect.Struct && v.FieldByName("IDs").IsValid():
		return encoded(v.FieldByName("IDs"))
	}
	return encoded(v)
}

// inputNames are the names of the parameters and of the members of the body.
func inputNames(in *op.Input) (names []string) {
	for _, p := range slices.Concat(in.Path, in.Query) {
		names = append(names, p.Name)
	}
	if in.Body != nil {
		names = append(names, jsonPaths(in.Body)...)
	}
	return names
}

// defaultOf is the default of a parameter; empty for none.
func defaultOf(in *op.Input, name string) string {
	for _, p := range in.Query {
		if p.Name == name {
			return p.Tag.Get("default")
		}
	}
	return ""
}

// jsonPaths are the paths of the members of a type in JSON, in their order: of
// lists of parts, and of what is in them, and of values.
func jsonPaths(t reflect.Type) (paths []string) {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	for i := range t.NumField() {
		f := t.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		inner := f.Type
		for inner.Kind() == reflect.Pointer || inner.Kind() == reflect.Slice {
			inner = inner.Elem()
		}
		switch {
		case name == "" && f.Anonymous:
			paths = append(paths, jsonPaths(f.Type)...)
		case name == "" || name == "-":
		case !isPart(inner):
			paths = append(paths, name)
		default:
			at := name + "."
			if f.Type.Kind() == reflect.Slice {
				paths = append(paths, name)
				at = name + "[]."
			}
			for _, path := range jsonPaths(inner) {
				paths = append(paths, at+path)
			}
		}
	}
	return paths
}
