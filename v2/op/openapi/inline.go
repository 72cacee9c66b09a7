package openapi

import (
	"strings"

	"github.com/getkin/kin-openapi/openapi3"
)

// inlineWebhooks writes the components that only webhooks refer to in place of the references, and removes the
// components. oapi-codegen generates types for the bodies of webhooks, but not for components that no path refers to.
func (b *builder) inlineWebhooks() {
	ofPaths := map[string]bool{}
	mark := func(ref *openapi3.SchemaRef) bool {
		isNew := ref.Ref == "" || !ofPaths[ref.Ref]
		ofPaths[ref.Ref] = true
		return isNew
	}
	for _, item := range b.doc.Paths.Map() {
		eachSchemaOf(item, mark)
	}
	for _, item := range b.doc.Webhooks {
		eachSchemaOf(item, func(ref *openapi3.SchemaRef) bool {
			if ref.Ref != "" && !ofPaths[ref.Ref] {
				delete(b.mapper.schemas, strings.TrimPrefix(ref.Ref, schemaPath))
				ref.Ref = ""
			}
			return ref.Ref == "" // what a component of paths refers to is one too
		})
	}
}

// eachSchemaOf calls visit for the schemas of a path's parameters and bodies, and within those for which it returns true.
func eachSchemaOf(item *openapi3.PathItem, visit func(*openapi3.SchemaRef) bool) {
	for _, operation := range item.Operations() {
		for _, p := range operation.Parameters {
			eachSchema(p.Value.Schema, visit)
		}
		if operation.RequestBody != nil {
			eachContent(operation.RequestBody.Value.Content, visit)
		}
		for _, response := range operation.Responses.Map() {
			eachContent(response.Value.Content, visit)
			for _, header := range response.Value.Headers {
				eachSchema(header.Value.Schema, visit)
			}
		}
	}
}

func eachContent(content openapi3.Content, visit func(*openapi3.SchemaRef) bool) {
	for _, media := range content {
		eachSchema(media.Schema, visit)
	}
}

func eachSchema(ref *openapi3.SchemaRef, visit func(*openapi3.SchemaRef) bool) {
	if ref == nil || !visit(ref) {
		return
	}
	s := ref.Value
	for _, property := range s.Properties {
		eachSchema(property, visit)
	}
	for _, list := range []openapi3.SchemaRefs{s.AllOf, s.AnyOf, s.OneOf} {
		for _, part := range list {
			eachSchema(part, visit)
		}
	}
	eachSchema(s.Items, visit)
	eachSchema(s.AdditionalProperties.Schema, visit)
}
