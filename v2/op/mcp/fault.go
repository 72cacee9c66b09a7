package mcp

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"partnerapi/domain"
)

// Fault returns the body of the answer to a message that is rejected as InvalidRequest, PayloadTooLarge or
// UnsupportedEncoding: a JSON-RPC error whose data is v2's error envelope. It returns nil for other errors.
func (s *Server) Fault(r *http.Request, e *domain.Error, requestID string) []byte {
	if !slices.Contains([]domain.Code{domain.InvalidRequest, domain.PayloadTooLarge, domain.UnsupportedEncoding}, e.Code) {
		return nil
	}
	rejected, ok := errors.AsType[*jsonrpc.Error](e)
	if !ok {
		rejected = &jsonrpc.Error{Code: jsonrpc.CodeInvalidRequest}
	}
	id := jsontext.Value("null")
	if known, ok := errors.AsType[*knownID](e); ok {
		id = known.id
	}
	_, envelope := s.Envelope(r, e, requestID)
	return faultOf(id, &jsonrpc.Error{Code: rejected.Code, Message: e.Message, Data: envelope})
}

// faultOf returns the JSON-RPC error with an ID. Its invisible characters are escaped.
func faultOf(id jsontext.Value, e *jsonrpc.Error) []byte {
	text, _ := json.Marshal(e) // never fails for these types
	return slices.Concat([]byte(headBefore), id, []byte(headAfter+`"error":`), escapeInvisible(text), []byte("}"))
}

// knownID is the Cause of an Error that rejects a message whose ID could be read, so that the caller learns which one.
type knownID struct {
	id    jsontext.Value
	cause error
}

func (k *knownID) Error() string { return fmt.Sprint(k.cause) }
func (k *knownID) Unwrap() error { return k.cause }

// withID returns an InvalidRequest that Fault answers with the ID of the message. It returns other errors, and nil,
// unchanged, as it does all if id is empty.
func withID(err error, id jsontext.Value) error {
	e, ok := errors.AsType[*domain.Error](err)
	if !ok || e.Code != domain.InvalidRequest || len(id) == 0 {
		return err
	}
	own := *e
	own.Cause = &knownID{id: id, cause: e.Cause}
	return &own
}

// fault is an answer of the SDK that is a JSON-RPC error.
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

// allowedMethods are the HTTP methods of the server's path: a message, and the end of a session.
const allowedMethods = http.MethodPost + ", " + http.MethodDelete

// rejectTransport answers a request that is no message in JSON: 405 for another method than POST, 415 for another
// content type. It returns InvalidRequest if the caller does not accept JSON, and nil for a message.
func (s *Server) rejectTransport(m *message) (*recorder, error) {
	mediaType, _, _ := mime.ParseMediaType(m.request.Header.Get("Content-Type"))
	reject := func(status int, text string) *recorder {
		e := &domain.Error{Code: domain.InvalidRequest, Message: text}
		answer := &recorder{header: http.Header{"Content-Type": {"application/json"}}, status: status}
		answer.body.Write(s.Fault(m.request, domain.AsError(withID(e, m.ID)), m.id))
		return answer
	}
	switch {
	case m.request.Method != http.MethodPost:
		answer := reject(http.StatusMethodNotAllowed, "send each message with POST; the server offers no stream")
		answer.header.Set("Allow", allowedMethods)
		return answer, nil
	case mediaType != "application/json":
		return reject(http.StatusUnsupportedMediaType, "the header Content-Type must be application/json"), nil
	case !acceptsJSON(m.request):
		return nil, &domain.Error{Code: domain.InvalidRequest, Message: "the header Accept, if any, must allow application/json"}
	}
	return nil, nil
}

// acceptsJSON reports whether the header Accept allows JSON; a caller without it accepts everything. The protocol wants
// it to name a stream too, which the server never sends.
func acceptsJSON(r *http.Request) bool {
	values := r.Header.Values("Accept")
	for item := range strings.SplitSeq(strings.Join(values, ","), ",") {
		mediaType, _, _ := strings.Cut(item, ";")
		switch strings.ToLower(strings.TrimSpace(mediaType)) {
		case "application/json", "application/*", "*/*":
			return true
		}
	}
	return len(values) == 0
}

// rejectMethod answers a message of an unknown method: a request with -32601 and its ID, a notification with 202. The
// status of the error is 404 in the newest version of the protocol, and 200 in older ones, in which 404 ends the session.
func rejectMethod(m *message) *recorder {
	answer := &recorder{header: http.Header{}, status: http.StatusAccepted}
	if len(m.ID) == 0 {
		return answer
	}
	answer.header.Set("Content-Type", "application/json")
	answer.status = http.StatusOK
	if namesNewestVersion(m.request) {
		answer.status = http.StatusNotFound
	}
	answer.body.Write(faultOf(m.ID, &jsonrpc.Error{
		Code: jsonrpc.CodeMethodNotFound, Message: fmt.Sprintf("this server has no method %q", m.Method),
	}))
	return answer
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

// explainBadRequest returns the likely reason for which the SDK rejects a message with a valid envelope.
func explainBadRequest(r *http.Request) string {
	switch {
	case r.Header.Get("Last-Event-ID") != "":
		return "the header Last-Event-ID is not accepted: the server offers no stream"
	case r.Header.Get(versionHeader) != "":
		return "the message does not follow version " + r.Header.Get(versionHeader) + " of the protocol, or the server does not support it"
	}
	return "the message does not follow the protocol: check its ID, if it is a request, its parameters, and that it is " +
		"nested at most 1,000 levels deep"
}
