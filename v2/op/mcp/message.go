package mcp

import (
	"bytes"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"partnerapi/v2/op"
)

// Message is the envelope of a JSON-RPC message. The rest of the message is not decoded.
type Message struct {
	// Method is empty for a response.
	Method string
	// ID is the JSON text of the ID, exactly as sent; empty for a notification.
	ID jsontext.Value
	// text is the message, in which ID starts at idAt.
	text []byte
	idAt int
}

// envelope is the decoded form of a Message.
type envelope struct {
	Version member `json:"jsonrpc"`
	Method  member `json:"method"`
	ID      member `json:"id"`
	Result  member `json:"result"`
	Error   member `json:"error"`
}

// member is a member of an envelope: how often it was given, its last value, and where in the text that starts.
type member struct {
	count int
	value jsontext.Value
	at    int
}

// UnmarshalJSONFrom reads a value of the member.
func (m *member) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	value, err := dec.ReadValue()
	*m = member{count: m.count + 1, value: value.Clone(), at: int(dec.InputOffset()) - len(value)}
	return err
}

// text returns the text of a JSON string, and whether the member is one.
func (m member) text() (text string, isString bool) {
	if m.value.Kind() != '"' {
		return "", false
	}
	unquoted, err := jsontext.AppendUnquote(nil, m.value)
	return string(unquoted), err == nil
}

// asSent are the options for JSON that is passed on as it is: addArgument reports the duplicates in arguments.
var asSent = json.JoinOptions(jsontext.AllowDuplicateNames(true), jsontext.PreserveRawStrings(true))

// ParseMessage parses the envelope of a message. Every error is a *jsonrpc.Error, for a text that is no JSON, a batch,
// or an envelope that breaks JSON-RPC 2.0. With the last, the message has its ID, if that is valid. Batches are rejected
// because newer protocol versions have none, and because a batch could run any number of operations.
//
// A byte order mark at the start is ignored, as in the bodies of operations.
func ParseMessage(text []byte) (Message, error) {
	m := Message{text: bytes.TrimPrefix(text, op.ByteOrderMark)}
	kind := jsontext.Value(m.text).Kind()
	if !jsontext.Value(m.text).IsValid(asSent) {
		return Message{}, &jsonrpc.Error{
			Code: jsonrpc.CodeParseError, Message: "the message must be one JSON-RPC 2.0 object in UTF-8, nested at most 1,000 levels deep",
		}
	}
	var e envelope
	fault := "the message must be a JSON object"
	switch kind {
	case '[':
		fault = "batches are not accepted; send each message in its own request (over stdio: on its own line)"
	case '{':
		_ = json.Unmarshal(m.text, &e, asSent) // never fails for valid JSON
		fault = m.set(e)
	}
	if fault != "" {
		return m, &jsonrpc.Error{Code: jsonrpc.CodeInvalidRequest, Message: fault}
	}
	return m, nil
}

// set sets the method, and the ID if it is valid. It returns what is wrong with the envelope.
func (m *Message) set(e envelope) (fault string) {
	version, _ := e.Version.text()
	method, isMethod := e.Method.text()
	_, isID := e.ID.text()
	if isID = e.ID.count == 1 && (isID || isInteger(e.ID.value)); isID {
		m.ID, m.idAt = e.ID.value, e.ID.at
	}
	m.Method = method
	switch {
	case version != "2.0":
		return `jsonrpc must be "2.0"`
	case e.ID.count == 1 && !isID:
		return "id must be a string or an integer; omit it in a notification"
	case e.Version.count > 1:
		return "jsonrpc must be given once"
	case e.Method.count > 1:
		return "method must be given once"
	case e.ID.count > 1:
		return "id must be given once"
	case e.Method.count == 1 && !isMethod:
		return "method must be a string"
	case e.Method.count+e.Result.count+e.Error.count == 0:
		return "method is required"
	}
	return ""
}

// isInteger reports whether a JSON value is a number that is written without a fraction, other than .0, and without an
// exponent. It may be of any size.
func isInteger(value jsontext.Value) bool {
	whole, fraction, _ := strings.Cut(string(value), ".")
	return value.Kind() == '0' && !strings.ContainsAny(whole, "eE") && strings.Trim(fraction, "0") == ""
}

// forSDK returns the text of the message with the ID 1, if it has one. The SDK decodes an ID as a float64, which changes
// large numbers and drops fractions, so IDs do not pass through it.
func (m *Message) forSDK() []byte {
	if len(m.ID) == 0 {
		return m.text
	}
	return slices.Concat(m.text[:m.idAt], []byte("1"), m.text[m.idAt+len(m.ID):])
}

// methods are those that the server knows. Others, such as subscriptions/listen, for which the SDK would keep a stream
// open, are rejected by rejectMethod: the server pushes nothing and completes nothing.
var methods = []string{
	"initialize", "ping", "server/discover", "logging/setLevel", "tools/list", "tools/call", "prompts/list", "prompts/get",
	"resources/list", "resources/templates/list", "resources/read",
	"notifications/cancelled", "notifications/initialized", "notifications/progress", "notifications/roots/list_changed",
}

// isUnknown reports whether the message is a request, or a notification, of a method that the server does not know.
func (m *Message) isUnknown() bool {
	isNotification := strings.HasPrefix(m.Method, "notifications/")
	return m.Method != "" && !(slices.Contains(methods, m.Method) && (len(m.ID) == 0 || !isNotification))
}
