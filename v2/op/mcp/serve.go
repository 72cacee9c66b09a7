package mcp

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"partnerapi/domain"
)

// message is a message of the protocol, and its HTTP request.
type message struct {
	Message
	request *http.Request
	id      string // of the HTTP request
	view    view
}

type messageKey struct{}

// messageOf returns the message whose handler ctx belongs to.
func messageOf(ctx context.Context) *message { return ctx.Value(messageKey{}).(*message) }

const sessionHeader = "Mcp-Session-Id"

// Serve answers a message of an authenticated caller, whose body has been read. A DELETE ends its session, and a
// successful initialize returns the id of a new one. A read-only session stays read-only, as its id is marked. A
// session that this key did not begin, or that was ended, is NotFound. With an error other than InvalidRequest, Serve
// has written nothing.
func (s *Server) Serve(w http.ResponseWriter, r *http.Request, body []byte) error {
	m := &message{request: r, id: w.Header().Get("X-Request-Id")}
	err := s.chargeMessage(m, body)
	if err == nil {
		err = s.serve(w, m)
	}
	if domain.IsCode(err, domain.InvalidRequest) {
		writeJSON(w, http.StatusBadRequest, s.rejection(m, domain.AsError(err)))
	}
	return err
}

// serve is Serve for a message whose envelope is valid, after it was counted.
func (s *Server) serve(w http.ResponseWriter, m *message) error {
	r := m.request
	caller := domain.CallerFrom(r.Context())
	session := r.Header.Get(sessionHeader)
	readOnly := s.ReadOnly || queryFlag(r, "read_only")
	if session != "" {
		sessionReadOnly, ok := s.signer.verify(caller.Key, session)
		if !ok || s.ended.Contains(session) {
			return &domain.Error{Code: domain.NotFound, Message: "this key has no such session; start a new one"}
		}
		readOnly = readOnly || sessionReadOnly
	}
	if r.Method == http.MethodDelete {
		if session == "" {
			return &domain.Error{Code: domain.InvalidRequest, Message: "the header " + sessionHeader + " must contain the ID of the session to end"}
		}
		s.ended.Add(session, struct{}{})
		w.WriteHeader(http.StatusNoContent)
		return nil
	}

	sets, err := s.toolsetsOf(r)
	if err != nil {
		return err
	}
	m.view = view{schemas: queryFlag(r, "schemas"), toolsets: sets, rights: rights{
		read: caller.Can(domain.Read), write: caller.Can(domain.Write), allClients: caller.AllClients, readOnly: readOnly,
	}}
	if m.isUnknown() {
		return rejectMethod(w, m)
	}
	return s.relay(w, m)
}

// chargeMessage parses the envelope of the message, if it is a POST. It counts the message, even a malformed one,
// unless it runs an operation: then the operation's request is counted. The error for a used up budget precedes the one
// for a malformed message.
func (s *Server) chargeMessage(m *message, body []byte) (err error) {
	ctx := m.request.Context()
	if m.request.Method == http.MethodPost {
		err = s.Parse(ctx, len(body), func() (messageErr error) {
			m.Message, messageErr = ParseMessage(body)
			return messageErr
		})
		if rejected, ok := errors.AsType[*jsonrpc.Error](err); ok {
			err = &domain.Error{Code: domain.InvalidRequest, Message: rejected.Message, Cause: rejected}
		}
	}
	if err != nil || !runsOperation(m.Method) {
		if limitErr := s.CountMessage(ctx); limitErr != nil {
			return limitErr
		}
	}
	return err
}

// relay lets the SDK answer a message, and writes that answer with the message's ID. It bounds how many large messages
// are parsed at a time, except those that run an operation: the operation's own request waits for the same bound.
func (s *Server) relay(w http.ResponseWriter, m *message) error {
	answer := newRecorder()
	if runsOperation(m.Method) {
		s.serveBySDK(answer, m)
	} else if err := s.Parse(m.request.Context(), len(m.text), func() error {
		s.serveBySDK(answer, m)
		return nil
	}); err != nil {
		return err
	}

	isJSON := answer.header.Get("Content-Type") == "application/json"
	switch {
	case !isJSON && answer.status < http.StatusBadRequest: // to a notification
		w.WriteHeader(answer.status)
		return nil
	case !isJSON:
		e := &domain.Error{Code: domain.InvalidRequest, Message: explainRefusal(m.request, answer.status, answer.body.String())}
		switch answer.status {
		case http.StatusBadRequest:
			return e
		case http.StatusMethodNotAllowed:
			w.Header().Set("Allow", allowedMethods)
		}
		writeJSON(w, answer.status, s.rejection(m, e))
		return nil
	}
	body, err := s.adopt(w, m, answer.body.Bytes())
	if err == nil {
		writeJSON(w, answer.status, body)
	}
	return err
}

// adopt returns the SDK's answer with the message's ID. It rewords the error for parameters that the SDK cannot decode,
// which names Go types. It gives the response to a successful initialize a session.
func (s *Server) adopt(w http.ResponseWriter, m *message, body []byte) ([]byte, error) {
	var r response
	if err := json.Unmarshal(body, &r, asSent); err != nil {
		return nil, fmt.Errorf("the SDK's response to %s: %w", m.Method, err)
	}
	switch {
	case r.Error != nil && strings.HasPrefix(r.Error.Message, "handling '"):
		r.Error.Code, r.Error.Message = jsonrpc.CodeInvalidParams, "the parameters of the message do not follow the protocol"
	case r.Error == nil && m.Method == "initialize":
		w.Header().Set(sessionHeader, s.signer.newID(domain.CallerFrom(m.request.Context()).Key, m.view.readOnly))
	}
	r.ID = m.ID
	return r.encode()
}

// serveBySDK lets the SDK answer a message. Its context does not end with the request: an operation does, and its
// response must still be written after that. The SDK wants a caller to accept a stream, though it answers in JSON.
func (s *Server) serveBySDK(answer *recorder, m *message) {
	ctx := context.WithoutCancel(m.request.Context())
	request := m.request.WithContext(context.WithValue(ctx, messageKey{}, m))
	request.Header = maps.Clone(request.Header)
	request.Header["Accept"] = []string{"*/*"}
	if accepted := m.request.Header["Accept"]; len(accepted) > 0 {
		request.Header["Accept"] = append(slices.Clone(accepted), "text/event-stream")
	}
	request.Body = io.NopCloser(bytes.NewReader(m.forSDK()))
	s.handler.ServeHTTP(answer, request)
}

// queryFlag reports whether a query parameter of the request is a text that strconv.ParseBool reads as true.
func queryFlag(r *http.Request, name string) bool {
	value, err := strconv.ParseBool(r.URL.Query().Get(name))
	return err == nil && value
}

// runsOperation reports whether a message of the method calls a tool or reads a resource.
func runsOperation(method string) bool { return method == "tools/call" || method == "resources/read" }

// handle wraps the SDK's handler of messages. Of the tools, it lists those of the message's view, in its form: others
// may still be called, so that the operation says why it rejects the call. It sets the code of missing resources. A
// panic, and an operation that cannot be run, become an internal error: the edge cannot recover in a goroutine of the
// SDK.
func (s *Server) handle(next sdk.MethodHandler) sdk.MethodHandler {
	return func(ctx context.Context, method string, r sdk.Request) (out sdk.Result, err error) {
		fail := func(reason any) {
			s.Log.ErrorContext(ctx, "mcp: message failed", "method", method, "error", fmt.Sprint(reason), "stack", string(debug.Stack()))
			out, err = nil, &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: "something went wrong on our side"}
		}
		defer func() {
			if p := recover(); p != nil {
				fail(p)
			}
		}()
		out, err = next(ctx, method, r)
		_, isAnswer := errors.AsType[*jsonrpc.Error](err)
		switch m := messageOf(ctx); {
		case err != nil && !isAnswer && runsOperation(method):
			fail(err)
		case method == "resources/read":
			err = adaptResourceError(m, err)
		case method == "tools/list" && err == nil:
			page := out.(*sdk.ListToolsResult)
			page.Tools = s.viewOf(m.view, page.Tools)
		}
		return out, err
	}
}

// sessionSigner signs and verifies session ids.
type sessionSigner struct{ secret []byte }

// newSigner derives the secret of session ids from a secret that has other uses too.
func newSigner(secret []byte) sessionSigner {
	mac := hmac.New(sha256.New, secret)
	mac.Write([]byte("mcp session"))
	return sessionSigner{mac.Sum(nil)}
}

// A session id consists of random bytes, a byte that is 1 for a read-only session, and the authentication code of both.
const (
	uniqueLength  = 16 // bytes
	sessionLength = uniqueLength + 1 + sha256.Size
)

// newID returns the id, in base64, of a new session of a key.
func (s sessionSigner) newID(key domain.KeyID, readOnly bool) string {
	id := make([]byte, uniqueLength+1, sessionLength)
	_, _ = rand.Read(id[:uniqueLength]) // never fails
	if readOnly {
		id[uniqueLength] = 1
	}
	return base64.RawURLEncoding.EncodeToString(append(id, s.mac(key, id)...))
}

// verify reports whether a session is read-only. ok is true only if newID returned the id for this key.
func (s sessionSigner) verify(key domain.KeyID, id string) (readOnly, ok bool) {
	signed, err := base64.RawURLEncoding.Strict().DecodeString(id)
	if err != nil || len(signed) != sessionLength {
		return false, false
	}
	body, mac := signed[:uniqueLength+1], signed[uniqueLength+1:]
	return body[uniqueLength] == 1, hmac.Equal(mac, s.mac(key, body))
}

// mac returns the authentication code of a key and the body of a session id.
func (s sessionSigner) mac(key domain.KeyID, body []byte) []byte {
	mac := hmac.New(sha256.New, s.secret)
	mac.Write(key[:])
	mac.Write(body)
	return mac.Sum(nil)
}
