package mcp

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
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
	session session
	view    view
}

type messageKey struct{}

// messageOf returns the message whose handler ctx belongs to.
func messageOf(ctx context.Context) *message { return ctx.Value(messageKey{}).(*message) }

const sessionHeader = "Mcp-Session-Id"

// Serve answers a message of an authenticated caller, whose body has been read. A DELETE ends its session, and a
// successful initialize returns the id of a new one. A session keeps its limits, which are in its id. A session that this
// key did not begin, or that was ended, is NotFound. With an error other than InvalidRequest, Serve has written nothing.
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
	id := r.Header.Get(sessionHeader)
	if id != "" {
		var ok bool
		if m.session, ok = s.signer.verify(domain.CallerFrom(r.Context()).Key, id); !ok || s.ended.Contains(id) {
			return &domain.Error{Code: domain.NotFound, Message: "this key has no such session; start a new one"}
		}
	}
	if r.Method == http.MethodDelete {
		if id == "" {
			return &domain.Error{Code: domain.InvalidRequest, Message: "the header " + sessionHeader + " must contain the ID of the session to end"}
		}
		s.ended.Add(id, struct{}{})
		w.WriteHeader(http.StatusNoContent)
		return nil
	}

	if err := s.setView(m); err != nil {
		return err
	}
	if m.isUnknown() {
		return rejectMethod(w, m)
	}
	return s.relay(w, m)
}

// setView sets the view of a message, and adds the limits that it asks for to its session. A message that is rejected
// runs no operation, and so is counted as a message.
func (s *Server) setView(m *message) error {
	query, err := parseQuery(m.request)
	if err == nil {
		m.view.selection, err = s.selectionOf(query, m.request.Header)
	}
	if err == nil {
		m.session, err = s.limit(m.request.Context(), query, m.session)
	}
	if err != nil {
		if !runsOperation(m.Method) {
			return err
		}
		return cmp.Or(s.CountMessage(m.request.Context()), err)
	}
	caller := callerOf(m.request.Context(), m.session)
	m.view.schemas = isSet(query, "schemas")
	m.view.rights = rights{
		read: caller.Can(domain.Read), write: caller.Can(domain.Write), allClients: caller.AllClients, readOnly: m.session.readOnly,
	}
	return nil
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
		w.Header().Set(sessionHeader, s.signer.newID(domain.CallerFrom(m.request.Context()).Key, m.session))
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

// parseQuery returns the parameters of a request's query. It returns InvalidRequest for a query that is malformed, or that
// gives an index to a parameter: ignored, it would widen what the caller meant to limit.
func parseQuery(r *http.Request) (url.Values, error) {
	query, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return nil, domain.ErrInvalid("query", "is malformed; percent-encode its special characters")
	}
	for name := range query {
		if base, _, indexed := strings.Cut(name, "["); indexed {
			return nil, domain.ErrInvalid(base, "must be written without brackets")
		}
	}
	return query, nil
}

// isSet reports whether a query parameter is a text that strconv.ParseBool reads as true.
func isSet(query url.Values, name string) bool {
	value, err := strconv.ParseBool(query.Get(name))
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
