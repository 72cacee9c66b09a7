package openapi

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strconv"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/go-json-experiment/json/jsontext"
)

// Example is an example of a call of an operation: a file of Document.Examples.
type Example struct {
	// Path and Query are the parameters' texts by their names.
	Path  map[string]string `json:"path,omitzero"`
	Query map[string]string `json:"query,omitzero"`
	// Body is the request's; empty for none.
	Body jsontext.Value `json:"body,omitzero"`
	// Status is the status of success.
	Status int `json:"status"`
	// Response is the body of success; empty for none.
	Response jsontext.Value `json:"response,omitzero"`
}

// readExample reads the example of an operation; empty if it has none.
func (b *builder) readExample(id string) (out Example, err error) {
	if b.source.Examples == nil {
		return out, nil
	}
	text, err := fs.ReadFile(b.source.Examples, id+".json")
	if errors.Is(err, fs.ErrNotExist) {
		return out, nil
	}
	if err == nil {
		err = json.Unmarshal(text, &out)
	}
	if err != nil {
		return out, fmt.Errorf("the example: %w", err)
	}
	return out, nil
}

// parameter returns the example's value of a parameter: a number if it is an integer, otherwise a text; nil if it has
// none.
func (e *Example) parameter(in, name string, schema *openapi3.Schema) any {
	text, ok := e.Path[name]
	if in == openapi3.ParameterInQuery {
		text, ok = e.Query[name]
	}
	if !ok {
		return nil
	}
	if n, err := strconv.ParseFloat(text, 64); err == nil && schema.Type.Is(openapi3.TypeInteger) {
		return n
	}
	return text
}

// within returns the part of an example that a schema has: objects without the members that are later than the release.
// Where the schema names no members, all of them stay.
func (b *builder) within(example jsontext.Value, ref *openapi3.SchemaRef) (jsontext.Value, error) {
	var text bytes.Buffer
	dec, enc := jsontext.NewDecoder(bytes.NewReader(example)), jsontext.NewEncoder(&text)
	if err := b.copyWithin(enc, dec, ref); err != nil {
		return nil, fmt.Errorf("the example: %w", err)
	}
	return text.Bytes(), nil
}

// copyWithin copies the next value, without the members of objects that the schema lacks.
func (b *builder) copyWithin(enc *jsontext.Encoder, dec *jsontext.Decoder, ref *openapi3.SchemaRef) error {
	if u := b.mapper.unions[ref.Value]; u != nil {
		return b.copyForm(enc, dec, u)
	}
	properties, items := partsOf(ref)
	switch kind := dec.PeekKind(); {
	case kind == '{' && len(properties) > 0:
		return copyBetween(enc, dec, func() error { return b.copyMember(enc, dec, properties) })
	case kind == '[' && items != nil:
		return copyBetween(enc, dec, func() error { return b.copyWithin(enc, dec, items) })
	}
	value, err := dec.ReadValue()
	if err != nil {
		return err
	}
	return enc.WriteValue(value)
}

// copyForm copies the next value as the form of a union that it is.
func (b *builder) copyForm(enc *jsontext.Encoder, dec *jsontext.Decoder, u *union) error {
	value, err := dec.ReadValue()
	if err != nil {
		return err
	}
	var members map[string]any
	if err := json.Unmarshal(value, &members); err != nil {
		return err
	}
	form := u.schemas[fmt.Sprint(members[u.member])]
	if form == nil {
		return fmt.Errorf("%v is no %s of a form", members[u.member], u.member)
	}
	return b.copyWithin(enc, jsontext.NewDecoder(bytes.NewReader(value)), form)
}

// copyBetween copies the next value, an object or an array: its delimiters, and by each what is between them.
func copyBetween(enc *jsontext.Encoder, dec *jsontext.Decoder, each func() error) error {
	for depth, inside := dec.StackDepth(), false; !inside || dec.StackDepth() > depth; inside = true {
		if kind := dec.PeekKind(); inside && kind != '}' && kind != ']' {
			if err := each(); err != nil {
				return err
			}
			continue
		}
		delimiter, err := dec.ReadToken()
		if err != nil {
			return err
		}
		if err := enc.WriteToken(delimiter); err != nil {
			return err
		}
	}
	return nil
}

// copyMember copies the next member of an object if it is one of the properties.
func (b *builder) copyMember(enc *jsontext.Encoder, dec *jsontext.Decoder, properties openapi3.Schemas) error {
	token, err := dec.ReadToken()
	if err != nil {
		return err
	}
	name := token.String()
	if properties[name] == nil {
		return dec.SkipValue()
	}
	if err := enc.WriteToken(jsontext.String(name)); err != nil {
		return err
	}
	return b.copyWithin(enc, dec, properties[name])
}

// partsOf returns the properties and the items of a schema, and of those that it consists of.
func partsOf(ref *openapi3.SchemaRef) (properties openapi3.Schemas, items *openapi3.SchemaRef) {
	properties, items = openapi3.Schemas{}, ref.Value.Items
	maps.Copy(properties, ref.Value.Properties)
	for _, part := range slices.Concat(ref.Value.AllOf, ref.Value.AnyOf) {
		more, itemsOfPart := partsOf(part)
		maps.Copy(properties, more)
		items = cmp.Or(items, itemsOfPart)
	}
	return properties, items
}
