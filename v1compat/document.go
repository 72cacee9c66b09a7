package v1compat

import (
	"embed"
	"io/fs"
	"iter"
	"net/http"
	"reflect"
	"slices"

	"github.com/getkin/kin-openapi/openapi3"

	"partnerapi/domain"
	"partnerapi/v2/api"
	"partnerapi/v2/op"
	"partnerapi/v2/op/ginop"
	"partnerapi/v2/op/openapi"
)

//go:embed examples/*.json
var examples embed.FS

// about is the description of the document, in Markdown.
const about = `The older version of the API. Build new integrations on version 2.

**API keys.** Send your API key in the ` + "`X-API-Key`" + ` header of every request. Version 2 uses the same keys.

**IDs** of clients, collections, policies, reports, templates and groups are numeric; IDs of users, admins and emails ` +
	`are UUIDs.

**Lists** are paginated with ` + "`limit`" + ` and ` + "`offset`" + `. A limit that is too small or too large is set to ` +
	`the nearest allowed value. If you page from offset 0 in steps of the limit, you receive each item exactly once, provided that it exists the whole time.

**Bodies.** Unknown fields are ignored. For optional fields, ` + "`null`" + ` and an empty string count as omitted.

**Rate limits.** Each API key allows 600 requests a minute, including those to version 2.`

// aboutLink describes the header Link.
const aboutLink = "With `rel=\"successor-version\"`, the path and query of the version 2 request that returns the same data. " +
	"Omitted if version 2 has no such request (for example, at an offset above 0) or if the served release does not include it."

// failures are v1's own descriptions of error statuses.
var failures = map[int]string{
	http.StatusBadRequest: "`invalid_request`: a parameter or the body is invalid. `message` names each invalid part.",
	http.StatusForbidden:  "`forbidden`: the key lacks the scope or has no access to the client, or the client does not exist.",
	http.StatusNotFound:   "`not_found`: an object in the request does not exist, or the key has no access to it.",
	http.StatusConflict:   "`conflict`: the request conflicts with existing data, such as a name that is in use.",
}

// aboutEnd follows the description after v1's end is announced.
const aboutEnd = `

**Retirement.** Version 1 is being retired. After its sunset date, requests may fail with 410. In every response, the ` +
	"`Sunset`" + ` header contains this date, and ` + "`Deprecation`" + ` contains the date of the announcement. ` + "`Link`" + ` with ` +
	"`rel=\"deprecation\"`" + ` points to a page that says what to call instead.`

// failureOf returns the example body of an error. v1 has no list of invalid fields: its message names them, so the
// example of an invalid request has such a message.
func failureOf(f openapi.Failure) any {
	message := f.Message
	if f.Code == domain.InvalidRequest {
		message = "limit must be an integer"
	}
	return Error{Status: f.Status, Error: f.Code, Message: message, RequestID: openapi.ExampleRequestID}
}

// Document returns v1's current OpenAPI document, built from the table of routes.
func (f *Facade) Document() (*openapi3.T, error) {
	return f.document(f.retirement().Announcement != nil)
}

// document returns v1's document before or after its end is announced, which deprecates all but additive operations.
func (f *Facade) document(announced bool) (*openapi3.T, error) {
	files, err := fs.Sub(examples, "examples")
	if err != nil {
		return nil, err
	}
	d := openapi.Document{
		Title: "Partner API v1", Version: "1", Prefix: "/v1", Error: reflect.TypeFor[Error](), Lenient: true, OpenAPI30: true,
		Description: about, Tags: api.Tags, Failure: failureOf, Failures: failures, Examples: files,
		Added: []openapi.Failure{goneFailure},
	}
	if announced {
		d.Description += aboutEnd
	}
	for _, r := range f.routes {
		m := r.operation.Meta()
		var headers map[string]string
		if !r.Additive {
			headers = map[string]string{"Link": aboutLink}
		}
		d.Operations = append(d.Operations, openapi.Operation{
			Meta: op.Meta{
				ID: r.ID, Method: r.Method, Path: r.Path, Summary: r.Summary, Description: r.Description, Tag: m.Resource(),
				Scope: m.Scope, AllClients: m.AllClients, Status: r.Status,
			},
			Deprecated: announced && !r.Additive, Input: r.input, Output: r.output, Errors: r.failures(), Headers: headers,
		})
	}
	return openapi.Build(d)
}

// Routes yields each route, with all of its error statuses in Fails, ascending, and its v2 operation's declaration.
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

// failures returns all of the route's error statuses, ascending.
func (r *route) failures() []int {
	list := slices.Concat(r.Fails, shared)
	if !r.Additive {
		list = append(list, http.StatusGone)
	}
	if r.input.Body != nil {
		list = append(list, http.StatusRequestTimeout)
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// YAML returns the document as it is served.
func (f *Facade) YAML() ([]byte, error) {
	document, err := f.Document()
	if err != nil {
		return nil, err
	}
	return openapi.YAML(document)
}

// openDocument serves v1's document in two forms, before and after the end of v1 is announced.
func (f *Facade) openDocument(s *ginop.Surface) error {
	handlerOf := f.DocumentHandler
	if handlerOf == nil {
		handlerOf = serveUnchanged
	}
	var documents [2]http.Handler
	for i, announced := range [2]bool{false, true} {
		document, err := f.document(announced)
		if err != nil {
			return err
		}
		openapi.SetSupport(document, f.SupportURL)
		document.Servers[0].URL = f.SampleBase + document.Servers[0].URL
		documents[i] = handlerOf("application/yaml", func() ([]byte, error) { return openapi.YAML(document) })
	}
	s.Open("/openapi.yaml", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		document := documents[0]
		if f.retirement().Announcement != nil {
			document = documents[1]
		}
		document.ServeHTTP(w, r)
	}))
	return nil
}

// serveUnchanged returns a handler that serves the document as it is encoded, the same for every request.
func serveUnchanged(contentType string, encode func() ([]byte, error)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		source, err := encode()
		if err != nil {
			panic(err) // never: the declarations of the document are fixed, and tests encode them
		}
		w.Header().Set("Content-Type", contentType)
		_, _ = w.Write(source) // the caller may have hung up
	})
}
