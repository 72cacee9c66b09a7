package openapi

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/getkin/kin-openapi/openapi3"
)

// Member is a member of an object.
type Member struct {
	Name     string
	Schema   *openapi3.SchemaRef
	Required bool
}

// MembersOf returns the members of an object's schema, in the order of their declaration.
func MembersOf(ref *openapi3.SchemaRef) ([]Member, error) {
	if ref == nil || ref.Value == nil || !ref.Value.Type.Is(openapi3.TypeObject) {
		return nil, fmt.Errorf("the schema is not one of an object")
	}
	var list []Member
	for _, name := range namesOf(ref.Value) {
		required := slices.Contains(ref.Value.Required, name)
		list = append(list, Member{Name: name, Schema: ref.Value.Properties[name], Required: required})
	}
	return list, nil
}

// namesOf returns the names of an object's members, in the order of their declaration or, if that is unknown, sorted.
func namesOf(schema *openapi3.Schema) []string {
	names := make([]string, 0, len(schema.Properties))
	for name := range schema.Properties {
		names = append(names, name)
	}
	order, _ := schema.Extensions[declaredOrder].([]string)
	slices.SortFunc(names, func(a, b string) int {
		if byOrder := slices.Index(order, a) - slices.Index(order, b); byOrder != 0 {
			return byOrder
		}
		return strings.Compare(a, b)
	})
	return names
}

// ClosedObject returns the schema of an object that allows no other members. Two members of the same name are an error.
func ClosedObject(members []Member) (*openapi3.Schema, error) {
	schema, order, no := openapi3.NewObjectSchema(), []string{}, false
	schema.AdditionalProperties = openapi3.AdditionalProperties{Has: &no}
	for _, m := range members {
		if schema.Properties[m.Name] != nil {
			return nil, fmt.Errorf("two members are named %s", m.Name)
		}
		schema.WithPropertyRef(m.Name, m.Schema)
		order = append(order, m.Name)
		if m.Required {
			schema.Required = append(schema.Required, m.Name)
		}
	}
	schema.Extensions = map[string]any{declaredOrder: order}
	return schema, nil
}

// JSONSchema converts a schema of a document to self-contained JSON Schema 2020-12. References are replaced with their
// components, a union with the common schema of its forms, and example with examples. A recursive component is an
// error. Properties are in the order of their declaration. Keywords in without, such as examples, are left out.
func JSONSchema(ref *openapi3.SchemaRef, without ...string) ([]byte, error) {
	tree, err := (&standalone{without: without}).schema(ref)
	if err != nil {
		return nil, err
	}
	text, err := json.Marshal(tree)
	if err != nil {
		return nil, fmt.Errorf("encode the schema: %w", err)
	}
	return orderMembers(text, nil)
}

// standalone converts a schema. within are the references of the components that contain it, and without the keywords
// to leave out.
type standalone struct {
	within, without []string
}

// schema converts one schema.
func (s *standalone) schema(ref *openapi3.SchemaRef) (map[string]any, error) {
	if ref.Ref != "" {
		if slices.Contains(s.within, ref.Ref) {
			return nil, fmt.Errorf("%s holds itself", ref.Ref)
		}
		s = &standalone{within: append(slices.Clone(s.within), ref.Ref), without: s.without}
	}
	if ref.Value.Discriminator != nil {
		return s.schema(commonSchema(ref.Value))
	}
	tree, err := keywords(ref.Value)
	if err != nil {
		return nil, err
	}
	for _, name := range s.without {
		delete(tree, name)
	}
	if err := s.addSchemas(tree, ref.Value); err != nil {
		return nil, err
	}
	flattenSingle(tree)
	return tree, nil
}

// keywords returns the JSON Schema keywords of a schema, except those that contain schemas.
func keywords(schema *openapi3.Schema) (map[string]any, error) {
	own := *schema
	own.Discriminator, own.XML, own.ExternalDocs = nil, nil, nil
	own.Properties, own.Items, own.Not = nil, nil, nil
	own.AllOf, own.AnyOf, own.OneOf = nil, nil, nil
	own.AdditionalProperties.Schema = nil
	text, err := own.MarshalJSON()
	if err != nil {
		return nil, fmt.Errorf("encode the schema: %w", err)
	}
	tree := map[string]any{}
	if err := json.Unmarshal(text, &tree); err != nil {
		return nil, fmt.Errorf("read the schema: %w", err)
	}

	for name := range tree {
		if strings.HasPrefix(name, "x-") && name != declaredOrder {
			delete(tree, name)
		}
	}
	if example, ok := tree["example"]; ok {
		delete(tree, "example")
		tree["examples"] = []any{example}
	}

	for bound, exclusive := range map[string]string{"minimum": "exclusiveMinimum", "maximum": "exclusiveMaximum"} {
		// OpenAPI 3.0 has a bool, and JSON Schema the bound itself.
		if isExclusive, ok := tree[exclusive].(bool); ok {
			delete(tree, exclusive)
			if isExclusive {
				tree[exclusive] = tree[bound]
				delete(tree, bound)
			}
		}
	}
	return tree, nil
}

// addSchemas adds to tree the keywords of a schema that contain schemas.
func (s *standalone) addSchemas(tree map[string]any, schema *openapi3.Schema) error {
	add := func(name string, ref *openapi3.SchemaRef) error {
		if ref == nil {
			return nil
		}
		inner, err := s.schema(ref)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		tree[name] = inner
		return nil
	}

	if err := add("items", schema.Items); err != nil {
		return err
	}
	if err := add("not", schema.Not); err != nil {
		return err
	}
	if err := add("additionalProperties", schema.AdditionalProperties.Schema); err != nil {
		return err
	}

	for name, refs := range map[string]openapi3.SchemaRefs{
		"allOf": schema.AllOf, "anyOf": schema.AnyOf, "oneOf": schema.OneOf,
	} {
		var list []any
		for _, ref := range refs {
			inner, err := s.schema(ref)
			if err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
			list = append(list, inner)
		}
		if list != nil {
			tree[name] = list
		}
	}
	if len(schema.Properties) == 0 {
		return nil
	}

	properties := map[string]any{}
	for name, ref := range schema.Properties {
		inner, err := s.schema(ref)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		properties[name] = inner
	}
	tree["properties"] = properties
	return nil
}

// flattenSingle merges the only schema of an allOf into tree, or that of an anyOf of a schema and null, whose type then
// allows null. Keywords that tree has stay. It leaves an anyOf whose schema has no type.
func flattenSingle(tree map[string]any) {
	allOf, _ := tree["allOf"].([]any)
	anyOf, _ := tree["anyOf"].([]any)
	orNull := len(anyOf) == 2 && reflect.DeepEqual(anyOf[1], map[string]any{"type": openapi3.TypeNull})
	only := append(allOf, anyOf...)[:min(1, len(allOf)+len(anyOf))]
	if len(allOf) != 1 && !orNull || orNull && anyOf[0].(map[string]any)["type"] == nil {
		return
	}
	delete(tree, "allOf")
	delete(tree, "anyOf")
	for name, value := range only[0].(map[string]any) {
		if _, own := tree[name]; !own {
			tree[name] = value
		}
	}
	if !orNull {
		return
	}
	tree["type"] = []any{tree["type"], openapi3.TypeNull}
	if values, ok := tree["enum"].([]any); ok {
		tree["enum"] = append(values, nil)
	}
}
