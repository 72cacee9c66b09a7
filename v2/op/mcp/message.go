package mcp

import (
	"bytes"
	"errors"
	"io"
	"strings"

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

// ParseMessage parses the envelope of a message. Every error is a *jsonrpc.Error, for a text that is no JSON, a batch,
// or an envelope that breaks JSON-RPC 2.0. With the last, the message has its ID, if that is valid. Batches are rejected
// because newer protocol versions have none, and because a batch could run any number of operations.
//
// A byte order mark at the start is ignored, as in the bodies of operations.
//
// The SDK decodes an ID as a float64, which changes large numbers and drops fractions, so IDs do not pass through it.
func ParseMessage(text []byte) (Message, error) {
	text = bytes.TrimPrefix(text, op.ByteOrderMark)
	m := Message{text: text}
	dec := jsontext.NewDecoder(bytes.NewReader(text), jsontext.AllowDuplicateNames(true)) // parseMembers reports those of arguments
	kind := dec.PeekKind()
	var faults []string
	if kind == '{' {
		if err := m.readMembers(dec, &faults); err != nil {
			return Message{}, errNoJSON
		}
	} else if _, err := dec.ReadValue(); err != nil {
		return Message{}, errNoJSON
	}
	if _, err := dec.ReadToken(); !errors.Is(err, io.EOF) {
		return Message{}, errNoJSON
	}
	switch {
	case kind == '[':
		return m, invalidMessage("batches are not accepted; send each message in a request (over stdio: a line) of its own")
	case kind != '{':
		return m, invalidMessage("the message must be a JSON object")
	case len(faults) > 0:
		return m, invalidMessage(faults[0])
	}
	return m, nil
}

// errNoJSON is the error for a text that is not JSON.
var errNoJSON = &jsonrpc.Error{
	Code: jsonrpc.CodeParseError, Message: "the message must be one JSON-RPC 2.0 object in UTF-8, nested at most 1,000 levels deep",
}

// invalidMessage returns the error for JSON that is not one JSON-RPC message.
func invalidMessage(text string) error {
	return &jsonrpc.Error{Code: jsonrpc.CodeInvalidRequest, Message: text}
}

// readMembers reads the members of the message, and adds what is wrong with the envelope to faults. An error means that
// the text is not JSON.
func (m *Message) readMembers(dec *jsontext.Decoder, faults *[]string) error {
	given := map[string]bool{}
	err := eachMember(dec, func(name string, value jsontext.Value) {
		fault := m.set(name, value, int(dec.InputOffset())-len(value))
		if given[name] && (name == "jsonrpc" || name == "method" || name == "id") {
			fault = name + " must be given once"
		}
		if name == "id" && fault != "" {
			m.ID = nil
		}
		if fault != "" {
			*faults = append(*faults, fault)
		}
		given[name] = true
	})
	if err != nil {
		return err
	}
	if !given["jsonrpc"] {
		*faults = append(*faults, wrongVersion)
	}
	if !given["method"] && !given["result"] && !given["error"] {
		*faults = append(*faults, "method is required")
	}
	return nil
}

// eachMember reads the object that is the next value of dec, and calls read for each member. The value is valid until the
// next read. An error means that the object is not valid JSON.
func eachMember(dec *jsontext.Decoder, read func(name string, value jsontext.Value)) error {
	if _, err := dec.ReadToken(); err != nil { // {
		return err
	}
	for dec.PeekKind() != '}' {
		token, err := dec.ReadToken()
		if err != nil {
			return err
		}
		name := token.String()
		value, err := dec.ReadValue()
		if err != nil {
			return err
		}
		read(name, value)
	}
	_, err := dec.ReadToken() // }
	return err
}

// wrongVersion is the fault of a message that is not of JSON-RPC 2.0.
const wrongVersion = `jsonrpc must be "2.0"`

// set sets a member of the envelope, whose value starts at the position at. It returns what is wrong with the value.
func (m *Message) set(name string, value jsontext.Value, at int) (fault string) {
	text, err := jsontext.AppendUnquote(nil, value)
	isString := err == nil && value.Kind() == '"'
	switch {
	case name == "jsonrpc" && string(text) != "2.0":
		return wrongVersion
	case name == "method" && !isString:
		return "method must be a string"
	case name == "method":
		m.Method = string(text)
	case name == "id" && !isString && !isInteger(value):
		return "id must be a string or an integer; omit it in a notification"
	case name == "id":
		m.ID, m.idAt = value.Clone(), at
	}
	return ""
}

// isInteger reports whether a JSON value is a number that is written without a fraction, other than .0, and without an
// exponent. It may be of any size.
func isInteger(value jsontext.Value) bool {
	whole, fraction, _ := strings.Cut(string(value), ".")
	return value.Kind() == '0' && !strings.ContainsAny(whole, "eE") && strings.Trim(fraction, "0") == ""
}

// standInID is the ID of every request to the SDK, in place of the caller's.
const standInID = "1"

// forSDK returns the text of the message with standInID as its ID, if it has one.
func (m *Message) forSDK() []byte {
	if len(m.ID) == 0 {
		return m.text
	}
	out := make([]byte, 0, len(m.text)-len(m.ID)+len(standInID))
	out = append(append(out, m.text[:m.idAt]...), standInID...)
	return append(out, m.text[m.idAt+len(m.ID):]...)
}

// The start of an answer of the SDK to a request, and what comes before and after the caller's ID instead.
const (
	sdkHead    = headBefore + standInID + headAfter
	headBefore = `{"jsonrpc":"2.0","id":`
	headAfter  = `,`
)

// requestMethods are the methods of requests that the server knows. Others, such as subscriptions/listen, for which the
// SDK would keep a stream open, are answered by rejectMethod: the server pushes nothing and completes nothing.
var requestMethods = map[string]bool{
	"initialize": true, "ping": true, "server/discover": true, "logging/setLevel": true,
	"tools/list": true, "tools/call": true, "prompts/list": true, "prompts/get": true,
	"resources/list": true, "resources/templates/list": true, "resources/read": true,
}

// notificationMethods are the methods of notifications that the SDK knows. Others are accepted and ignored, as JSON-RPC
// allows no answer to a notification.
var notificationMethods = map[string]bool{
	"notifications/cancelled": true, "notifications/initialized": true, "notifications/progress": true,
	"notifications/roots/list_changed": true,
}

// isUnknown reports whether the message is a request, or a notification, of a method that the server does not know.
func (m *Message) isUnknown() bool {
	if m.Method == "" || requestMethods[m.Method] {
		return false
	}
	return len(m.ID) > 0 || !notificationMethods[m.Method]
}
