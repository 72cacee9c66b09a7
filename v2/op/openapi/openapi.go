// Package openapi builds the OpenAPI documents of the service from the Go types of its operations and their tags, so
// that a document cannot differ from the code. ForRelease describes v2; Build describes any list of operations, such as
// v1's routes.
//
// The mapper reads the tags json, validate, doc, default, since and format. An unknown rule, or a type with its own
// JSON form, is an error: nothing is omitted silently.
package openapi

import (
	"fmt"
	"io/fs"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/go-json-experiment/json/jsontext"

	"partnerapi/domain"
	"partnerapi/v2/op"
)

// Document describes a version of the interface.
type Document struct {
	Title, Version, Description string
	// Release is the release whose fields and parameters the document has; zero for all of them.
	Release op.Release
	// Prefix is the path prefix of all operations: /v2.
	Prefix string
	// Error is the type of the body of every error.
	Error reflect.Type
	// Lenient says that bodies may have unknown fields, and null for optional ones (decisions 2.5).
	Lenient bool
	// OpenAPI30 selects OpenAPI 3.0 with enums inline, for v1; other documents are of 3.1, with enums as components.
	OpenAPI30 bool
	// Tags describe the resources, in the order of the document.
	Tags []op.Tag
	// Objects describe schemas, by their names.
	Objects map[string]string
	// Failure returns an example of the body of an error; nil for no examples.
	Failure func(Failure) any
	// Failures replace, by status, the descriptions of the package's failures. Added are further failures, with
	// statuses that v2 does not have.
	Failures map[int]string
	Added    []Failure
	// Examples holds the examples of operations, in files ID.json (see Example); nil for none.
	Examples   fs.FS
	Operations []Operation
}

// Operation is one operation of a document.
type Operation struct {
	// Meta's Since may be zero, where releases mean nothing. Its Fails are not read.
	op.Meta
	// Deprecated says that callers are to stop using the operation.
	Deprecated bool
	// Idempotent says that the operation takes an Idempotency-Key.
	Idempotent bool
	// HasLocation says that success has the header Location, the path of the created object.
	HasLocation bool
	// Headers describes, by name, the headers that success may have in addition to those of every response.
	Headers map[string]string
	Input   *op.Input
	// Output is the body of success; nil or op.NoContent if there is none.
	Output reflect.Type
	// Errors are the error statuses of the operation.
	Errors []int
}

// ForRelease builds the document of a release of v2: the operations of the interface that the release serves.
func ForRelease(declared op.Interface, release op.Release) (*openapi3.T, error) {
	doc := Document{
		Title: "Partner API v2", Version: release.String(), Release: release, Prefix: "/v2", Error: reflect.TypeFor[op.ErrorEnvelope](),
		Description: about(release), Tags: declared.Tags, Objects: declared.Objects, Examples: declared.Examples,
		Failure: func(f Failure) any {
			return op.EnvelopeOf(&domain.Error{Code: f.Code, Message: f.Message, Fields: f.Fields}, ExampleRequestID, ExampleAddress)
		},
	}
	for _, o := range declared.Operations {
		if o.Meta().Since <= release {
			doc.Operations = append(doc.Operations, operationOf(o))
		}
	}
	if slices.ContainsFunc(doc.Operations, func(o Operation) bool { return o.Idempotent }) {
		doc.Description += aboutRetries
	}
	if slices.ContainsFunc(doc.Operations, func(o Operation) bool { return o.Starred }) {
		doc.Description += aboutAdditions
	}
	return Build(doc)
}

// operationOf returns the document's entry of a declaration.
func operationOf(o op.Declaration) Operation {
	m := o.Meta()
	out := Operation{
		Meta: *m, Idempotent: m.Method == http.MethodPost, HasLocation: m.Status == http.StatusCreated,
		Input: o.Input(), Output: o.Output(),
	}
	for _, code := range op.Codes(o) {
		out.Errors = append(out.Errors, op.StatusOf(code))
	}
	return out
}

// Build builds the document. It fails for mistakes in the types and tags of the operations. It does not validate the
// document, which would take longer than building it, at each start of the service. Tests validate the documents of all
// releases, and their examples (openapitest.CheckDescribed).
func Build(d Document) (*openapi3.T, error) {
	withKey := openapi3.NewSecurityRequirement().Authenticate(keyScheme)
	b := builder{
		doc: &openapi3.T{
			OpenAPI: "3.1.0",
			Info: &openapi3.Info{
				Title: d.Title, Version: d.Version, Description: d.Description,
				Contact: &openapi3.Contact{Name: "The operator of this service"},
				License: &openapi3.License{Name: "Apache-2.0", URL: "https://www.apache.org/licenses/LICENSE-2.0"},
			},
			Servers:    openapi3.Servers{{URL: d.Prefix, Description: "The service that published this document."}},
			Security:   *openapi3.NewSecurityRequirements().With(withKey),
			Paths:      openapi3.NewPaths(),
			Components: newComponents(),
		},
		source: d,
		mapper: newMapper(&d),
	}
	if d.OpenAPI30 {
		b.doc.OpenAPI = "3.0.3"
	}
	b.doc.Components.Schemas = b.mapper.schemas
	if err := b.mapOutputs(d); err != nil { // first: outputs get the types' own names
		return nil, err
	}

	for _, o := range d.Operations {
		if err := b.addOperation(o); err != nil {
			return nil, fmt.Errorf("operation %s: %w", o.ID, err)
		}
	}
	if err := b.addWebhooks(); err != nil {
		return nil, err
	}
	b.inlineWebhooks()
	b.addTags()
	return b.doc, nil
}

// SetSupport sets the contact of a document to a URL or, after mailto:, an email address. An empty address sets none.
func SetSupport(doc *openapi3.T, address string) {
	if mail, ok := strings.CutPrefix(address, "mailto:"); ok {
		doc.Info.Contact.Email = mail
	} else {
		doc.Info.Contact.URL = address
	}
}

// builder builds one document.
type builder struct {
	doc    *openapi3.T
	source Document // what the document is built from
	mapper *mapper
	// failure is the schema of the body of errors.
	failure *openapi3.SchemaRef
}

// mapOutputs maps the error body and all outputs before any input: if a type is both, the component of the output has
// the type's name, and that of the input another.
func (b *builder) mapOutputs(d Document) (err error) {
	if b.failure, err = b.mapper.schema(d.Error, output); err != nil {
		return fmt.Errorf("the error body: %w", err)
	}
	for _, o := range d.Operations {
		if hasContent(o) {
			if _, err := b.mapper.schema(o.Output, output); err != nil {
				return fmt.Errorf("operation %s: %w", o.ID, err)
			}
		}
	}
	return nil
}

// hasContent reports whether an operation answers with a body.
func hasContent(o Operation) bool {
	return o.Output != nil && o.Output != reflect.TypeFor[op.NoContent]()
}

// addOperation adds an operation to the paths.
func (b *builder) addOperation(o Operation) (err error) {
	example, err := b.readExample(o.ID)
	if err != nil {
		return err
	}

	out := &openapi3.Operation{
		OperationID: o.ID, Summary: o.Summary, Description: descriptionOf(o), Extensions: extensions(o),
		Deprecated: o.Deprecated, Tags: []string{o.Resource()},
	}

	if out.Parameters, err = b.parameters(o, &example); err != nil {
		return err
	}
	if out.RequestBody, err = b.requestBody(o.Input, example.Body); err != nil {
		return err
	}

	if out.Responses, err = b.responses(o, example.Response); err != nil {
		return err
	}
	path := op.Braced(o.Path)
	item := b.doc.Paths.Value(path)
	if item == nil {
		item = &openapi3.PathItem{}
		b.doc.Paths.Set(path, item)
	}
	if item.GetOperation(o.Method) != nil {
		return fmt.Errorf("%s %s is taken", o.Method, o.Path)
	}
	item.SetOperation(o.Method, out)
	return nil
}

// descriptionOf returns the operation's description, followed by sentences on AllClients and PerClient.
func descriptionOf(o Operation) string {
	parts := []string{}
	if o.Description != "" {
		parts = append(parts, o.Description)
	}
	if o.AllClients {
		parts = append(parts, "Requires an API key with access to all clients.")
	}
	if o.PerClient > 0 {
		parts = append(parts, fmt.Sprintf("Each API key can send %d of these requests per minute for each client.", o.PerClient))
	}
	return strings.Join(parts, "\n\n")
}

// addTags lists the tags that operations have: first those of Document.Tags, then the others, each in their order.
func (b *builder) addTags() {
	used := map[string]bool{}
	for _, o := range b.source.Operations {
		used[o.Resource()] = true
	}
	for _, tag := range b.source.Tags {
		if used[tag.Name] {
			b.doc.Tags = append(b.doc.Tags, &openapi3.Tag{
				Name: tag.Name, Description: tag.Description, Extensions: map[string]any{"x-displayName": tag.Title},
			})
		}
	}
	for _, o := range b.source.Operations {
		if name := o.Resource(); b.doc.Tags.Get(name) == nil {
			b.doc.Tags = append(b.doc.Tags, &openapi3.Tag{Name: name})
		}
	}
}

// extensions returns the x- members of an operation for properties that OpenAPI cannot express: scope, release, limit
// per client, and badges for the scope, the release and a Starred operation.
func extensions(o Operation) map[string]any {
	out := map[string]any{}
	var badges []map[string]string
	badge := func(name string) { badges = append(badges, map[string]string{"name": name}) }
	if o.Scope != "" {
		out["x-scope"] = string(o.Scope)
		badge("Scope " + string(o.Scope))
	}
	if o.Since != 0 {
		out[Since] = o.Since.String()
		badge("Since " + o.Since.String())
	}
	if o.PerClient > 0 {
		out["x-per-client-per-minute"] = o.PerClient
	}
	if o.Starred {
		badge("Addition")
	}
	if len(badges) > 0 {
		out["x-badges"] = badges
	}
	return out
}

// parameters returns the parameters of an operation: path, query, Idempotency-Key. The description of a schema moves to
// its parameter.
func (b *builder) parameters(o Operation, example *Example) (openapi3.Parameters, error) {
	var list openapi3.Parameters
	add := func(in string, params []op.Param) error {
		for _, p := range params {
			if !b.source.Release.Includes(p.Tag.Get("since")) {
				continue
			}
			schema, required, err := b.mapper.param(p)
			if err != nil {
				return fmt.Errorf("parameter %s: %w", p.Name, err)
			}
			about := schema.Value.Description
			if p.Name == "updated_since" {
				about += aboutUpdatedSince(b.source.Release)
			}
			if schema.Ref == "" { // a component that others refer to keeps its own
				schema.Value.Description = ""
			}
			wrapper := schema.Value
			if len(wrapper.AllOf) == 1 && wrapper.Default == nil && wrapper.Extensions == nil {
				schema = wrapper.AllOf[0] // it was wrapped only to be described
			}
			if schema.Ref == "" {
				schema.Value.Example = nil // the type's example, such as an id, would find nothing
			}
			list = append(list, &openapi3.ParameterRef{Value: &openapi3.Parameter{
				Name: p.Name, In: in, Required: required || in == openapi3.ParameterInPath,
				Description: about, Schema: schema, Example: example.parameter(in, p.Name, schema.Value),
			}})
		}
		return nil
	}
	if o.Input != nil {
		if err := add(openapi3.ParameterInPath, o.Input.Path); err != nil {
			return nil, err
		}
		if err := add(openapi3.ParameterInQuery, o.Input.Query); err != nil {
			return nil, err
		}
	}
	if o.Idempotent {
		shared, ok := b.doc.Components.Parameters[idempotencyKey]
		if !ok { // added with the first such operation
			shared = idempotencyParameter()
			b.doc.Components.Parameters[idempotencyKey] = shared
		}
		ref := "#/components/parameters/" + idempotencyKey
		list = append(list, &openapi3.ParameterRef{Ref: ref, Value: shared.Value})
	}
	return list, nil
}

// requestBody returns the request body of an input; nil if it has none.
func (b *builder) requestBody(in *op.Input, example jsontext.Value) (*openapi3.RequestBodyRef, error) {
	if in == nil || in.Body == nil {
		return nil, nil
	}
	schema, err := b.mapper.body(in)
	if err != nil {
		return nil, fmt.Errorf("body: %w", err)
	}
	content, err := b.jsonContent(schema, example)
	return &openapi3.RequestBodyRef{Value: &openapi3.RequestBody{Required: !in.OptionalBody, Content: content}}, err
}

// jsonContent returns JSON content of a schema, with what the schema has of the example unless that is empty.
func (b *builder) jsonContent(schema *openapi3.SchemaRef, example jsontext.Value) (openapi3.Content, error) {
	media := &openapi3.MediaType{Schema: schema}
	if len(example) > 0 {
		shown, err := b.within(example, schema)
		if err != nil {
			return nil, err
		}
		media.Example = shown
	}
	return openapi3.Content{"application/json": media}, nil
}

// responses returns the responses of an operation: its success and its errors.
func (b *builder) responses(o Operation, example jsontext.Value) (*openapi3.Responses, error) {
	out := openapi3.NewResponsesWithCapacity(len(o.Errors) + 1)
	text := http.StatusText(o.Status)
	success := &openapi3.Response{Description: &text, Headers: b.successHeaders(o)}
	if hasContent(o) {
		schema, err := b.mapper.schema(o.Output, output)
		if err != nil {
			return nil, err
		}
		if success.Content, err = b.jsonContent(schema, example); err != nil {
			return nil, err
		}
	}

	out.Set(strconv.Itoa(o.Status), &openapi3.ResponseRef{Value: success})
	statuses := slices.Clone(o.Errors)
	slices.Sort(statuses)
	for _, status := range slices.Compact(statuses) {
		if http.StatusText(status) == "" || status < 400 {
			return nil, fmt.Errorf("%d is not an error status", status)
		}
		response, err := b.errorResponse(status)
		if err != nil {
			return nil, err
		}
		out.Set(strconv.Itoa(status), response)
	}
	return out, nil
}
