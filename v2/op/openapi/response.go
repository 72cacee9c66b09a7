package openapi

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"partnerapi/domain"
)

const (
	keyText = "The partner's API key, required in every request. A key can access all or some of its partner's clients, " +
		"has the scope `read`, `write` or both, and can expire."
	retryText = "Number of seconds to wait before retrying."

	// keyScheme names the security scheme: the key in X-API-Key.
	keyScheme = "ApiKey"
	// idempotencyKey is the header of that name.
	idempotencyKey = "Idempotency-Key"
	retryAfter     = "Retry-After"
	location       = "Location"
	replayed       = "Idempotent-Replayed"
	keyExpires     = "X-API-Key-Expires"
)

// everyResponse are the headers that every response carries (decisions 2.1).
var everyResponse = []string{"X-Request-Id", "X-RateLimit-Limit", "X-RateLimit-Remaining", "X-RateLimit-Reset"}

// newComponents returns the components that all operations share.
func newComponents() *openapi3.Components {
	return &openapi3.Components{
		Responses: openapi3.ResponseBodies{},
		SecuritySchemes: openapi3.SecuritySchemes{keyScheme: {Value: &openapi3.SecurityScheme{
			Type: "apiKey", In: "header", Name: "X-API-Key", Description: keyText,
		}}},
		Headers: openapi3.Headers{
			"X-Request-Id": header("ID of the request, which also appears in errors and logs. "+
				"If you sent a valid X-Request-Id, the response returns it unchanged.",
				openapi3.NewStringSchema().WithPattern(`^[A-Za-z0-9._-]{1,128}$`)),
			"X-RateLimit-Limit": header("Number of requests allowed per minute: the API key's limit or the operation's "+
				"lower limit for one client, if any.", integerFrom(1)),
			"X-RateLimit-Remaining": header("Number of requests left in the current window.", integerFrom(0)),
			"X-RateLimit-Reset":     header("When the current window ends, in Unix seconds, rounded up.", integerFrom(0)),
			retryAfter:              header(retryText, integerFrom(1)),
			keyExpires:              optionalHeader("When the API key expires. Sent only in the key's last 30 days.", openapi3.NewDateTimeSchema()),
		},
		Parameters: openapi3.ParametersMap{},
	}
}

// idempotencyParameter describes the header Idempotency-Key.
func idempotencyParameter() *openapi3.ParameterRef {
	return &openapi3.ParameterRef{Value: &openapi3.Parameter{
		Name: idempotencyKey, In: openapi3.ParameterInHeader,
		Description: "Any string that identifies this request. For 24 hours, repeating the request with the same " +
			"string returns the first successful response, without performing the operation again.",
		Schema: openapi3.NewStringSchema().WithMaxLength(255).NewRef(),
	}}
}

// header returns a required header with a description and a schema.
func header(about string, schema *openapi3.Schema) *openapi3.HeaderRef {
	parameter := openapi3.Parameter{Description: about, Required: true, Schema: schema.NewRef()}
	return &openapi3.HeaderRef{Value: &openapi3.Header{Parameter: parameter}}
}

// optionalHeader returns a header that not every response has.
func optionalHeader(about string, schema *openapi3.Schema) *openapi3.HeaderRef {
	h := header(about, schema)
	h.Value.Required = false
	return h
}

// integerFrom returns the schema of an integer of at least low.
func integerFrom(low float64) *openapi3.Schema { return openapi3.NewIntegerSchema().WithMin(low) }

// headers returns the headers of a response with the status: those of every response, X-API-Key-Expires except for 401,
// and Retry-After for 429 and 503. For 409 and 410 Retry-After is optional, as only temporary errors have it.
func (b *builder) headers(status int) openapi3.Headers {
	shared := b.doc.Components.Headers
	out := openapi3.Headers{}
	add := func(name string) {
		out[name] = &openapi3.HeaderRef{Ref: "#/components/headers/" + name, Value: shared[name].Value}
	}
	for _, name := range everyResponse {
		add(name)
	}
	if status != http.StatusUnauthorized {
		add(keyExpires)
	}
	switch status {
	case http.StatusTooManyRequests, http.StatusServiceUnavailable:
		add(retryAfter)
	case http.StatusConflict, http.StatusGone:
		optional := *shared[retryAfter].Value
		optional.Required = false
		out[retryAfter] = &openapi3.HeaderRef{Value: &optional}
	}
	return out
}

// successHeaders returns the headers of an operation's success: those of its status, Location, Idempotent-Replayed and
// those of Operation.Headers (decisions 3.12).
func (b *builder) successHeaders(o Operation) openapi3.Headers {
	out := b.headers(o.Status)
	if o.HasLocation {
		locationHeader := header("Path of the created object.", openapi3.NewStringSchema().WithFormat("uri-reference"))
		_, hasDryRun := o.Output.FieldByName("DryRun")
		locationHeader.Value.Required = !hasDryRun // a dry run creates nothing
		out[location] = locationHeader
	}
	if o.Idempotent {
		out[replayed] = optionalHeader("Present if this is the response to an earlier request with the same "+idempotencyKey+".",
			openapi3.NewStringSchema().WithEnum("true"))
	}
	for name, meaning := range o.Headers {
		out[name] = optionalHeader(meaning, openapi3.NewStringSchema())
	}
	return out
}

// failureOf returns the failure of a status, from Added, otherwise the package's failures; false if there is none.
func (b *builder) failureOf(status int) (Failure, bool) {
	for _, f := range slices.Concat(b.source.Added, failures) {
		if f.Status == status {
			return f, true
		}
	}
	return Failure{}, false
}

// errorResponse returns a reference to the response that all operations share for an error status, and adds it to the
// components if it is new. If source.Failure is set, it has the example and the description of the status's failure;
// source.Failures may replace the description.
func (b *builder) errorResponse(status int) (*openapi3.ResponseRef, error) {
	about := http.StatusText(status)
	name := strings.ReplaceAll(about, " ", "")
	shared := b.doc.Components.Responses
	if shared[name] == nil {
		var example jsontext.Value
		if f, ok := b.failureOf(status); ok && b.source.Failure != nil {
			about = cmp.Or(b.source.Failures[status], f.Description)
			var err error
			if example, err = json.Marshal(b.source.Failure(f)); err != nil {
				return nil, fmt.Errorf("the example of status %d: %w", status, err)
			}
		}
		content, err := b.jsonContent(b.failure, example)
		if err != nil {
			return nil, err
		}
		shared[name] = &openapi3.ResponseRef{Value: &openapi3.Response{Description: &about, Headers: b.headers(status), Content: content}}
	}
	return &openapi3.ResponseRef{Ref: "#/components/responses/" + name, Value: shared[name].Value}, nil
}

// Failure is an error as documents show it.
type Failure struct {
	Status int
	Code   domain.Code
	// Description says when the error occurs, in Markdown.
	Description string
	// Message and Fields are those of the example.
	Message string
	Fields  []domain.FieldError
}

// ExampleAddress is the service's address in examples, the default one.
const ExampleAddress = "http://127.0.0.1:8080"

// ExampleRequestID is the request id in examples.
const ExampleRequestID = "req_01jxt3e8f0c7kq5v9m2hz4p6wn"

// failures are the documented errors.
var failures = []Failure{
	{http.StatusBadRequest, domain.InvalidRequest, "`invalid_request`: a parameter or the body is invalid. `fields` names each invalid part.",
		"the request is invalid", []domain.FieldError{{Field: "limit", Message: "must be between 1 and 500"}}},
	{http.StatusUnauthorized, domain.Unauthorized, "`unauthorized`: the API key is missing, unknown, expired, revoked or not allowed from this IP address.",
		"the API key is unknown, expired or revoked", nil},
	{http.StatusForbidden, domain.Forbidden, "`forbidden`: the key lacks the scope or the access that the operation requires, " +
		"or the feature is not enabled for the client.", "this key lacks the scope write", nil},
	{http.StatusNotFound, domain.NotFound, "`not_found`: an object in the path does not exist, or the key has no access to it.",
		"no such client, or this key has no access to it", nil},
	{http.StatusRequestTimeout, domain.RequestTimeout, "`request_timeout`: the body did not arrive in time.",
		"the body did not arrive in time; send the request again", nil},
	{http.StatusConflict, domain.Conflict, "`conflict`: the request conflicts with the state of an object, or the " +
		"`Idempotency-Key` was used for another request. `fields` names the parts of the request that conflict, such as `email`, `name` or " +
		"`Idempotency-Key`, if any. If `Retry-After` is present, an earlier request with this `Idempotency-Key` is still running.",
		"a client with this name already exists", []domain.FieldError{{Field: "name", Message: "is in use by another client"}}},
	{http.StatusRequestEntityTooLarge, domain.PayloadTooLarge, "`payload_too_large`: the body is larger than 1 MiB.",
		"the body is larger than 1 MiB", nil},
	{http.StatusUnsupportedMediaType, domain.UnsupportedEncoding, "`unsupported_encoding`: `Content-Encoding` names an encoding such as " +
		"gzip. Send the body uncompressed.", "Content-Encoding must not be gzip; send the body uncompressed",
		[]domain.FieldError{{Field: "Content-Encoding", Message: "must not be gzip; send the body uncompressed"}}},
	{http.StatusTooManyRequests, domain.RateLimited, "`rate_limited`: the request exceeded the rate limit or the operation's limit. " +
		"Wait for `Retry-After` seconds.", "more than 600 requests a minute with this key; retry after the time in Retry-After", nil},
	{http.StatusInternalServerError, domain.Internal, "`internal`: the service failed to process the request. The service's log contains the request ID.",
		"something went wrong on our side; try again, and report the request ID if the problem persists", nil},
	{http.StatusServiceUnavailable, domain.Unavailable, "`unavailable`: the service cannot process the request now, for example because its database is unavailable. " +
		"Wait for `Retry-After` seconds.", "temporarily offline; try again later", nil},
}
