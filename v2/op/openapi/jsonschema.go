package openapi

import (
	"fmt"
	"maps"
	"reflect"
	"slices"

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
	order, _ := ref.Value.Extensions[declaredOrder].([]string)
	if len(order) != len(ref.Value.Properties) {
		return nil, fmt.Errorf("the order of the schema's members is unknown")
	}
	var list []Member
	for _, name := range order {
		required := slices.Contains(ref.Value.Required, name)
		list = append(list, Member{Name: name, Schema: ref.Value.Properties[name], Required: required})
	}
	return list, nil
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

// JSONSchema converts a schema of a document to self-contained JSON Schema 2020-12. References are replaced with
// their components, and an example with a list. A
// recursive component is an error. Properties are in the order of their declaration. simplify, if not nil, may
// remove keywords from each schema.
func JSONSchema(ref *openapi3.SchemaRef, simplify func(*openapi3.Schema)) ([]byte, error) {
	standalone, err := inline(ref, simplify, nil)
	if err != nil {
		return nil, err
	}
	text, err := standalone.Value.MarshalJSON()
	if err != nil {
		return nil, fmt.Errorf("encode the schema: %w", err)
	}
	return orderMembers(text, nil)
}

// inline returns a copy of a schema with copies of components in place of references, lists in place of examples, and
// parts merged (flattenSingle). It removes extensions other than declaredOrder, and
// calls simplify, if not nil, for each schema. within are the components around the schema; a reference to one is an
// error.
func inline(ref *openapi3.SchemaRef, simplify func(*openapi3.Schema), within []string) (*openapi3.SchemaRef, error) {
	if ref.Ref != "" {
		if slices.Contains(within, ref.Ref) {
			return nil, fmt.Errorf("%s holds itself", ref.Ref)
		}
		within = append(slices.Clone(within), ref.Ref)
	}
	own := *ref.Value
	own.Extensions = nil
	if order, ok := ref.Value.Extensions[declaredOrder]; ok {
		own.Extensions = map[string]any{declaredOrder: order}
	}
	if own.Example != nil {
		own.Example, own.Examples = nil, []any{own.Example}
	}
	if simplify != nil {
		simplify(&own)
	}

	var err error
	if own.Items != nil {
		if own.Items, err = inline(own.Items, simplify, within); err != nil {
			return nil, fmt.Errorf("items: %w", err)
		}
	}
	own.Properties = maps.Clone(own.Properties)
	for name, member := range own.Properties {
		if own.Properties[name], err = inline(member, simplify, within); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	for _, list := range []*openapi3.SchemaRefs{&own.AllOf, &own.AnyOf, &own.OneOf} {
		*list = slices.Clone(*list)
		for i, part := range *list {
			if (*list)[i], err = inline(part, simplify, within); err != nil {
				return nil, err
			}
		}
	}
	flattenSingle(&own)
	return own.NewRef(), nil
}

// flattenSingle merges the only schema of an allOf, or of an anyOf with null, into own, the schema that has it: own
// takes the keywords that it does not have itself.
func flattenSingle(own *openapi3.Schema) {
	parts := slices.Concat(own.AllOf, own.AnyOf) // one of the two is empty
	// A schema or null is merged only if the schema has a type: null is added to that.
	orNull := len(own.AnyOf) == 2 && own.AnyOf[1].Value.Type.Is(openapi3.TypeNull) && parts[0].Value.Type != nil
	if len(own.AllOf) != 1 && !orNull {
		return
	}
	own.AllOf, own.AnyOf = nil, nil
	into, only := reflect.ValueOf(own).Elem(), reflect.ValueOf(parts[0].Value).Elem()
	for i := range into.NumField() {
		if into.Field(i).IsZero() {
			into.Field(i).Set(only.Field(i))
		}
	}
	if !orNull {
		return
	}
	own.Type = &openapi3.Types{own.Type.Slice()[0], openapi3.TypeNull}
	if len(own.Enum) > 0 {
		own.Enum = append(slices.Clone(own.Enum), nil)
	}
}
