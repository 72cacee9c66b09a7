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

// Fault returns the body of the answer to a message that is rejected as InvalidRequest or PayloadTooLarge: a JSON-RPC
// error whose data is v2's error envelope. It returns nil for other errors.
func (s *Server) Fault(r *http.Request, e *domain.Error, requestID string) []byte {
	if e.Code != domain.InvalidRequest && e.Code != domain.PayloadTooLarge {
		return nil
	}
	code := jsonrpc.CodeInvalidRequest
	if errors.Is(e, errNoJSON) {
		code = jsonrpc.CodeParseError
	}
	_, envelope := s.Envelope(r, e, requestID)
	body, _ := json.Marshal(map[string]any{ // never fails for these types
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
	var response fault
	return json.Unmarshal(r.body.Bytes(), &response) == nil && response.Error != nil
}

// listen is the method that requests a stream of notifications.
const listen = "subscriptions/listen"

// rejectListen answers a request to listen with the error for an unknown method, as the server sends no notifications;
// the SDK would keep a stream open. The status is 404 in the newest version of the protocol, and 200 in older ones, in
// which 404 ends the session. A body that is no request is InvalidRequest.
func rejectListen(r *http.Request, body []byte) (*recorder, error) {
	response := fault{JSONRPC: "2.0", Error: &jsonrpc.Error{Code: jsonrpc.CodeMethodNotFound, Message: "this server pushes nothing"}}
	var request struct{ ID json.RawMessage }
	if err := json.Unmarshal(body, &request); err != nil {
		return nil, domain.ErrInvalid("body", "must be one message of JSON-RPC 2.0")
	}
	if id := bytes.TrimSpace(request.ID); len(id) == 0 || !bytes.ContainsAny(id[:1], `"-0123456789`) {
		return nil, domain.ErrInvalid("id", "must be a string or a number: "+listen+" is a request")
	}
	response.ID = request.ID
	answer := &recorder{header: http.Header{"Content-Type": {"application/json"}}, status: http.StatusOK}
	if namesNewestVersion(r) {
		answer.status = http.StatusNotFound
	}
	return answer, json.NewEncoder(&answer.body).Encode(response)
}

// rewordErrors replaces the SDK's errors for a malformed message: a 400 in plain text by InvalidRequest, and the text
// of a JSON-RPC error for missing or undecodable parameters, which may name Go types. Others it returns unchanged.
func rewordErrors(r *http.Request, answer *recorder) (*recorder, error) {
	if answer.status == http.StatusBadRequest && answer.header.Get("Content-Type") != "application/json" {
		return nil, &domain.Error{Code: domain.InvalidRequest, Message: explainBadRequest(r)}
	}
	text := answer.body.Bytes()
	if !bytes.Contains(text, []byte("unmarshal")) && !bytes.Contains(text, []byte(`missing required \"params\"`)) {
		return answer, nil
	}
	var response fault
	if json.Unmarshal(text, &response) != nil || response.Error == nil {
		return answer, nil
	}
	if response.Error.Code == 0 { // an error of the SDK without a code
		response.Error.Code = jsonrpc.CodeInvalidParams
	}
	response.Error.Message = "the parameters of the message are not as the protocol has them"
	body, err := json.Marshal(response)
	answer.body = *bytes.NewBuffer(body)
	return answer, err
}

// acceptsJSONAndStream reports whether a caller accepts both content types, as the protocol requires.
func acceptsJSONAndStream(r *http.Request) bool {
	accept := strings.Join(r.Header.Values("Accept"), ",")
	return strings.Contains(accept, "application/json") && strings.Contains(accept, "text/event-stream")
}

// explainBadRequest returns the likely reason for which the SDK rejects a message that is a JSON object.
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
