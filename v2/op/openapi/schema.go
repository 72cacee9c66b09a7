package openapi

import (
	"encoding"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"time"

	"github.com/getkin/kin-openapi/openapi3"

	"partnerapi/domain"
	"partnerapi/domain/rule"
	"partnerapi/v2/op"
)

// direction is the direction of a type. The schema of an output describes the values that the service writes; that of
// an input the values that it accepts.
type direction int

const (
	output direction = iota
	input
)

// Described is a wire type with its own schema, which cannot be derived from its kind and its tags.
type Described interface {
	// JSONSchema, on the zero value, returns an OpenAPI schema in JSON, such as {"type":"integer","minimum":1}.
	JSONSchema() string
}

// mapper converts Go types to schemas. Named structs and enums become components.
type mapper struct {
	source  *Document // what the document is built from
	schemas openapi3.Schemas
	// components maps the types in schemas to their names.
	components map[component]string
	// unions are the types with several forms in schemas, by the schema of their component.
	unions map[*openapi3.Schema]*union
	// posted lists them in the order in which they were added.
	posted []*union
	// defaults are the texts of the defaults of components, by reference; empty for none.
	defaults map[string]string
}

// component identifies a component: a type in a direction.
type component struct {
	t reflect.Type
	d direction
}

// newMapper returns a mapper without components.
func newMapper(source *Document) *mapper {
	return &mapper{
		source: source, schemas: openapi3.Schemas{}, components: map[component]string{}, unions: map[*openapi3.Schema]*union{},
		defaults: map[string]string{},
	}
}

// schema converts a type: enums of inputs (except in OpenAPI 3.0) and named structs to references to components, and
// others to a schema, which the caller may change. A type without a schema is an error.
//
// An enum of an output is a text that names the known values: callers must accept others, which later versions add, and
// generated clients reject whole pages for a value that a schema does not list.
func (m *mapper) schema(t reflect.Type, d direction) (*openapi3.SchemaRef, error) {
	if t == nil {
		return nil, fmt.Errorf("there is no type")
	}
	zero := reflect.New(t).Interface()
	if union, ok := zero.(op.OneOf); ok {
		return m.union(m.componentName(t), t, union)
	}
	if schema, err := textSchema(zero, t); schema != nil || err != nil {
		if enum, ok := zero.(rule.Enum); ok && err == nil && len(schema.Enum) > 0 && d == input {
			schema.Enum = anyOf(m.source.Release.EnumValues(enum))
		}
		if _, ok := zero.(rule.Enum); ok && err == nil && len(schema.Enum) > 0 && !m.source.OpenAPI30 {
			if d == output {
				return openEnum(schema.Enum).NewRef(), nil
			}
			return m.component(m.componentName(t), component{t, input}, schema)
		}
		return schema.NewRef(), err
	}

	switch t.Kind() {
	case reflect.Bool:
		return openapi3.NewBoolSchema().NewRef(), nil
	case reflect.String:
		return openapi3.NewStringSchema().NewRef(), nil
	case reflect.Int, reflect.Int16, reflect.Int32, reflect.Int64:
		return openapi3.NewIntegerSchema().NewRef(), nil
	case reflect.Float64:
		return &openapi3.SchemaRef{Value: &openapi3.Schema{Type: &openapi3.Types{openapi3.TypeNumber}}}, nil
	case reflect.Slice:
		items, err := m.schema(t.Elem(), d)
		if err != nil {
			return nil, err
		}
		array := openapi3.NewArraySchema()
		array.Items = items
		return array.NewRef(), nil
	case reflect.Struct:
		if t.Name() == "" {
			return m.object(t, d)
		}
		return m.namedComponent(m.componentName(t), t, d)
	}
	return nil, fmt.Errorf("a %s has no schema", t)
}

// knownValues begins the description of an enum of an output.
const knownValues = "Known values: "

// openEnum returns the schema of a text whose known values are values.
func openEnum(values []any) *openapi3.Schema {
	names := make([]string, len(values))
	for i, value := range values {
		names[i] = fmt.Sprint(value)
	}
	schema := openapi3.NewStringSchema()
	schema.Description = knownValues + strings.Join(names, ", ") + "."
	return schema
}

// idExample is the UUID part of an id, in the examples of all kinds.
const idExample = "_01jhz5q7rgec7t3vfd9w8x2k4m"

// textSchema converts types whose JSON differs from their kind: Described types, enums, times, ids, and types that
// marshal themselves as text. It returns nil for others, and an error for time.Time and for types that marshal
// themselves as JSON. zero is a pointer to a zero t.
func textSchema(zero any, t reflect.Type) (*openapi3.Schema, error) {
	if d, ok := zero.(Described); ok {
		schema := &openapi3.Schema{}
		if err := json.Unmarshal([]byte(d.JSONSchema()), schema); err != nil {
			return nil, fmt.Errorf("the schema of %s: %w", t, err)
		}
		return schema, nil
	}

	if e, ok := zero.(rule.Enum); ok && t.Kind() == reflect.String {
		schema := openapi3.NewStringSchema()
		schema.Enum = anyOf(e.Values())
		return schema, nil
	}

	switch t {
	case reflect.TypeFor[domain.Time]():
		return timeSchema(), nil
	case reflect.TypeFor[domain.Date]():
		return openapi3.NewStringSchema().WithFormat("date"), nil
	case reflect.TypeFor[time.Time]():
		return nil, fmt.Errorf("a time.Time has as many digits as it likes; use a wire type")
	}

	if id, ok := zero.(interface{ Prefix() string }); ok {
		if object, ok := zero.(interface{ Noun() string }); ok {
			return idSchema(id.Prefix(), object.Noun()), nil
		}
	}
	if hasOwnJSON(zero) {
		return nil, fmt.Errorf("a %s writes its own JSON; it needs a method JSONSchema", t)
	}
	_, writes := zero.(encoding.TextMarshaler)
	_, reads := zero.(encoding.TextUnmarshaler)
	if writes || reads {
		return openapi3.NewStringSchema(), nil
	}
	return nil, nil
}

// anyOf returns the values of an enum of strings, as a schema has them.
func anyOf(values []string) []any {
	list := make([]any, len(values))
	for i, value := range values {
		list[i] = value
	}
	return list
}

// hasOwnJSON reports whether a type marshals or unmarshals itself as JSON.
func hasOwnJSON(zero any) bool {
	_, writes := zero.(json.Marshaler)
	_, reads := zero.(json.Unmarshaler)
	return writes || reads
}

// timeSchema returns the schema of a time. It has no pattern: callers must accept any number of digits.
func timeSchema() *openapi3.Schema {
	schema := openapi3.NewDateTimeSchema()
	schema.Example = "2026-01-31T08:00:00.000000Z"
	return schema
}

// idSchema returns the schema of an id. It has no pattern: callers may not parse ids (decisions 1.2).
func idSchema(prefix, noun string) *openapi3.Schema {
	schema := openapi3.NewStringSchema()
	schema.Description = "Opaque " + noun + " ID."
	schema.Example = prefix + idExample
	return schema
}

// namedComponent returns a reference to the component of a struct, and adds the component if it is new. A type that is
// both input and output has two components, as their required members differ: that of the input is named …Input.
func (m *mapper) namedComponent(name string, t reflect.Type, d direction) (*openapi3.SchemaRef, error) {
	key := component{t, d}
	isNew := m.components[key] == ""
	if isNew && d == input && m.schemas[name] != nil { // the output is there: mapOutputs ran first
		name += "Input"
	}
	// The component is added before its members are converted: they may refer to it.
	ref, err := m.component(name, key, &openapi3.Schema{})
	if err != nil || !isNew {
		return ref, err
	}
	object, err := m.object(t, d)
	if err != nil {
		return nil, err
	}
	*ref.Value = *object.Value
	ref.Value.Description = m.source.Objects[name]
	if goName, ok := goNames[name]; ok && !m.source.OpenAPI30 {
		ref.Value.Extensions["x-go-name"], ref.Value.Extensions["x-ogen-name"] = goName, goName
	}
	return ref, nil
}

// component returns a reference to the component with the key. If there is none, it adds schema as one; a name that
// another type has is an error.
func (m *mapper) component(name string, key component, schema *openapi3.Schema) (*openapi3.SchemaRef, error) {
	if existing, ok := m.components[key]; ok {
		return &openapi3.SchemaRef{Ref: schemaPath + existing, Value: m.schemas[existing].Value}, nil
	}
	if m.schemas[name] != nil {
		return nil, fmt.Errorf("two types are named %s, one of them %s", name, key.t)
	}
	m.components[key], m.schemas[name] = name, schema.NewRef()
	return &openapi3.SchemaRef{Ref: schemaPath + name, Value: schema}, nil
}

const schemaPath = "#/components/schemas/"

// object converts a struct to a schema that is no component. If all members are Optionals, one must be given.
func (m *mapper) object(t reflect.Type, d direction) (*openapi3.SchemaRef, error) {
	schema := openapi3.NewObjectSchema()
	// Inputs allow only the declared members, unless the service ignores others. Outputs may get more later.
	if d == input && !m.source.Lenient {
		no := false
		schema.AdditionalProperties = openapi3.AdditionalProperties{Has: &no}
	}
	optionals, order, namesOne := 0, []string{}, false
	members, err := membersOf(t)
	if err != nil {
		return nil, err
	}

	for _, f := range members {
		if !m.source.Release.Includes(f.Tag.Get("since")) {
			continue
		}
		member, err := m.member(f, d)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", f.name, err)
		}
		schema.WithPropertyRef(f.name, member.schema)
		order = append(order, f.name)
		if member.required {
			schema.Required = append(schema.Required, f.name)
		}
		if member.optional {
			optionals++
		}
		if _, ok := f.Tag.Lookup("optional"); ok && !member.required { // another field may take its place
			namesOne = true
		}
	}
	if len(order) > 0 {
		schema.Extensions = map[string]any{declaredOrder: order}
	}
	if optionals > 0 && optionals == len(order) || namesOne {
		schema.MinProps = 1 // a PATCH must have a member (decisions 3.13)
	}
	return schema.NewRef(), nil
}

// property is the schema of one member of an object.
type property struct {
	schema   *openapi3.SchemaRef
	required bool
	optional bool // whether the member's type is a domain.Optional
}

// member converts a field. A member is required in an output that never omits it, and in an input whose rules require
// it; an Optional never is.
func (m *mapper) member(f field, d direction) (property, error) {
	t, rules := f.Type, f.Tag.Get("validate")
	required := isRequired(rules) || m.source.Release.RequiredBefore(f.StructField)
	p := property{required: d == output && !f.omits || d == input && required}
	nullable := false
	if element, null := rule.OptionalElement(t); element != nil {
		t, nullable, p.optional, p.required = element, null, true, false
	} else if t.Kind() == reflect.Pointer {
		// A member that is required in an input, or that an output omits if it is nil, is never null.
		t, nullable = t.Elem(), d == input && !p.required || d == output && !f.omits
	}
	if d == output && m.source.Release.ShowsNull(f.StructField) {
		nullable = true
	}
	if d == input && m.source.Lenient && !p.required { // null is as good as absent
		nullable = true
	}

	schema, err := m.schema(t, d)
	if err != nil {
		return p, err
	}
	if p.schema, err = m.annotate(schema, f.Tag); err != nil {
		return p, err
	}
	if nullable {
		p.schema = m.orNull(p.schema)
	}
	if own := p.schema.Value; p.schema.Ref == "" && own.Default != nil && !m.source.OpenAPI30 {
		// openapi-typescript requires a member whose default is outside of an allOf. The form of 3.0 documents is fixed.
		inner := *own
		inner.Description, inner.Extensions = "", nil
		p.schema = (&openapi3.Schema{
			Description: own.Description, Extensions: own.Extensions, AllOf: openapi3.SchemaRefs{inner.NewRef()},
		}).NewRef()
	}
	return p, nil
}

// orNull returns a schema that allows null too. It changes the given one, unless that is a reference to a component.
func (m *mapper) orNull(ref *openapi3.SchemaRef) *openapi3.SchemaRef {
	null := (&openapi3.Schema{Type: &openapi3.Types{openapi3.TypeNull}}).NewRef()
	switch schema := ref.Value; {
	case ref.Ref != "":
		return (&openapi3.Schema{AnyOf: openapi3.SchemaRefs{ref, null}}).NewRef()
	case len(schema.AllOf) == 1: // a wrapped reference (annotate)
		schema.AllOf, schema.AnyOf = nil, append(schema.AllOf, null)
	case !m.source.OpenAPI30: // 3.1: enums of inputs are components, so schema lists no values to add null to
		*schema.Type = append(*schema.Type, openapi3.TypeNull)
	default:
		schema.Nullable = true
		if len(schema.Enum) > 0 {
			schema.Enum = append(schema.Enum, nil)
		}
	}
	return ref
}

// param converts a path or query parameter, and reports whether its rules require it.
func (m *mapper) param(p op.Param) (schema *openapi3.SchemaRef, required bool, err error) {
	t := p.Type
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if schema, err = m.schema(t, input); err != nil {
		return nil, false, err
	}
	if schema, err = m.annotate(schema, p.Tag); err != nil {
		return nil, false, err
	}
	return schema, isRequired(p.Tag.Get("validate")), nil
}

// body converts an input's body. An unnamed body type is named after the input, such as CreateUser of CreateUserInput.
func (m *mapper) body(in *op.Input) (*openapi3.SchemaRef, error) {
	if in.Body.Name() == "" && in.Body.Kind() == reflect.Struct && in.Type.Name() != "" {
		return m.namedComponent(strings.TrimSuffix(m.componentName(in.Type), "Input"), in.Body, input)
	}
	return m.schema(in.Body, input)
}
