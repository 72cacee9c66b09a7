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
	Status    int         `json:"status" doc:"The HTTP status."`
	Error     domain.Code `json:"error" doc:"The kind of error, for programs: the code of version 2."`
	Message   string      `json:"message" doc:"What went wrong, for people, naming each wrong field."`
	RequestID string      `json:"request_id" doc:"The id of the request, as in X-Request-Id."`
}

// noClient answers for a client that does not exist, is archived or is beyond the key's access, so that numbers
// cannot be probed (decisions 5.2).
var noClient = domain.Error{Code: domain.Forbidden, Message: "this key has no access to the client"}

var indexes = regexp.MustCompile(`\[\d+\]`)

// translateError translates an error of v2: fields get their v1 names, and a client that was not found becomes
// noClient.
func (r *route) translateError(e *domain.Error) *domain.Error {
	out := *e
	if e.Code == domain.NotFound && e.Object == (domain.ClientID{}).Noun() {
		out = noClient
	}
	if len(e.Fields) == 0 {
		return &out
	}

	faults := make([]string, len(e.Fields))
	for i, fault := range e.Fields {
		name := r.v1Name(fault.Field)
		message := fault.Message
		if other, ok := strings.CutPrefix(message, "must be before "); ok && r.Fields[other] != "" {
			message = "must be before " + r.Fields[other]
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

// addV2Faults adds v2's field faults to those of v1's input, so that every wrong field is named. v2's input lacks
// the fields that could not be parsed: each is named once, and nothing is added if the whole query or body could
// not be parsed.
func (r *route) addV2Faults(in any, unread *domain.Error) *domain.Error {
	named := map[string]bool{"body": true} // of a PATCH that changes nothing, so far
	for _, fault := range unread.Fields {
		if fault.Field == "body" || fault.Field == "query" {
			return unread
		}
		named[indexes.ReplaceAllString(fault.Field, "")] = true
	}
	var broken *domain.Error
	if len(named) == 1 || !errors.As(r.operation.Validate(r.toV2(in)), &broken) {
		return unread
	}

	out := *unread
	out.Fields = slices.Clone(unread.Fields)
	for _, fault := range broken.Fields {
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
