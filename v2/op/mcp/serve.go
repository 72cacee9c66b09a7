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

	"github.com/go-json-experiment/json"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"partnerapi/domain"
)

// message is a message of the protocol: its HTTP request, and the list that its answer contains.
type message struct {
	Message
	request *http.Request
	id      string // of the HTTP request
	view    view
	list    []byte // the answer's content or tools, which complete inserts; nil for the SDK's own
}

type messageKey struct{}

// messageOf returns the message whose handler ctx belongs to.
func messageOf(ctx context.Context) *message { return ctx.Value(messageKey{}).(*message) }

const sessionHeader = "Mcp-Session-Id"

// Serve answers a message of an authenticated caller, whose body has been read. A DELETE ends its session, and a
// successful initialize returns the id of a new one. A read-only session stays read-only, as its id is marked. A
// session that this key did not begin, or that was ended, is NotFound. With an error, Serve has written nothing.
func (s *Server) Serve(w http.ResponseWriter, r *http.Request, body []byte) error {
	m := &message{request: r, id: w.Header().Get("X-Request-Id")}
	err := s.chargeMessage(m, body)
	if err == nil {
		err = s.serve(w, m)
	}
	return withID(err, m.ID)
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
			return &domain.Error{Code: domain.NotFound, Message: "no such session of this key; begin another"}
		}
		readOnly = readOnly || sessionReadOnly
	}
	if r.Method == http.MethodDelete {
		if session == "" {
			return &domain.Error{Code: domain.InvalidRequest, Message: "the header " + sessionHeader + " must name the session to end"}
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
	answer, err := s.answer(m)
	if err != nil {
		return err
	}
	if m.Method == "initialize" && answer.status == http.StatusOK && !answer.isError() {
		answer.header.Set(sessionHeader, s.signer.newID(caller.Key, readOnly))
	}
	answer.copyTo(w)
	return nil
}

// chargeMessage parses the envelope of the message, if it is a POST. It counts the message, even a malformed one, unless
// it runs an operation: then the operation's request is counted. The error for a used up budget precedes the one for a
// malformed message.
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

// answer answers a message. It bounds how many large messages are parsed at a time, except those that run an operation:
// the operation's own request waits for the same bound.
func (s *Server) answer(m *message) (answer *recorder, err error) {
	if answer, err := s.rejectTransport(m); answer != nil || err != nil {
		return answer, err
	}
	switch {
	case m.isUnknown():
		return rejectMethod(m), nil
	case runsOperation(m.Method):
		answer = s.serveBySDK(m)
	default:
		err = s.Parse(m.request.Context(), len(m.text), func() error {
			answer = s.serveBySDK(m)
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	if answer, err = rewordErrors(m.request, answer); err == nil {
		answer.complete(m)
	}
	return answer, err
}

// serveBySDK lets the SDK answer a message. It replaces the context of m.request by one without a deadline, which is
// cancelled if the caller disconnects: an operation has a deadline of its own, and its answer must still be written
// after that. The SDK wants to be asked for a stream too, though it answers in JSON.
func (s *Server) serveBySDK(m *message) *recorder {
	requestCtx := m.request.Context()
	ctx, cancel := context.WithCancel(context.WithoutCancel(requestCtx))
	defer cancel()
	stop := context.AfterFunc(requestCtx, func() {
		if errors.Is(requestCtx.Err(), context.Canceled) {
			cancel()
		}
	})
	defer stop()

	m.request = m.request.WithContext(ctx)
	request := m.request.WithContext(context.WithValue(ctx, messageKey{}, m))
	request.Header = maps.Clone(request.Header)
	request.Header["Accept"] = []string{"application/json, text/event-stream"}
	request.Body = io.NopCloser(bytes.NewReader(m.forSDK()))
	answer := &recorder{header: http.Header{}, status: http.StatusOK}
	s.handler.ServeHTTP(answer, request)
	return answer
}

// complete puts the message's ID, and its list if it has one, into the answer of the SDK, in place of standInID and the
// empty list. The SDK encodes each value five times, which takes longer than most operations, so long lists bypass it. A
// text in the answer cannot be mistaken for the empty list, because its quotes are escaped. In an error, which may name
// what headers contain, invisible characters are escaped.
func (r *recorder) complete(m *message) {
	rest, found := bytes.CutPrefix(r.body.Bytes(), []byte(sdkHead))
	if !found {
		return
	}
	if bytes.HasPrefix(rest, []byte(`"error":`)) {
		rest = escapeInvisible(rest)
	}
	parts := [][]byte{[]byte(headBefore), m.ID, []byte(headAfter), rest}
	for _, name := range []string{`"content":`, `"tools":`} {
		before, after, found := bytes.Cut(rest, []byte(name+"[]"))
		if found && m.list != nil {
			parts = append(parts[:3], before, []byte(name), m.list, after)
			break
		}
	}
	r.body = *bytes.NewBuffer(slices.Concat(parts...))
}

// copyTo writes the recorded response to w, as not to be cached.
func (r *recorder) copyTo(w http.ResponseWriter) {
	for name, values := range r.header {
		w.Header()[name] = values
	}
	w.Header()["Cache-Control"] = []string{"no-store"}
	if r.body.Len() > 0 {
		w.Header().Set("Content-Length", strconv.Itoa(r.body.Len()))
	}
	w.WriteHeader(r.status)
	_, _ = w.Write(r.body.Bytes()) // an error means that the client hung up
}

// queryFlag reports whether a query parameter of the request is a text that strconv.ParseBool reads as true.
func queryFlag(r *http.Request, name string) bool {
	value, err := strconv.ParseBool(r.URL.Query().Get(name))
	return err == nil && value
}

// runsOperation reports whether a message of the method calls a tool or reads a resource.
func runsOperation(method string) bool { return method == "tools/call" || method == "resources/read" }

// handle wraps the SDK's handler of messages: it answers calls of known tools and lists of tools itself, and sets the
// code of missing resources. A tool that the session does not list may still be called, so that the operation says why
// it rejects the call. A panic becomes an internal error, as the edge cannot recover in a goroutine of the SDK.
func (s *Server) handle(next sdk.MethodHandler) sdk.MethodHandler {
	return func(ctx context.Context, method string, r sdk.Request) (out sdk.Result, err error) {
		defer func() {
			if p := recover(); p != nil {
				s.Log.ErrorContext(ctx, "mcp: panic", "method", method, "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
				out, err = nil, &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: "something went wrong on our side"}
			}
		}()
		switch r := r.(type) {
		case *sdk.CallToolRequest:
			if r.Params != nil && s.byName[r.Params.Name] != nil {
				return s.call(ctx, s.byName[r.Params.Name], r)
			}
		case *sdk.ListToolsRequest:
			return s.listTools(ctx, next, r)
		case *sdk.ReadResourceRequest:
			out, err = next(ctx, method, r)
			return out, adaptResourceError(r, err)
		}
		return next(ctx, method, r)
	}
}

// listTools answers tools/list. The SDK's result lists no tools: insertList later inserts the page of them, which
// listTools leaves in m.list. A cursor is the name of the last tool before a page; empty for the first.
func (s *Server) listTools(ctx context.Context, next sdk.MethodHandler, r *sdk.ListToolsRequest) (sdk.Result, error) {
	after := ""
	if r.Params != nil {
		after, r.Params.Cursor = r.Params.Cursor, "" // to the SDK it would be malformed
	}
	if after != "" && s.byName[after] == nil {
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "cursor is none of tools/list"}
	}
	m := messageOf(ctx)
	out, err := next(ctx, "tools/list", r)
	if page, ok := out.(*sdk.ListToolsResult); ok && err == nil {
		m.list, page.NextCursor = s.toolsOf(m.view, after)
	}
	return out, err
}

// newestVersion is the protocol version without sessions: results are marked complete, and each request names it.
const newestVersion = "2026-07-28"

const versionHeader = "Mcp-Protocol-Version"

// usesNewestVersion reports whether a message, which has an SDK session of its own, uses newestVersion or a later one.
func usesNewestVersion(session *sdk.ServerSession) bool {
	params := session.InitializeParams()
	return params != nil && params.ProtocolVersion >= newestVersion
}

// namesNewestVersion reports whether a request's version header, which is a date, is newestVersion or later.
func namesNewestVersion(r *http.Request) bool { return r.Header.Get(versionHeader) >= newestVersion }

// completeResult is an empty tool result that is marked complete. The SDK marks the results of its own handlers, but
// exports no field for the mark.
var completeResult = func() (out sdk.CallToolResult) {
	if err := json.Unmarshal([]byte(`{"resultType":"complete","content":[]}`), &out); err != nil {
		panic(err)
	}
	return out
}()

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
