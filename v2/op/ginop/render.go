package ginop

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"

	"github.com/gin-gonic/gin"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"partnerapi/domain"
)

// statuses is the HTTP status of each code (decisions 3.2).
var statuses = map[domain.Code]int{
	domain.InvalidRequest:  http.StatusBadRequest,
	domain.Unauthorized:    http.StatusUnauthorized,
	domain.Forbidden:       http.StatusForbidden,
	domain.NotFound:        http.StatusNotFound,
	domain.Conflict:        http.StatusConflict,
	domain.PayloadTooLarge: http.StatusRequestEntityTooLarge,
	domain.RequestTimeout:  http.StatusRequestTimeout,
	domain.RateLimited:     http.StatusTooManyRequests,
	domain.Internal:        http.StatusInternalServerError,
	domain.Unavailable:     http.StatusServiceUnavailable,
	domain.Misdirected:     http.StatusMisdirectedRequest,
}

// StatusOf is the HTTP status of a code.
func StatusOf(code domain.Code) int { return statuses[code] }

// ErrorEnvelope is the body of every error of v2.
type ErrorEnvelope struct {
	Error ErrorBody `json:"error" doc:"What went wrong."`
}

// ErrorBody says what went wrong.
type ErrorBody struct {
	Code      domain.Code         `json:"code" doc:"The kind of error, for programs."`
	Message   string              `json:"message" doc:"What went wrong, for people. Its words may change."`
	RequestID string              `json:"request_id" doc:"The id of the request, as in X-Request-Id."`
	Fields    []domain.FieldError `json:"fields,omitempty" doc:"The parts of the request that are wrong, where there are some."`
}

// renderEnvelope writes an error as v2 does.
func renderEnvelope(c *gin.Context, e *domain.Error) error {
	return WriteJSON(c, StatusOf(e.Code), ErrorEnvelope{Error: ErrorBody{
		Code: e.Code, Message: e.Message, RequestID: RequestID(c), Fields: e.Fields,
	}})
}

// jsonType is a value of a header that all responses share; nothing appends to it in place.
var jsonType = []string{"application/json; charset=utf-8"}

// Encode returns a value as the interface's JSON. Bytes that are not UTF-8, which a
// message may repeat of a caller's header, become U+FFFD: they are no reason for a 500.
func Encode(v any, options ...json.Options) ([]byte, error) {
	return json.Marshal(v, append(slices.Clip(options), jsontext.AllowInvalidUTF8(true))...)
}

// WriteJSON writes a response of one JSON value. On an error, nothing has been
// written.
func WriteJSON(c *gin.Context, status int, v any, options ...json.Options) error {
	body, err := Encode(v, options...)
	if err != nil {
		return fmt.Errorf("encode the answer: %w", err)
	}
	writeBody(c, status, body)
	return nil
}

// writeBody writes a response whose body is JSON. Its length is said, which
// spares a large one being sent in chunks.
func writeBody(c *gin.Context, status int, body []byte) {
	h := c.Writer.Header()
	h["Content-Type"], h["Content-Length"] = jsonType, []string{strconv.Itoa(len(body))}
	c.Writer.WriteHeader(status)
	_, _ = c.Writer.Write(body) // an error means that the client hung up
}
