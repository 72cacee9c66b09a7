// Package openapitest validates a server's responses in tests against the OpenAPI document that it serves.
package openapitest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"
	"github.com/getkin/kin-openapi/routers/gorillamux"

	"partnerapi/v2/op/openapi"
)

// Validator validates responses against one document. It is safe for concurrent use.
type Validator struct {
	// name is the document's name in messages.
	name   string
	doc    *openapi3.T
	prefix string
	router routers.Router
	// unknown is the route of requests that the document does not have.
	unknown *routers.Route
}

// unknownStatuses are the statuses of a request that matches no operation: an invalid key, not found, a used-up budget,
// or a failure of the service.
var unknownStatuses = []int{
	http.StatusUnauthorized, http.StatusNotFound, http.StatusTooManyRequests,
	http.StatusInternalServerError, http.StatusServiceUnavailable,
}

// New returns a validator of the document, which it encodes and decodes first, to validate the JSON that callers get.
func New(t testing.TB, doc *openapi3.T) *Validator {
	t.Helper()
	text, err := openapi.JSON(doc)
	if err != nil {
		t.Fatal(err)
	}
	doc, err = openapi3.NewLoader().LoadFromData(text)
	if err != nil {
		t.Fatalf("load the document: %v", err)
	}
	if err := doc.Validate(t.Context(), openapi3.DisableExamplesValidation()); err != nil {
		t.Fatalf("the document: %v", err)
	}
	closeSchemas(doc)
	// The validator for 3.0 supports everything that the documents use of 3.1. That for 3.1 compiles a schema for each
	// response.
	doc.OpenAPI = "3.0.3"
	router, err := gorillamux.NewRouter(doc)
	if err != nil {
		t.Fatal(err)
	}
	return &Validator{
		name: doc.Info.Title + " " + doc.Info.Version, doc: doc, prefix: doc.Servers[0].URL, router: router,
		unknown: unknownRoute(t, doc),
	}
}

// validators are functions that return the validators of Shared, by key.
var validators sync.Map

// maxName is the maximum length of a key of Shared that is the document's name, and not its text.
const maxName = 100

// Shared returns the validator of the document that make returns. It is created once for all tests of the process with the
// same key, as reading a document takes longer than most tests. A short key, such as a file's path, is the document's
// name in messages.
func Shared(t testing.TB, key string, make func() (*openapi3.T, error)) *Validator {
	t.Helper()
	shared, _ := validators.LoadOrStore(key, sync.OnceValue(func() *Validator {
		doc, err := make()
		if err != nil {
			t.Errorf("make the document: %v", err)
			return nil
		}
		v := New(t, doc)
		if len(key) <= maxName {
			v.name = key
		}
		return v
	}))
	v := shared.(func() *Validator)()
	if v == nil {
		t.Fatalf("another test could not read the document %.40q", key)
	}
	return v
}

// closeSchemas makes the schema of every object reject members that it does not declare. Callers must accept them, but
// a test must report them.
func closeSchemas(doc *openapi3.T) {
	seen := map[*openapi3.Schema]bool{}
	for _, component := range doc.Components.Schemas {
		closeSchema(component, seen)
	}
}

// closeSchema is closeSchemas for one schema and those within it. seen are the schemas that are closed already.
func closeSchema(ref *openapi3.SchemaRef, seen map[*openapi3.Schema]bool) {
	if ref == nil || ref.Value == nil || seen[ref.Value] {
		return
	}
	schema := ref.Value
	seen[schema] = true
	if schema.Type.Is("object") && len(schema.Properties) > 0 {
		no := false
		schema.AdditionalProperties = openapi3.AdditionalProperties{Has: &no}
	}
	closeSchema(schema.Items, seen)
	for _, property := range schema.Properties {
		closeSchema(property, seen)
	}
}

// unknownRoute returns a route with the responses for unknownStatuses, which are those of the document's operations. It
// fails the test if no operation has one of them.
func unknownRoute(t testing.TB, doc *openapi3.T) *routers.Route {
	t.Helper()
	responses := openapi3.NewResponsesWithCapacity(len(unknownStatuses))
	for _, status := range unknownStatuses {
		for _, item := range doc.Paths.Map() {
			for _, operation := range item.Operations() {
				if r := operation.Responses.Status(status); r != nil {
					responses.Set(fmt.Sprint(status), r)
				}
			}
		}
		if responses.Status(status) == nil {
			t.Fatalf("no operation of the document answers %d", status)
		}
	}
	// No operation of a document returns 405, which is for methods that a path lacks. It looks as a 404 does.
	responses.Set(fmt.Sprint(http.StatusMethodNotAllowed), responses.Status(http.StatusNotFound))
	return &routers.Route{Spec: doc, Operation: &openapi3.Operation{Responses: responses}}
}

// options enable the validation of the formats email and uuid, which the library does not check by default.
var options = &openapi3filter.Options{
	IncludeResponseStatus: true,
	MultiError:            true,
	AuthenticationFunc:    openapi3filter.NoopAuthenticationFunc,
	SchemaValidationOptions: []openapi3.SchemaValidationOption{
		openapi3.WithStringFormatValidator("email", openapi3.NewRegexpFormatValidator(openapi3.FormatOfStringForEmail)),
		openapi3.WithStringFormatValidator("uuid", openapi3.NewRegexpFormatValidator(
			`^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$`,
		)),
	},
}

// Violation returns an error that says how the response to a request differs from the document. It returns nil for a
// response as documented, and for a path outside of the document's prefix or that of the document itself. It does not
// check the body of a response to HEAD, nor that of the request.
func (v *Validator) Violation(req *http.Request, status int, header http.Header, body []byte) error {
	if !v.covers(req.URL.Path) {
		return nil
	}
	documented := req
	if req.Method == http.MethodHead { // documented as GET
		documented = req.Clone(req.Context())
		documented.Method = http.MethodGet
	}

	route, path, err := v.router.FindRoute(documented)
	switch {
	case errors.Is(err, routers.ErrPathNotFound), errors.Is(err, routers.ErrMethodNotAllowed):
		route = v.unknown
	case err != nil:
		return fmt.Errorf("find the operation: %w", err)
	}

	response := route.Operation.Responses.Status(status)
	switch {
	case response == nil:
		return fmt.Errorf("status %d is not documented", status)
	case req.Method == http.MethodHead:
		return nil
	case len(response.Value.Content) == 0 && len(body) > 0:
		return errors.New("there is a body, but none is documented")
	case len(response.Value.Content) > 0 && !json.Valid(body):
		return errors.New("the body is not one JSON value")
	}

	in := &openapi3filter.ResponseValidationInput{
		RequestValidationInput: &openapi3filter.RequestValidationInput{
			Request: req, Route: route, PathParams: path, Options: options,
		},
		Status: status, Header: header, Options: options,
	}
	return shorten(openapi3filter.ValidateResponse(req.Context(), in.SetBodyBytes(body)))
}

// EventViolation returns an error that says how the body of an event differs from what the document has under webhooks
// for its type. It returns nil for a body as documented.
func (v *Validator) EventViolation(body []byte) error {
	var event map[string]any
	if err := json.Unmarshal(body, &event); err != nil {
		return err
	}
	item := v.doc.Webhooks[fmt.Sprint(event["type"])]
	if item == nil {
		return fmt.Errorf("the event's type %v is not documented", event["type"])
	}
	schema := item.Post.RequestBody.Value.Content.Get("application/json").Schema.Value
	return schema.VisitJSON(event, openapi3.MultiErrors())
}

// covers reports whether a path is below the document's prefix, and not that of the document itself.
func (v *Validator) covers(path string) bool {
	rest, ok := strings.CutPrefix(path, v.prefix)
	return ok && (rest == "" || rest[0] == '/') && rest != "/openapi.yaml" && rest != "/openapi.json"
}

// Check fails the test if the response is not as documented; see Violation.
func (v *Validator) Check(t testing.TB, req *http.Request, status int, header http.Header, body []byte) {
	t.Helper()
	if err := v.Violation(req, status, header, body); err != nil {
		t.Errorf("%s %s: the response with status %d differs from the document %s: %v; the body begins with %.200s",
			req.Method, req.URL.Path, status, v.name, err, body)
	}
}

// Wrap returns a transport that checks every response of base. For several documents, wrap several times. It reports
// each difference once.
func (v *Validator) Wrap(t testing.TB, base http.RoundTripper) http.RoundTripper {
	var reported sync.Map // the differences, by method, status and text
	return transport(func(req *http.Request) (*http.Response, error) {
		t.Helper()
		resp, err := base.RoundTrip(req)
		if err != nil {
			return nil, err
		}
		body, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if err != nil {
			return nil, err
		}
		resp.Body = io.NopCloser(bytes.NewReader(body))
		if err := v.Violation(req, resp.StatusCode, resp.Header, body); err != nil {
			if _, known := reported.LoadOrStore(fmt.Sprint(req.Method, resp.StatusCode, err), true); !known {
				v.Check(t, req, resp.StatusCode, resp.Header, body)
			}
		}
		return resp, nil
	})
}

type transport func(*http.Request) (*http.Response, error)

// RoundTrip calls the function.
func (t transport) RoundTrip(req *http.Request) (*http.Response, error) { return t(req) }

// Witness is a test that records its errors and does not fail.
type Witness struct {
	testing.TB
	Errors []string
}

// Helper does nothing.
func (w *Witness) Helper() {}

// Errorf records an error.
func (w *Witness) Errorf(format string, args ...any) {
	w.Errors = append(w.Errors, fmt.Sprintf(format, args...))
}
