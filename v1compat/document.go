package v1compat

import (
	"iter"
	"net/http"
	"reflect"
	"slices"

	"github.com/getkin/kin-openapi/openapi3"

	"partnerapi/v2/op"
	"partnerapi/v2/op/openapi"
)

// Document is v1's OpenAPI document, made from the table of routes.
func (f *Facade) Document() (*openapi3.T, error) {
	d := openapi.Document{
		Title: "Partner API v1", Version: "1", Prefix: "/v1", Error: reflect.TypeFor[Error](), Lenient: true,
		Description: "The older version of the interface. It is being retired: build new integrations on v2.",
	}
	for _, r := range f.routes {
		o := openapi.Operation{
			ID: r.ID, Method: r.Method, Path: r.Path, Summary: r.Summary, Tag: "v1", Scope: r.operation.Meta().Scope, AllClients: r.operation.Meta().AllClients,
			Input: r.input, Status: r.Status, Output: r.output, Errors: r.failures(),
		}
		d.Operations = append(d.Operations, o)
	}
	return openapi.Build(d)
}

// Routes yields each route, Fails being all of its statuses of failure in
// ascending order, and the declaration of the v2 operation that it stands on.
func (f *Facade) Routes() iter.Seq2[Meta, *op.Meta] {
	return func(yield func(Meta, *op.Meta) bool) {
		for _, r := range f.routes {
			meta := r.Meta
			meta.Fails = r.failures()
			if !yield(meta, r.operation.Meta()) {
				return
			}
		}
	}
}

// failures are all of the route's statuses of failure, in ascending order.
func (r *route) failures() []int {
	list := slices.Concat(r.Fails, shared)
	if r.input.Body != nil {
		list = append(list, http.StatusRequestTimeout)
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// YAML is the document as it is served.
func (f *Facade) YAML() ([]byte, error) {
	document, err := f.Document()
	if err != nil {
		return nil, err
	}
	return openapi.YAML(document)
}
