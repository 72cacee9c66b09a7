package openapi

import (
	"fmt"
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

// union is a type with several forms, which are posted to webhooks.
type union struct {
	member string // whose value identifies the form
	forms  []op.Form
	// schemas has references to the components of the forms, by the form's value of the member.
	schemas map[string]*openapi3.SchemaRef
}

// union returns a reference to the component of a type with several forms, which is an object with the members of the
// type itself: callers must accept forms that they do not know. The first call for a type adds it to m.unions, and adds
// its component and one for each form, in which the member has the form's value only.
func (m *mapper) union(name string, t reflect.Type, zero op.OneOf) (*openapi3.SchemaRef, error) {
	ref, err := m.namedComponent(name, t, output)
	if err != nil || m.unions[ref.Value] != nil {
		return ref, err
	}
	member, forms := zero.Forms()
	forms = slices.DeleteFunc(slices.Clone(forms), func(f op.Form) bool {
		return m.source.Release != 0 && f.Since > m.source.Release
	})
	u := &union{member, forms, map[string]*openapi3.SchemaRef{}}
	for _, f := range forms {
		schema, err := m.object(f.Type, output)
		if err != nil {
			return nil, err
		}
		value := openapi3.NewStringSchema().WithEnum(f.Value)
		if property := schema.Value.Properties[member]; property != nil {
			value.Description, _, _ = strings.Cut(property.Value.Description, " "+knownValues)
		}
		schema.Value.Description = f.About
		schema.Value.Properties[member] = value.NewRef()
		formComponent := formName(f, name)
		if m.schemas[formComponent] != nil {
			return nil, fmt.Errorf("two types are named %s", formComponent)
		}
		m.schemas[formComponent] = schema
		u.schemas[f.Value] = &openapi3.SchemaRef{Ref: schemaPath + formComponent, Value: schema.Value}
	}
	m.unions[ref.Value] = u
	m.posted = append(m.posted, u)
	return ref, nil
}

// webhookHeaders are the headers of a request to a webhook.
var webhookHeaders = []struct {
	name, about string
	since       op.Release // zero: every release
}{
	{name: "webhook-id", about: "ID of the event, identical in every attempt."},
	{name: "webhook-timestamp", about: "When the request was signed, in Unix seconds. Reject requests whose timestamp is more than five minutes off."},
	{name: "webhook-signature", about: "`v1,` followed by the signature in base64, as in Standard Webhooks. For 24 hours after the secret is " +
		"rotated, the header contains two signatures, separated by a space."},
	{name: domain.SignatureHeader, about: "`t=` with the time in Unix seconds, and `v1=` with the hexadecimal HMAC-SHA256 of that time, " +
		"a dot and the body. For 24 hours after the secret is rotated, the header contains two `v1` values."},
	{name: domain.BodySignatureHeader, since: op.BodySignatureSince, about: "`sha256=` followed by the hexadecimal HMAC-SHA256 of the body alone, keyed with the " +
		"newest secret. This signature does not cover the time, so use it only if your receiver cannot verify the other signatures."},
}

// addWebhooks adds a webhook for each form of the unions: the request that posts it.
func (b *builder) addWebhooks() (err error) {
	for _, u := range b.mapper.posted {
		if b.doc.Webhooks == nil {
			b.doc.Webhooks = map[string]*openapi3.PathItem{}
		}
		for _, f := range u.forms {
			item := &openapi3.PathItem{}
			if item.Post, err = b.webhook(f, u.schemas[f.Value]); err != nil {
				return fmt.Errorf("webhook %s: %w", f.Value, err)
			}
			b.doc.Webhooks[f.Value] = item
		}
	}
	return nil
}

// webhook returns the operation that posts a form. Its example is that of the operation's id.
func (b *builder) webhook(f op.Form, schema *openapi3.SchemaRef) (*openapi3.Operation, error) {
	id := "webhook." + f.Value
	example, err := b.readExample(id)
	if err != nil {
		return nil, err
	}
	content, err := b.jsonContent(schema, example.Body)
	if err != nil {
		return nil, err
	}
	out := &openapi3.Operation{
		OperationID: id, Summary: f.Value, Tags: []string{"webhooks"},
		Description: f.About,
		RequestBody: &openapi3.RequestBodyRef{Value: &openapi3.RequestBody{Required: true, Content: content}},
		Responses:   openapi3.NewResponsesWithCapacity(3), Security: openapi3.NewSecurityRequirements(),
	}
	for _, header := range webhookHeaders { // not components: oapi-codegen removes those that only webhooks refer to
		if b.source.Release != 0 && b.source.Release < header.since {
			continue
		}
		out.Parameters = append(out.Parameters, &openapi3.ParameterRef{Value: &openapi3.Parameter{
			Name: header.name, In: openapi3.ParameterInHeader, Required: true, Description: header.about,
			Schema: openapi3.NewStringSchema().NewRef(),
		}})
	}
	for status, about := range map[string]string{
		"2XX":     "The event was received. Respond within 10 seconds.",
		"410":     "The endpoint no longer exists. The service disables the webhook.",
		"default": "A failure, including a redirect. The service retries the event for up to 24 hours; it does not retry a ping.",
	} {
		out.Responses.Set(status, &openapi3.ResponseRef{Value: &openapi3.Response{Description: &about}})
	}
	return out, nil
}
