package v1compat

import (
	"errors"
	"regexp"
	"slices"
	"strings"

	"github.com/gin-gonic/gin"

	"partnerapi/domain"
	"partnerapi/v2/op/ginop"
)

// Error is the body of every error of v1 (decisions 5.1).
type Error struct {
	Status    int         `json:"status" doc:"HTTP status code."`
	Error     domain.Code `json:"error" doc:"Machine-readable error code, as in version 2."`
	Message   string      `json:"message" doc:"Human-readable description of the error, including the name of each invalid field."`
	RequestID string      `json:"request_id" doc:"ID of the request, as in the X-Request-Id header."`
}

// noClient answers for a client that does not exist, is archived or is beyond the key's access, so that numbers
// cannot be probed (decisions 5.2).
var noClient = domain.Error{Code: domain.Forbidden, Message: "this key has no access to the client"}

var indexes = regexp.MustCompile(`\[\d+\]`)

// translateError translates an error of v2. A client that was not found becomes noClient, which is Forbidden. If
// fields are wrong, the message names each, by its name in v1, with what is wrong with it. The message of a Conflict
// stays.
func (r *route) translateError(e *domain.Error) *domain.Error {
	out := *e
	if e.Code == domain.NotFound && e.Object == (domain.ClientID{}).Noun() {
		out = noClient
	}
	if len(e.Fields) == 0 || e.Code == domain.Conflict {
		return &out
	}

	faults := make([]string, len(e.Fields))
	for i, fault := range e.Fields {
		name := r.v1Name(fault.Field)
		message := fault.Message
		const notAfter = "must not be after "
		if other, ok := strings.CutPrefix(message, notAfter); ok && r.Fields[other] != "" { // another field
			message = notAfter + r.Fields[other]
		}
		faults[i] = name + " " + message
	}
	out.Message = strings.Join(faults, "; ")
	return &out
}

// v1Name returns v1's name of a v2 field.
func (r *route) v1Name(field string) string {
	if own, ok := r.Fields[indexes.ReplaceAllString(field, "")]; ok {
		return own
	}
	return field
}

// addV2Faults adds v2's faults of fields to invalid, the error of v1's input, so that the response names every wrong
// field. A field that v1 could not parse is empty in v2's input, so v2's fault of that field is omitted. Nothing is
// added if invalid names no field, or if the whole query or body could not be parsed.
func (r *route) addV2Faults(in any, invalid *domain.Error) *domain.Error {
	named := map[string]bool{}
	for _, fault := range invalid.Fields {
		if slices.Contains([]string{"body", "query", "Content-Encoding"}, fault.Field) {
			return invalid
		}
		named[indexes.ReplaceAllString(fault.Field, "")] = true
	}
	var invalidV2 *domain.Error
	if len(named) == 0 || !errors.As(r.operation.Validate(r.toV2(in)), &invalidV2) {
		return invalid
	}

	named["body"] = true // v2 calls a change empty if v1 could not parse its only fields
	out := *invalid
	out.Fields = slices.Clone(invalid.Fields)
	for _, fault := range invalidV2.Fields {
		if !named[indexes.ReplaceAllString(r.v1Name(fault.Field), "")] {
			out.Fields = append(out.Fields, fault)
		}
	}
	return &out
}

// renderError writes an error as v1 does.
func renderError(c *gin.Context, e *domain.Error) error {
	status := httpStatus(e.Code)
	return ginop.WriteJSON(c, status, Error{
		Status: status, Error: e.Code, Message: e.Message, RequestID: ginop.RequestID(c),
	})
}
