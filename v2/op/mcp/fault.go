package mcp

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"partnerapi/domain"
)

// response is a response of JSON-RPC, whose ID is that of the message exactly as it was sent; null for a message whose
// ID could not be read.
type response struct {
	Version string         `json:"jsonrpc"`
	ID      jsontext.Value `json:"id"`
	Result  jsontext.Value `json:"result,omitzero"`
	Error   *jsonrpc.Error `json:"error,omitzero"`
}

// encode returns the response in JSON. In an error, which may name what headers contain, invisible characters are
// escaped.
func (r response) encode() ([]byte, error) {
	r.Version = "2.0"
	if r.Error != nil {
		r.Error = &jsonrpc.Error{
			Code: r.Error.Code, Message: domain.VisibleLines(r.Error.Message), Data: escapeInvisible(r.Error.Data),
		}
	}
	return json.Marshal(r, asSent)
}

// Fault returns the body of the response to a message that is rejected as InvalidRequest, PayloadTooLarge or
// UnsupportedEncoding before its ID is read: a JSON-RPC error whose data is v2's error envelope. It returns nil for
// other errors.
func (s *Server) Fault(r *http.Request, e *domain.Error, requestID string) []byte {
	if !slices.Contains([]domain.Code{domain.InvalidRequest, domain.PayloadTooLarge, domain.UnsupportedEncoding}, e.Code) {
		return nil
	}
	return s.rejection(&message{request: r, id: requestID}, e)
}

// rejection returns the JSON-RPC error for a message that is rejected because of e.
func (s *Server) rejection(m *message, e *domain.Error) []byte {
	code := int64(jsonrpc.CodeInvalidRequest)
	if invalid, ok := errors.AsType[*jsonrpc.Error](e); ok {
		code = invalid.Code
	}
	_, envelope := s.Envelope(m.request, e, m.id)
	body, _ := response{ID: m.ID, Error: &jsonrpc.Error{Code: code, Message: e.Message, Data: envelope}}.encode() // never fails
	return body
}

// writeJSON writes a response with a status.
func writeJSON(w http.ResponseWriter, status int, body []byte) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(status)
	_, _ = w.Write(body) // an error means that the client hung up
}

// allowedMethods are the HTTP methods of the server's path: a message, and the end of a session.
const allowedMethods = http.MethodPost + ", " + http.MethodDelete

// newestVersion is the protocol version without sessions: results are marked complete, and each request names it.
const newestVersion = "2026-07-28"

const versionHeader = "Mcp-Protocol-Version"

// usesNewestVersion reports whether the message names newestVersion, or a later one.
func (m *message) usesNewestVersion() bool {
	return m.request.Header.Get(versionHeader) >= newestVersion
}

// rejectMethod answers a message of an unknown method: a request with -32601, a notification with 202. The error has
// status 404 in the newest version of the protocol, and 200 in older ones, in which 404 ends the session.
func rejectMethod(w http.ResponseWriter, m *message) error {
	if len(m.ID) == 0 {
		w.WriteHeader(http.StatusAccepted)
		return nil
	}
	status := http.StatusOK
	if m.usesNewestVersion() {
		status = http.StatusNotFound
	}
	e := &jsonrpc.Error{Code: jsonrpc.CodeMethodNotFound, Message: fmt.Sprintf("this server has no method %q", m.Method)}
	body, err := response{ID: m.ID, Error: e}.encode()
	if err == nil {
		writeJSON(w, status, body)
	}
	return err
}

// explainRefusal returns the likely reason for which the SDK refused a message with a status and a text, not as
// JSON-RPC.
func explainRefusal(r *http.Request, status int, text string) string {
	switch {
	case status == http.StatusMethodNotAllowed:
		return "send each message with POST; the server offers no stream"
	case status == http.StatusUnsupportedMediaType:
		return "the header Content-Type must be application/json"
	case strings.HasPrefix(text, "Accept"):
		return "the header Accept, if any, must allow application/json"
	case r.Header.Get("Last-Event-ID") != "":
		return "the header Last-Event-ID is not accepted; the server offers no stream"
	case r.Header.Get(versionHeader) != "":
		return "the message does not follow version " + r.Header.Get(versionHeader) + " of the protocol, or the server does not support it"
	}
	return "the message does not follow the protocol; check its ID if it is a request, its parameters, and that it is " +
		"nested at most 1,000 levels deep"
}
