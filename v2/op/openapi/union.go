package openapi

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/getkin/kin-openapi/openapi3"

	"partnerapi/domain"
	"partnerapi/v2/op"
)

// formName returns the component name of a form of a union: UserCreatedEvent for user.created of Event.
func formName(f op.Form, union string) string {
	var out strings.Builder
	for _, word := range strings.FieldsFunc(f.Value, func(r rune) bool { return r == '.' || r == '_' }) {
		out.WriteString(upperFirst(word))
	}
	return out.String() + union
}

// union returns a reference to the component of a union, a type with several forms. The first call for a type adds it
// to m.unions, and adds its component and one for each form, in which the discriminator has the form's value only.
func (m *mapper) union(name string, t reflect.Type, zero op.OneOf) (*openapi3.SchemaRef, error) {
	key := component{t, output}
	if _, known := m.components[key]; known {
		return m.component(name, key, nil /* added before */)
	}
	member, forms := zero.Forms()
	discriminator := &openapi3.Discriminator{PropertyName: member, Mapping: map[string]openapi3.MappingRef{}}
	union := &openapi3.Schema{Discriminator: discriminator, Description: m.source.Objects[name]}
	for _, f := range forms {
		schema, err := m.object(f.Type, output)
		if err != nil {
			return nil, err
		}
		value := openapi3.NewStringSchema().WithEnum(f.Value)
		if property := schema.Value.Properties[member]; property != nil {
			value.Description = property.Value.Description
		}
		schema.Value.Description = f.About
		schema.Value.Properties[member] = value.NewRef()
		formComponent := formName(f, name)
		if m.schemas[formComponent] != nil {
			return nil, fmt.Errorf("two types are named %s", formComponent)
		}
		m.schemas[formComponent] = schema
		union.OneOf = append(union.OneOf, &openapi3.SchemaRef{Ref: schemaPath + formComponent, Value: schema.Value})
		discriminator.Mapping[f.Value] = openapi3.MappingRef{Ref: schemaPath + formComponent}
	}
	m.unions = append(m.unions, zero)
	return m.component(name, key, union)
}

// webhookHeaders are the headers of a request to a webhook.
var webhookHeaders = []struct{ name, about string }{
	{"webhook-id", "The id of the event, the same in every try."},
	{"webhook-timestamp", "When the request was signed, in Unix seconds. Refuse one that is more than five minutes off."},
	{"webhook-signature", "`v1,` and the signature in base64, as Standard Webhooks has it; two of them, with a space " +
		"between, while a secret is being replaced."},
	{domain.SignatureHeader, "`t=`, the time in Unix seconds, and `v1=`, the HMAC-SHA256 in hexadecimal of that time, " +
		"a dot and the body; two `v1` while a secret is being replaced."},
}

// addWebhooks adds a webhook for each form of the unions: the request that posts it.
func (b *builder) addWebhooks() {
	for _, union := range b.mapper.unions {
		if b.doc.Webhooks == nil {
			b.doc.Webhooks = map[string]*openapi3.PathItem{}
		}
		_, forms := union.Forms()
		schemas := b.mapper.schemas[b.mapper.componentName(reflect.TypeOf(union).Elem())].Value.OneOf
		for i, f := range forms { // in the order of schemas
			b.doc.Webhooks[f.Value] = &openapi3.PathItem{Post: b.webhook(f, schemas[i])}
		}
	}
}

// webhook returns the operation that posts a form.
func (b *builder) webhook(f op.Form, schema *openapi3.SchemaRef) *openapi3.Operation {
	out := &openapi3.Operation{
		OperationID: "webhook." + f.Value, Summary: f.Value, Tags: []string{"webhooks"},
		Description: f.About,
		RequestBody: &openapi3.RequestBodyRef{Value: &openapi3.RequestBody{
			Required: true, Content: openapi3.NewContentWithJSONSchemaRef(schema),
		}},
		Responses: openapi3.NewResponsesWithCapacity(3), Security: openapi3.NewSecurityRequirements(),
	}
	for _, header := range webhookHeaders { // not components: oapi-codegen removes those that only webhooks refer to
		out.Parameters = append(out.Parameters, &openapi3.ParameterRef{Value: &openapi3.Parameter{
			Name: header.name, In: openapi3.ParameterInHeader, Required: true, Description: header.about,
			Schema: openapi3.NewStringSchema().NewRef(),
		}})
	}
	for status, about := range map[string]string{
		"2XX":     "The event was taken. Answer within 10 seconds.",
		"410":     "Nobody listens here any more: the webhook is disabled.",
		"default": "A failure, a redirect too. The event is sent again, for up to 24 hours; a ping is not.",
	} {
		out.Responses.Set(status, &openapi3.ResponseRef{Value: &openapi3.Response{Description: &about}})
	}
	return out
}

// commonSchema returns one schema for all forms of a union, which have members of the same names: the discriminator has
// the values of all forms, and a member whose type differs between forms may have any value.
func commonSchema(union *openapi3.Schema) *openapi3.SchemaRef {
	common := *union.OneOf[0].Value
	common.Description, common.Properties = union.Description, maps.Clone(common.Properties)
	for _, form := range union.OneOf[1:] {
		for name, property := range common.Properties {
			other := form.Value.Properties[name].Value
			merged := &openapi3.Schema{Description: property.Value.Description} // without a type: any value
			switch {
			case name == union.Discriminator.PropertyName:
				merged.Type, merged.Enum = other.Type, slices.Concat(property.Value.Enum, other.Enum)
			case reflect.DeepEqual(property.Value.Type, other.Type) && reflect.DeepEqual(property.Value.AllOf, other.AllOf):
				continue
			}
			common.Properties[name] = merged.NewRef()
		}
	}
	return common.NewRef()
}
