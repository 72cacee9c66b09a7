package openapitest

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"

	"partnerapi/v2/op/openapi"
)

// CheckDescribed fails the test for each operation, parameter, field and resource of the document that has no
// description, for each operation without an example of its request or its response, for shared responses without an
// example, and for examples that do not match their schemas.
func CheckDescribed(t testing.TB, document *openapi3.T) {
	t.Helper()
	text, err := openapi.JSON(document)
	if err != nil {
		t.Fatal(err)
	}

	doc, err := openapi3.NewLoader().LoadFromData(text)
	if err != nil {
		t.Fatal(err)
	}
	if err := doc.Validate(t.Context()); err != nil {
		t.Errorf("the document and its examples: %v", err)
	}
	for _, tag := range doc.Tags {
		if tag.Description == "" {
			t.Errorf("the tag %s has no description", tag.Name)
		}
	}

	for path, item := range doc.Paths.Map() {
		for method, o := range item.Operations() {
			for _, missing := range undescribed(o) {
				t.Errorf("%s (%s %s): %s", o.OperationID, method, path, missing)
			}
		}
	}

	for name, component := range doc.Components.Schemas {
		for _, missing := range undescribedFields(name, component.Value) {
			t.Errorf("%s has no description", missing)
		}
	}
	for name, response := range doc.Components.Responses {
		if media := response.Value.Content.Get("application/json"); media == nil || media.Example == nil {
			t.Errorf("the response %s has no example", name)
		}
	}
}

// undescribed returns the faults of an operation: missing descriptions and examples.
func undescribed(o *openapi3.Operation) (missing []string) {
	if o.Summary == "" || o.Description == "" {
		missing = append(missing, "no summary or no description")
	}
	for _, p := range o.Parameters {
		if p.Value.Description == "" {
			missing = append(missing, fmt.Sprintf("the parameter %s has no description", p.Value.Name))
		}
		if p.Value.In == openapi3.ParameterInPath && p.Value.Example == nil {
			missing = append(missing, fmt.Sprintf("the parameter %s has no example", p.Value.Name))
		}
	}
	if o.RequestBody != nil && o.RequestBody.Value.Content.Get("application/json").Example == nil {
		missing = append(missing, "the body has no example")
	}
	for status, response := range o.Responses.Map() {
		media := response.Value.Content.Get("application/json")
		if status < "300" && media != nil && media.Example == nil {
			missing = append(missing, "the response has no example")
		}
	}
	return missing
}

// undescribedFields returns the paths of the members of an object, at any depth, that have no description. path is that
// of the object.
func undescribedFields(path string, schema *openapi3.Schema) (missing []string) {
	for _, name := range slices.Sorted(maps.Keys(schema.Properties)) {
		property := schema.Properties[name]
		// A reference without its own description is not wrapped in an allOf.
		if property.Ref != "" || property.Value.Description == "" {
			missing = append(missing, path+"."+name)
		}
		if property.Ref == "" {
			missing = append(missing, undescribedFields(path+"."+name, property.Value)...)
		}
	}
	if items := schema.Items; items != nil && items.Ref == "" {
		missing = append(missing, undescribedFields(path+"[]", items.Value)...)
	}
	return missing
}
