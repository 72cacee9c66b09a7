package v1compat

import (
	"regexp"
	"strings"

	"github.com/gin-gonic/gin"

	"partnerapi/domain"
	"partnerapi/v2/op/ginop"
)

// Error is the body of every error of v1 (decisions 5.1).
type Error struct {
	Status    int         `json:"status"`
	Error     domain.Code `json:"error"`
	Message   string      `json:"message"`
	RequestID string      `json:"request_id"`
}

// noClient is the one answer for a client that does not exist, was archived or
// is out of reach, so that numbers cannot be probed (decisions 5.2).
var noClient = domain.Error{Code: domain.Forbidden, Message: "this key has no access to the client"}

var indexes = regexp.MustCompile(`\[\d+\]`)

// translate puts an error of v2 into v1's words: every wrong field by its v1
// name, and no access in the place of a client that was not found.
func (r *route) translate(e *domain.Error) *domain.Error {
	out := *e
	if e.Code == domain.NotFound && e.Object == (domain.ClientKind{}).Noun() {
		out = noClient
	}
	if len(e.Fields) == 0 {
		return &out
	}

	faults := make([]string, len(e.Fields))
	for i, fault := range e.Fields {
		name := fault.Field
		if own, ok := r.Fields[indexes.ReplaceAllString(name, "")]; ok {
			name = own
		}
		message := fault.Message
		if other, ok := strings.CutPrefix(message, "must be before "); ok && r.Fields[other] != "" {
			message = "must be before " + r.Fields[other]
		}
		faults[i] = name + " " + message
	}
	out.Message = strings.Join(faults, "; ")
	return &out
}

// renderError writes an error as v1 does.
func renderError(c *gin.Context, e *domain.Error) error {
	status := ginop.StatusOf(e.Code)
	return ginop.WriteJSON(c, status, Error{
		Status: status, Error: e.Code, Message: e.Message, RequestID: ginop.RequestID(c),
	})
}
