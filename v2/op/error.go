package op

import (
	"maps"
	"net/http"
	"slices"
	"strings"

	"partnerapi/domain"
)

// statuses has the HTTP status of each code (decisions 3.2).
var statuses = map[domain.Code]int{
	domain.InvalidRequest:      http.StatusBadRequest,
	domain.Unauthorized:        http.StatusUnauthorized,
	domain.Forbidden:           http.StatusForbidden,
	domain.NotFound:            http.StatusNotFound,
	domain.MethodNotAllowed:    http.StatusMethodNotAllowed,
	domain.Conflict:            http.StatusConflict,
	domain.PayloadTooLarge:     http.StatusRequestEntityTooLarge,
	domain.UnsupportedEncoding: http.StatusUnsupportedMediaType,
	domain.RequestTimeout:      http.StatusRequestTimeout,
	domain.RateLimited:         http.StatusTooManyRequests,
	domain.Internal:            http.StatusInternalServerError,
	domain.Unavailable:         http.StatusServiceUnavailable,
	domain.Misdirected:         http.StatusMisdirectedRequest,
}

// ErrorCodes returns every code, in alphabetical order.
func ErrorCodes() []domain.Code { return slices.Sorted(maps.Keys(statuses)) }

// StatusOf returns the HTTP status of a code.
func StatusOf(code domain.Code) int { return statuses[code] }

// ErrorEnvelope is the body of every error of v2.
type ErrorEnvelope struct {
	Error ErrorBody `json:"error" doc:"What went wrong."`
}

// ErrorBody says what went wrong.
type ErrorBody struct {
	Code      domain.Code         `json:"code" doc:"Machine-readable error code."`
	Message   string              `json:"message" doc:"Human-readable description of the error. The wording may change."`
	RequestID string              `json:"request_id" doc:"ID of the request, as in the X-Request-Id header."`
	DocURL    string              `json:"doc_url" format:"uri" doc:"URL of the error guide's section about this code."`
	Fields    []domain.FieldError `json:"fields,omitempty" doc:"The parts of the request that are invalid or conflict with an existing object, if any."`
}

// ErrorGuide is the path of the guide to errors, which has a heading for every code, below the service's address.
const ErrorGuide = "/docs/guide/errors"

// EnvelopeOf returns the body of an error. address is the service's, as the caller knows it.
func EnvelopeOf(e *domain.Error, requestID, address string) ErrorEnvelope {
	return ErrorEnvelope{ErrorBody{
		Code: e.Code, Message: e.Message, RequestID: requestID, Fields: e.Fields,
		DocURL: address + ErrorGuide + "#" + strings.ReplaceAll(string(e.Code), "_", "-"),
	}}
}
