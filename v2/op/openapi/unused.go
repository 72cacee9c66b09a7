package openapi

import (
	"github.com/getkin/kin-openapi/openapi3"
)

// dropUnused removes the schemas that no operation leads to: an object that is only
// shown where it may be null has a component for that alone.
func (b *builder) dropUnused() {
	used := map[string]bool{}
	for _, item := range b.doc.Paths.Map() {
		for _, o := range item.Operations() {
			for _, p := range o.Parameters {
				b.mark(p.Value.Schema, used)
			}
			if o.RequestBody != nil {
				b.markContent(o.RequestBody.Value.Content, used)
			}
			for _, r := range o.Responses.Map() {
				b.markContent(r.Value.Content, used)
			}
		}
	}
	for name := range b.doc.Components.Schemas {
		if !used[schemaPath+name] {
			delete(b.doc.Components.Schemas, name)
		}
	}
}

func (b *builder) markContent(content openapi3.Content, used map[string]bool) {
	for _, media := range content {
		b.mark(media.Schema, used)
	}
}

// mark notes the references that a schema leads to.
func (b *builder) mark(schema *openapi3.SchemaRef, used map[string]bool) {
	if schema == nil || schema.Value == nil || used[schema.Ref] {
		return
	}
	if schema.Ref != "" {
		used[schema.Ref] = true
	}
	b.mark(schema.Value.Items, used)
	b.mark(schema.Value.AdditionalProperties.Schema, used)
	for _, property := range schema.Value.Properties {
		b.mark(property, used)
	}
	for _, list := range []openapi3.SchemaRefs{schema.Value.AllOf, schema.Value.AnyOf, schema.Value.OneOf} {
		for _, part := range list {
			b.mark(part, used)
		}
	}
}
