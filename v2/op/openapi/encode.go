package openapi

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"go.yaml.in/yaml/v3"
)

// sections are the parts of a document in reading order.
var sections = []string{"openapi", "info", "servers", "security", "tags", "paths", "webhooks", "components"}

// memberOrder is the order of the members of objects, except those whose members are names, such as properties. Members
// that it lacks follow alphabetically.
var memberOrder = []string{
	"title", "version", "operationId", "name", "x-displayName", "in", "url", "summary", "description", "required", "contact", "license",
	"type", "format", "enum", "schema", "tags", "parameters", "requestBody", "responses", "properties",
}

// declaredOrder is the extension of a schema that holds the declared order of its properties, which are in a map. It is
// not part of the encoded document.
const declaredOrder = "x-declared-order"

// JSON returns the document as indented JSON, deterministically. Properties are in the order of their declaration.
func JSON(doc *openapi3.T) ([]byte, error) {
	plain, err := doc.MarshalJSON()
	if err != nil {
		return nil, fmt.Errorf("encode the document: %w", err)
	}
	out, err := orderMembers(plain, sections)
	if err != nil {
		return nil, fmt.Errorf("order the document: %w", err)
	}
	if err := out.Indent(jsontext.WithIndent("  ")); err != nil {
		return nil, fmt.Errorf("indent the document: %w", err)
	}
	return append(out, '\n'), nil
}

// YAML returns the document as YAML, deterministically.
func YAML(doc *openapi3.T) ([]byte, error) {
	text, err := JSON(doc)
	if err != nil {
		return nil, err
	}
	var tree yaml.Node
	if err := yaml.Unmarshal(text, &tree); err != nil { // JSON is YAML
		return nil, fmt.Errorf("read the document: %w", err)
	}
	useBlockStyle(&tree)

	var out bytes.Buffer
	enc := yaml.NewEncoder(&out)
	enc.SetIndent(2)
	if err := enc.Encode(&tree); err != nil {
		return nil, fmt.Errorf("encode the document: %w", err)
	}
	return out.Bytes(), nil
}

// useBlockStyle removes the style of JSON (flow, quotes) from all nodes of a tree but empty maps and lists.
func useBlockStyle(n *yaml.Node) {
	isEmpty := len(n.Content) == 0 && n.Kind != yaml.ScalarNode // {} and [] have no block style
	if !isEmpty {
		n.Style = 0
	}
	for _, child := range n.Content {
		useBlockStyle(child)
	}
}

// orderMembers returns a JSON value with ordered members. If the value is an object, order lists its own members; nil
// means memberOrder. Objects within the value are ordered by memberOrder, and properties by their declaredOrder.
func orderMembers(value jsontext.Value, order []string) (jsontext.Value, error) {
	switch value.Kind() {
	case '[':
		var items []jsontext.Value
		if err := json.Unmarshal(value, &items); err != nil {
			return nil, err
		}
		for i, item := range items {
			ordered, err := orderMembers(item, nil)
			if err != nil {
				return nil, err
			}
			items[i] = ordered
		}
		return json.Marshal(items)
	case '{':
		return orderObject(value, order)
	}
	return value, nil
}

// orderObject returns a JSON object with the members of order first (nil means memberOrder), and others alphabetically.
// The member declaredOrder, which it removes, is the order of the properties. orderMembers orders the values.
func orderObject(value jsontext.Value, order []string) (_ jsontext.Value, err error) {
	members := map[string]jsontext.Value{}
	if err := json.Unmarshal(value, &members); err != nil {
		return nil, err
	}
	var properties []string
	if list, ok := members[declaredOrder]; ok {
		if err := json.Unmarshal(list, &properties); err != nil {
			return nil, err
		}
		delete(members, declaredOrder)
	}
	hasOrder := order != nil
	if !hasOrder {
		order = memberOrder
	}
	place := func(name string) int {
		if i := slices.Index(order, name); i >= 0 {
			return i
		}
		return len(order)
	}
	names := slices.SortedFunc(maps.Keys(members), func(a, b string) int {
		return cmp.Or(place(a)-place(b), cmp.Compare(a, b))
	})

	var text bytes.Buffer
	enc := jsontext.NewEncoder(&text)
	if err := enc.WriteToken(jsontext.BeginObject); err != nil {
		return nil, err
	}
	for _, name := range names {
		var valueOrder []string
		if name == "properties" {
			valueOrder = properties
		}
		member := members[name]
		// The value of the keyword example keeps its order. In properties, which have an order, example is only a name.
		if name != "example" || hasOrder {
			if member, err = orderMembers(member, valueOrder); err != nil {
				return nil, err
			}
		}
		if err := enc.WriteToken(jsontext.String(name)); err != nil {
			return nil, err
		}
		if err := enc.WriteValue(member); err != nil {
			return nil, err
		}
	}
	if err := enc.WriteToken(jsontext.EndObject); err != nil {
		return nil, err
	}
	return text.Bytes(), nil
}
