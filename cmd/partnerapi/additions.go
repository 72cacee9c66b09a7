package main

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/getkin/kin-openapi/openapi3"

	"partnerapi/platform/site"
	"partnerapi/v2/op/openapi"
)

// additionsSince maps releases to the fields and parameters that the document says they added, sorted by name.
func additionsSince(document *openapi3.T) map[string][]site.Addition {
	found := additions{}
	for path, item := range document.Paths.Map() {
		for method, operation := range item.Operations() {
			place := site.Operation{Method: method, Path: "/v2" + path, Summary: strings.TrimSuffix(operation.Summary, ".")}
			for _, p := range operation.Parameters {
				if since, ok := p.Value.Schema.Value.Extensions[openapi.Since].(string); ok {
					found.add(since, site.Addition{Name: p.Value.Name, Parameter: true, About: p.Value.Description}, &place)
				}
			}
			found.addFields(operation, &place)
		}
	}
	for _, item := range document.Webhooks {
		found.addFields(item.Post, nil)
	}

	list := map[string][]site.Addition{}
	for key, a := range found {
		slices.SortFunc(a.Operations, func(x, y site.Operation) int {
			return cmp.Or(strings.Compare(x.Path, y.Path), strings.Compare(x.Method, y.Method))
		})
		list[key.since] = append(list[key.since], *a)
	}
	for _, of := range list {
		slices.SortFunc(of, func(x, y site.Addition) int {
			return cmp.Or(strings.Compare(x.Name, y.Name), strings.Compare(x.About, y.About))
		})
	}
	return list
}

// additions are additions by release, name and description, so that a field of several objects is listed once.
type additions map[additionKey]*site.Addition

type additionKey struct {
	since, name, about string
	parameter          bool
}

// add adds an addition to an operation or, if that is nil, to events.
func (f additions) add(since string, a site.Addition, place *site.Operation) {
	key := additionKey{since, a.Name, a.About, a.Parameter}
	if f[key] == nil {
		f[key] = &a
	}
	if place == nil {
		f[key].InEvents = true
	} else if !slices.Contains(f[key].Operations, *place) {
		f[key].Operations = append(f[key].Operations, *place)
	}
}

// addFields adds the fields of an operation's body and responses that a release added, by their paths.
func (f additions) addFields(operation *openapi3.Operation, place *site.Operation) {
	var walk func(ref *openapi3.SchemaRef, path string, above []*openapi3.Schema)
	walk = func(ref *openapi3.SchemaRef, path string, above []*openapi3.Schema) {
		if ref == nil || ref.Value == nil || slices.Contains(above, ref.Value) {
			return
		}
		schema := ref.Value
		above = append(above, schema)
		for _, name := range slices.Sorted(maps.Keys(schema.Properties)) {
			member, at := schema.Properties[name], strings.TrimPrefix(path+"."+name, ".")
			if since, ok := member.Value.Extensions[openapi.Since].(string); ok {
				f.add(since, site.Addition{Name: at, About: member.Value.Description}, place)
			}
			if name == "data" { // of a page, or of an event
				at = ""
			}
			walk(member, at, above)
		}
		walk(schema.Items, path, above)
		walk(schema.AdditionalProperties.Schema, path, above)
		for _, part := range slices.Concat(schema.AllOf, schema.OneOf, schema.AnyOf) {
			walk(part, path, above)
		}
	}
	read := func(content openapi3.Content) {
		if media := content.Get("application/json"); media != nil {
			walk(media.Schema, "", nil)
		}
	}
	if operation.RequestBody != nil {
		read(operation.RequestBody.Value.Content)
	}
	for status, response := range operation.Responses.Map() {
		if strings.HasPrefix(status, "2") {
			read(response.Value.Content)
		}
	}
}
