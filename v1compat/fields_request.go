package v1compat

import (
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"

	"partnerapi/v2/op"
)

// requestFields are the parameters and the body of a route.
func (r *route) requestFields() ([]Field, error) {
	learned, err := learn(r.input.Type, func(in any) (map[string]string, error) {
		return r.publicInput(in), nil
	})
	if err != nil {
		return nil, err
	}
	pages := reflect.New(r.input.Type).Elem().FieldByName("Query")
	var fields []Field
	for _, name := range inputNames(r.input) {
		if window, ok := asWindow(pages); ok && (name == "limit" || name == "offset") {
			fields = append(fields, r.windowField(name, window))
			continue
		}
		fields = append(fields, explained(r.requestField(learned, name), requestNotes, r.ID+" "+name))
	}
	for _, target := range learned.targets {
		text := learned.constant(target)
		usual := defaultOf(r.Successor.Input(), target)
		if len(learned.moves[target]) > 0 || isEmpty(text) || text == "false" || plainText(text) == usual {
			continue
		}
		fields = append(fields, Field{
			V2: []string{target}, How: Computed, Explain: "`" + plainText(text) + "` does what v1 does",
		})
	}
	return append(fields, inputAdditions[r.ID]...), nil
}

func asWindow(query reflect.Value) (windowed, bool) {
	if !query.IsValid() {
		return nil, false
	}
	window, ok := query.Interface().(windowed)
	return window, ok
}

// requestField explains a parameter or a member of the body by what it moves.
func (r *route) requestField(s *study, name string) Field {
	f, alone := Field{V1: name}, true
	for _, target := range s.targets {
		if slices.ContainsFunc(s.moves[target], func(p *spot) bool { return p.path == name }) {
			f.V2 = append(f.V2, target)
			alone = alone && len(s.moves[target]) == 1
		}
	}
	if len(f.V2) != 1 || !alone {
		return f
	}

	var usual []sample
	instead := map[string]bool{} // what v2 has where v1 has nothing
	for _, t := range s.texts(name, f.V2[0]) {
		if isEmpty(t[0]) {
			instead[t[1]] = true
		} else {
			usual = append(usual, sample{v1: t[0], v2: t[1]})
		}
	}
	enum := slices.ContainsFunc(s.moves[f.V2[0]], func(p *spot) bool { return p.enum })
	related, ok := relate(usual, enum)
	if !ok { // of a text only that which is a UUID is to be one
		related, ok = relate(slices.DeleteFunc(usual, func(s sample) bool { return !strings.Contains(s.v1, "-7000-") }), enum)
	}
	if !ok || len(instead) > 1 {
		return f
	}
	for text := range instead {
		if !isEmpty(text) {
			related.text = sentence(related.text, "left out, v1 asks for `"+plainText(text)+"`")
		}
	}
	f = f.related(related, name, f.V2[0])
	v1, v2 := defaultOf(r.input, name), defaultOf(r.Successor.Input(), f.V2[0])
	if v1 != v2 {
		f.Explain = sentence(f.Explain, "left out, "+inCode(v1)+" in v1 and "+inCode(v2)+" in v2")
	}
	return f
}

// plainText is a JSON value of a parameter as it is written in a query.
func plainText(text string) string {
	return strings.NewReplacer(`"`, "", "[", "", "]", "").Replace(text)
}

func inCode(text string) string {
	if text == "" {
		return "anything"
	}
	return "`" + text + "`"
}

// windowField explains the limit or the offset of a list.
func (r *route) windowField(name string, window windowed) Field {
	_, isList := r.Successor.Output().FieldByName("Data")
	if name == "offset" || !isList {
		key := "page " + name
		if !isList {
			key = "single " + name
		}
		return explained(Field{V1: name}, requestNotes, key)
	}
	most := reflect.New(reflect.TypeOf(window)).Elem()
	setLimit(most)
	return Field{
		V1: name, V2: []string{name}, How: Same, Form: Equal,
		Explain: fmt.Sprintf("v1: 1 to %d, %s where left out, others moved to the bound; v2: 1 to %d, %s where left out, others 400",
			most.Interface().(windowed).asked().limit, defaultOf(r.input, name), maxLimit, defaultOf(r.Successor.Input(), name)),
	}
}

// setLimit sets the limit of a window, or of the one embedded in it, above all bounds.
func setLimit(window reflect.Value) {
	for i := range window.NumField() {
		if f := window.Type().Field(i); f.Name == "Limit" {
			window.Field(i).SetInt(math.MaxInt32)
		} else if f.Anonymous {
			setLimit(window.Field(i))
		}
	}
}

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
