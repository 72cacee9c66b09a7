package openapi

import (
	"cmp"
	"fmt"
	"net/http"
	"strings"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/go-json-experiment/json"
)

const (
	keyText = "The partner's API key, on every request. A key reaches all clients of its partner or some of them, " +
		"has the scope `read`, `write` or both, and may expire."
	retryText = "After how many seconds to try again."

	// keyScheme names the security scheme: the key in X-API-Key.
	keyScheme = "ApiKey"
	// idempotencyKey is the header of that name.
	idempotencyKey = "Idempotency-Key"
	retryAfter     = "Retry-After"
	location       = "Location"
	replayed       = "Idempotent-Replayed"
)

// everyResponse are the headers that every response carries (decisions 2.1).
var everyResponse = []string{"X-Request-Id", "X-RateLimit-Limit", "X-RateLimit-Remaining", "X-RateLimit-Reset"}

// newComponents holds what all operations share.
func newComponents() *openapi3.Components {
	return &openapi3.Components{
		Responses: openapi3.ResponseBodies{},
		SecuritySchemes: openapi3.SecuritySchemes{keyScheme: {Value: &openapi3.SecurityScheme{
			Type: "apiKey", In: "header", Name: "X-API-Key", Description: keyText,
		}}},
		Headers: openapi3.Headers{
			"X-Request-Id": header("Names the request, in errors and logs too; "+
				"the request's own X-Request-Id where it is well formed.",
				openapi3.NewStringSchema().WithPattern(`^[A-Za-z0-9._-]{1,128}$`)),
			"X-RateLimit-Limit": header("How many requests the rate limit allows in a minute: the key's own, "+
				"or the tighter one of this operation for one client.", integerFrom(1)),
			"X-RateLimit-Remaining": header("How many of those requests are left.", integerFrom(0)),
			"X-RateLimit-Reset":     header("When all of them are back, in Unix seconds, rounded up.", integerFrom(0)),
			retryAfter:              header(retryText, integerFrom(1)),
		},
		Parameters: openapi3.ParametersMap{},
	}
}

// idempotencyParameter is the header that names a request.
func idempotencyParameter() *openapi3.ParameterRef {
	return &openapi3.ParameterRef{Value: &openapi3.Parameter{
		Name: idempotencyKey, In: openapi3.ParameterInHeader,
		Description: "Any text that names this request. For 24 hours a repeat of the request with the same key " +
			"is answered with the first success, and not done again.",
		Schema: openapi3.NewStringSchema().WithMaxLength(255).NewRef(),
	}}
}

func header(about string, schema *openapi3.Schema) *openapi3.HeaderRef {
	parameter := openapi3.Parameter{Description: about, Required: true, Schema: schema.NewRef()}
	return &openapi3.HeaderRef{Value: &openapi3.Header{Parameter: parameter}}
}

func integerFrom(low float64) *openapi3.Schema { return openapi3.NewIntegerSchema().WithMin(low) }

// headers are those of a response with the status. A conflict, and what is gone,
// says when to try again only where it will pass by itself.
func (b *builder) headers(status int) openapi3.Headers {
	shared := b.doc.Components.Headers
	out := openapi3.Headers{}
	for _, name := range everyResponse {
		out[name] = &openapi3.HeaderRef{Ref: "#/components/headers/" + name, Value: shared[name].Value}
	}
	switch status {
	case http.StatusTooManyRequests, http.StatusServiceUnavailable:
		ref := "#/components/headers/" + retryAfter
		out[retryAfter] = &openapi3.HeaderRef{Ref: ref, Value: shared[retryAfter].Value}
	case http.StatusConflict, http.StatusGone:
		optional := *shared[retryAfter].Value
		optional.Required = false
		out[retryAfter] = &openapi3.HeaderRef{Value: &optional}
	}
	return out
}

// successHeaders are those of an operation's success (decisions 3.12).
func (b *builder) successHeaders(o Operation) openapi3.Headers {
	out := b.headers(o.Status)
	if o.Located {
		at := header("The path of what was created.", openapi3.NewStringSchema().WithFormat("uri-reference"))
		_, tries := o.Output.FieldByName("DryRun") // which creates nothing
		at.Value.Required = at.Value.Required && !tries
		out[location] = at
	}
	if o.Idempotent {
		again := header("That this is the answer to an earlier request with the same "+idempotencyKey+".",
			openapi3.NewStringSchema().WithEnum("true"))
		again.Value.Required = false
		out[replayed] = again
	}
	for name, meaning := range o.Headers {
		optional := header(meaning, openapi3.NewStringSchema())
		optional.Value.Required = false
		out[name] = optional
	}
	return out
}

// failureOf is the failure with a status.
func (b *builder) failureOf(status int) (Failure, bool) {
	for _, f := range b.of.Added {
		if f.Status == status {
			return f, true
		}
	}
	f, ok := failures[status]
	return f, ok
}

// errorResponse returns the one response that all operations fail with in this
// status.
func (b *builder) errorResponse(status int) (*openapi3.ResponseRef, error) {
	text := http.StatusText(status)
	name := strings.ReplaceAll(text, " ", "")
	shared := b.doc.Components.Responses
	if shared[name] == nil {
		content := jsonContent(b.failure)
		if f, ok := b.failureOf(status); ok && b.of.Failure != nil {
			text = cmp.Or(b.of.Failures[status], f.Description)
			body, err := json.Marshal(b.of.Failure(f))
			if err != nil {
				return nil, fmt.Errorf("the example of status %d: %w", status, err)
			}
			if err := b.show(content, body); err != nil {
				return nil, err
			}
		}
		shared[name] = &openapi3.ResponseRef{Value: &openapi3.Response{
			Description: &text, Headers: b.headers(status), Content: content,
		}}
	}
	return &openapi3.ResponseRef{Ref: "#/components/responses/" + name, Value: shared[name].Value}, nil
}
