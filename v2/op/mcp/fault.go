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

// Fault is the body of the answer to a message that cannot be taken (400, 413): an
// error of JSON-RPC, whose data is the envelope that v2 would answer; nil for other
// errors.
func (s *Server) Fault(e *domain.Error, requestID string) []byte {
	if e.Code != domain.InvalidRequest && e.Code != domain.PayloadTooLarge {
		return nil
	}
	code := jsonrpc.CodeInvalidRequest
	if errors.Is(e, errNoJSON) {
		code = jsonrpc.CodeParseError
	}
	_, envelope := s.Envelope(e, requestID)
	body, _ := json.Marshal(map[string]any{ // which can be encoded
		"jsonrpc": "2.0", "id": nil,
		"error": &jsonrpc.Error{Code: int64(code), Message: e.Message, Data: envelope},
	})
	return body
}

// fault is an answer that is an error of JSON-RPC.
type fault struct {
	JSONRPC string          `json:"jsonrpc"`
	ID      json.RawMessage `json:"id"`
	Error   *jsonrpc.Error  `json:"error"`
}

// isFault reports whether an answer is an error of JSON-RPC.
func (r *recorder) isFault() bool {
	var said fault
	return json.Unmarshal(r.body.Bytes(), &said) == nil && said.Error != nil
}

// listen asks for a stream of notifications.
const listen = "subscriptions/listen"

// refuseListen answers a request to listen, as nothing is ever pushed. The SDK would hold
// a stream open. An unknown method is 404 in the newest version; before, 404 is the end of
// a session.
func refuseListen(r *http.Request, body []byte) (*recorder, error) {
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
	if announcesNewest(r) {
		answer.status = http.StatusNotFound
	}
	return answer, json.NewEncoder(&answer.body).Encode(said)
}

// inOurWords is an answer of the SDK without its words for what is wrong with a
// message, which are plain texts, or name Go's types.
func inOurWords(r *http.Request, answer *recorder) (*recorder, error) {
	if answer.status == http.StatusBadRequest && answer.header.Get("Content-Type") != "application/json" {
		return nil, &domain.Error{Code: domain.InvalidRequest, Message: whatIsWrong(r)}
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

// acceptsBoth reports whether a caller takes both of the forms of answers, as the
// protocol wants it.
func acceptsBoth(r *http.Request) bool {
	accept := strings.Join(r.Header.Values("Accept"), ",")
	return strings.Contains(accept, "application/json") && strings.Contains(accept, "text/event-stream")
}

// whatIsWrong is why the SDK cannot take a message that is an object.
func whatIsWrong(r *http.Request) string {
	switch {
	case !acceptsBoth(r):
		return "the header Accept must name application/json and text/event-stream"
	case r.Header.Get("Last-Event-ID") != "":
		return "the header Last-Event-ID is not taken: no stream is offered"
	case r.Header.Get(versionHeader) != "":
		return "the message is not as version " + r.Header.Get(versionHeader) + " of the protocol has it, or that is not spoken here"
	}
	return "the message is not as the protocol has it: a known method, an id where it is a request, and its parameters"
}
