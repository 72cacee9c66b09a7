package v1compat

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"partnerapi/v2/op/ginop"
)

// How says how v2's value of a field becomes v1's, or v1's becomes v2's.
type How string

// The ways (decisions 11.8).
const (
	Same      How = "same"      // the same name and the same JSON value
	Renamed   How = "renamed"   // another name, the same value
	Converted How = "converted" // the same thing in another form
	Computed  How = "computed"  // from several fields, or not by one rule
	GivenUp   How = "given up"  // v2 does not have it
)

// Field is a field of v1 and what it is in v2.
type Field struct {
	// V1 is the path of the field, as in items[].id, or the name of a parameter.
	// It is empty for a parameter of v2 for which v1 has none.
	V1 string
	// V2 are the paths of what it is made of in v2's successor, or becomes there.
	V2  []string
	How How
	// Form is how the values are related; empty for computed and given up.
	Form Form
	// Values are v1's values by v2's, where the Form is Mapped.
	Values map[string]string
	// Explain says in Markdown what How leaves open. It may be empty for same and
	// renamed.
	Explain string
}

// OperationFields are the fields of a route of v1.
type OperationFields struct {
	Route Meta
	// Request are the parameters and the members of the body, Response those of
	// the answer.
	Request, Response []Field
}

// Fields are the fields of all routes that have a successor, found by running the
// translators on marked values (decisions 11.8). A field that nothing explains
// has no How; there is none, which a test holds.
func (f *Facade) Fields() ([]OperationFields, error) {
	var list []OperationFields
	for _, r := range f.routes {
		if r.Successor == nil {
			continue
		}
		request, err := r.requestFields()
		if err != nil {
			return nil, fmt.Errorf("request of %s: %w", r.ID, err)
		}
		response, err := r.responseFields()
		if err != nil {
			return nil, fmt.Errorf("response of %s: %w", r.ID, err)
		}
		meta := r.Meta
		meta.Fails = r.failures()
		list = append(list, OperationFields{Route: meta, Request: request, Response: response})
	}
	return list, nil
}

// explained gives a field the sentence that was written for it.
func explained(f Field, notes map[string]string, key string) Field {
	note := notes[key]
	switch {
	case f.How != "":
		f.Explain = sentence(f.Explain, note)
	case note == "":
	case len(f.V2) > 0:
		f.How, f.Explain = Computed, note
	default:
		f.How, f.Explain = GivenUp, note
	}
	return f
}

// responseFields are the fields of a route's answer.
func (r *route) responseFields() ([]Field, error) {
	prefix, item, page := "", r.output, []Field(nil)
	if items, ok := r.output.FieldByName("Items"); ok {
		prefix, item, page = "items[].", items.Type.Elem(), r.pageFields()
	}
	fields, err := answerFields(r.shown, item, r.fromV2, r.publicOutput())
	for i, field := range fields {
		fields[i] = explained(field, responseNotes, r.ID+" "+field.V1)
		fields[i].V1 = prefix + field.V1
	}
	return append(page, fields...), err
}

// answerFields explain the fields of an item of v1, which from makes of a pointer to
// what v2 shows, without the sentences that were written for them. A field that from
// makes and the item's type lacks is one of them.
func answerFields(shown, item reflect.Type, from func(any) any, out public) ([]Field, error) {
	learned, err := learn(shown, func(v2 any) (map[string]string, error) {
		made := reflect.New(item)
		made.Elem().Set(reflect.Indirect(reflect.ValueOf(from(v2))))
		resolve(made)
		text, err := ginop.Encode(made.Interface())
		if err != nil {
			return nil, err
		}
		return flattened(text)
	})
	if err != nil {
		return nil, err
	}
	paths := jsonPaths(item)
	for _, target := range learned.targets {
		if !slices.Contains(paths, target) {
			paths = append(paths, target)
		}
	}
	fields := make([]Field, len(paths))
	for i, path := range paths {
		fields[i] = responseField(learned, path, out)
		fields[i].V1 = path
	}
	return fields, nil
}

// public is the answer of a route's successor.
type public struct {
	prefix string
	paths  []string
	// elsewhere are the paths in it of what the route's own operation has at
	// another.
	elsewhere map[string]string
}

func (r *route) publicOutput() public {
	return publicOf(r.Successor.Output(), elsewhere[r.ID])
}

func publicOf(t reflect.Type, elsewhere map[string]string) public {
	out := public{elsewhere: elsewhere}
	if data, ok := t.FieldByName("Data"); ok && data.Tag.Get("json") == "data" {
		out.prefix, t = "data[].", data.Type.Elem()
	}
	out.paths = jsonPaths(t)
	return out
}

// path is where the public answer has a source; empty for nowhere.
func (p public) path(source *spot) string {
	path := source.path
	if other, ok := p.elsewhere[path]; ok {
		path = other
	}
	if source.hidden || !slices.Contains(p.paths, path) {
		return ""
	}
	return p.prefix + path
}

// responseField explains the field of v1 at a path by what moves it.
func responseField(s *study, path string, out public) (f Field) {
	sources := s.moves[path]
	for _, source := range sources {
		if at := out.path(source); at != "" {
			f.V2 = append(f.V2, at)
		}
	}
	if len(sources) != 1 || len(f.V2) != 1 {
		return f
	}

	var usual []sample
	instead := map[string]bool{} // what v1 has where v2 has null
	for _, t := range s.texts(sources[0].path, path) {
		switch {
		case t[0] == null:
			instead[t[1]] = true
		case !isEmpty(t[0]):
			usual = append(usual, sample{v1: t[1], v2: t[0]})
		}
	}
	if len(instead) > 1 || len(usual) == 0 {
		return f
	}
	if instead["false"] && !slices.ContainsFunc(usual, func(s sample) bool { return s.v1 != "true" }) {
		f.How, f.Form, f.Explain = Converted, Presence, "`true` unless v2 has null"
		return f
	}
	related, ok := relate(usual, sources[0].enum)
	if !ok {
		return f
	}
	for text := range instead {
		related.text = sentence(related.text, insteadOfNull(text))
	}
	return f.related(related, path, strings.TrimPrefix(f.V2[0], out.prefix))
}

// insteadOfNull says what v1 has where v2 has null.
func insteadOfNull(text string) string {
	switch text {
	case null:
		return ""
	case "":
		return "left out in v1 where v2 has null"
	case `""`:
		return "an empty text in v1 where v2 has null"
	}
	return "`" + strings.Trim(text, `"`) + "` in v1 where v2 has null"
}

func (f Field) related(r relation, v1, v2 string) Field {
	f.Form, f.Values, f.Explain = r.form, r.values, r.text
	switch {
	case r.form != Equal || r.text != "":
		f.How = Converted
	case v1 == v2:
		f.How = Same
	default:
		f.How = Renamed
	}
	return f
}

// pageFields are the fields of v1's page, which the machinery around the
// translators makes.
func (r *route) pageFields() []Field {
	fields := make([]Field, 0, 4)
	for _, name := range jsonPaths(r.output) {
		if strings.Contains(name, "[]") {
			continue
		}
		field, key := Field{V1: name}, "page "+name
		if _, isList := r.Successor.Output().FieldByName("Data"); !isList {
			key = "single " + name
		} else if name == "items" {
			field.V2, field.How, field.Form = []string{"data"}, Renamed, Equal
		}
		if key == "single items" {
			field.How = Converted
		}
		fields = append(fields, explained(field, responseNotes, key))
	}
	return fields
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
