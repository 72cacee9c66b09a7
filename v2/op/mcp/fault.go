package mcp

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/http"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"partnerapi/domain"
)

// Fault returns the body of the answer to a message that is refused (400, 413): a JSON-RPC error whose data is v2's
// error envelope; nil for other statuses.
func (s *Server) Fault(r *http.Request, e *domain.Error, requestID string) []byte {
	if e.Code != domain.InvalidRequest && e.Code != domain.PayloadTooLarge {
		return nil
	}
	code := jsonrpc.CodeInvalidRequest
	if errors.Is(e, errNoJSON) {
		code = jsonrpc.CodeParseError
	}
	_, envelope := s.Envelope(r, e, requestID)
	body, _ := json.Marshal(map[string]any{ // which can be encoded
		"jsonrpc": "2.0", "id": nil,
		"error": &jsonrpc.Error{Code: int64(code), Message: e.Message, Data: envelope},
	})
	return body
}

// fault is an answer that is a JSON-RPC error.
type fault struct {
	JSONRPC string          `json:"jsonrpc"`
	ID      json.RawMessage `json:"id"`
	Error   *jsonrpc.Error  `json:"error"`
}

// isError reports whether an answer is a JSON-RPC error.
func (r *recorder) isError() bool {
	var said fault
	return json.Unmarshal(r.body.Bytes(), &said) == nil && said.Error != nil
}

// listen is the method that requests a stream of notifications.
const listen = "subscriptions/listen"

// rejectListen refuses a request to listen, as the server pushes nothing; the SDK would hold a stream open. An
// unknown method is 404 in the newest version; in older ones 404 ends the session.
func rejectListen(r *http.Request, body []byte) (*recorder, error) {
	said := fault{JSONRPC: "2.0", Error: &jsonrpc.Error{Code: jsonrpc.CodeMethodNotFound, Message: "this server pushes nothing"}}
	var asked struct{ ID json.RawMessage }
	if err := json.Unmarshal(body, &asked); err != nil {
		return nil, domain.ErrInvalid("body", "must be one message of JSON-RPC 2.0")
	}
	if id := bytes.TrimSpace(asked.ID); len(id) == 0 || !bytes.ContainsAny(id[:1], `"-0123456789`) {
		return nil, domain.ErrInvalid("id", "must be a string or a number: "+listen+" is a request")
	}
	said.ID = asked.ID
	answer := &recorder{header: http.Header{"Content-Type": {"application/json"}}, status: http.StatusOK}
	if headerIsNewest(r) {
		answer.status = http.StatusNotFound
	}
	return answer, json.NewEncoder(&answer.body).Encode(said)
}

// rewordErrors replaces the SDK's messages for a malformed message, which are plain text or name Go types.
func rewordErrors(r *http.Request, answer *recorder) (*recorder, error) {
	if answer.status == http.StatusBadRequest && answer.header.Get("Content-Type") != "application/json" {
		return nil, &domain.Error{Code: domain.InvalidRequest, Message: explainBadRequest(r)}
	}
	text := answer.body.Bytes()
	if !bytes.Contains(text, []byte("unmarshal")) && !bytes.Contains(text, []byte(`missing required \"params\"`)) {
		return answer, nil
	}
	var said fault
	if json.Unmarshal(text, &said) != nil || said.Error == nil {
		return answer, nil
	}
	if said.Error.Code == 0 { // the SDK's own, without one
		said.Error.Code = jsonrpc.CodeInvalidParams
	}
	said.Error.Message = "the parameters of the message are not as the protocol has them"
	body, err := json.Marshal(said)
	answer.body = *bytes.NewBuffer(body)
	return answer, err
}

// acceptsJSONAndStream reports whether a caller accepts both content types, as the protocol requires.
func acceptsJSONAndStream(r *http.Request) bool {
	accept := strings.Join(r.Header.Values("Accept"), ",")
	return strings.Contains(accept, "application/json") && strings.Contains(accept, "text/event-stream")
}

// explainBadRequest returns why the SDK refuses a message that is a JSON object.
func explainBadRequest(r *http.Request) string {
	switch {
	case !acceptsJSONAndStream(r):
		return "the header Accept must name application/json and text/event-stream"
	case r.Header.Get("Last-Event-ID") != "":
		return "the header Last-Event-ID is not taken: no stream is offered"
	case r.Header.Get(versionHeader) != "":
		return "the message is not as version " + r.Header.Get(versionHeader) + " of the protocol has it, or that is not spoken here"
	}
	return "the message is not as the protocol has it: a known method, an id where it is a request, and its parameters"
}
