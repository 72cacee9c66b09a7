package op

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"

	jsonv2 "github.com/go-json-experiment/json"
)

// ListBinding returns what the cursors of a list are bound to: the operation, and the
// request for the input, a pointer, as Target writes it, with the body where there is
// one, but without limit and cursor. What is not given is no part of it: a filter that
// is added later leaves the cursors of before good. An id that names no object has a
// text here.
func ListBinding(o Operation, input any) (string, error) {
	described, v := o.Input(), reflect.ValueOf(input).Elem()
	b := append(make([]byte, 0, 256), o.Meta().ID...)
	b, err := described.appendPath(append(b, ' '), o.Meta().Path, v)
	if err == nil {
		b, err = appendQuery(b, described.filters, v)
	}
	if err == nil && described.Body != nil {
		var body []byte
		body, err = jsonv2.Marshal(v.FieldByIndex(described.body).Interface(), jsonv2.OmitZeroStructFields(true))
		b = append(append(b, ' '), body...)
	}
	if err != nil {
		return "", fmt.Errorf("operation %s: bind its cursors: %w", o.Meta().ID, err)
	}
	return string(b), nil
}

// filtersOf are the parameters of a query but for the paging.
func filtersOf(query []Param) []Param {
	return slices.DeleteFunc(slices.Clone(query), func(p Param) bool { return p.Name == "limit" || p.Name == "cursor" })
}

// bindingsBefore returns what releases before bound the list's cursors to: the JSON of
// the whole input but its paging. Cursors of the event feed are kept for as long as
// events are, so these are taken; none is made.
//
// A filter that is added to a list carries json:",omitzero", which leaves this text what
// it was. Those with the tag cursors:"late" were added without it: there are cursors of
// before with and without their null.
func (l boundList) bindingsBefore() []string {
	in := reflect.New(l.input.Type()).Elem()
	in.Set(l.input)
	in.FieldByIndex(l.at).SetZero()
	text, err := json.Marshal([]any{l.operation, in.Interface()})
	if err != nil {
		panic(err) // an input without a JSON form is a programming error
	}

	bindings := []string{string(text)}
	for _, f := range reflect.VisibleFields(in.FieldByName("Query").Type()) {
		if f.Tag.Get("cursors") == "late" { // no text of a caller holds a quotation mark unescaped
			bindings = append(bindings, strings.Replace(bindings[0], `,"`+f.Name+`":null`, "", 1))
		}
	}
	return bindings
}
