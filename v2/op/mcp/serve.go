package mcp

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"runtime/debug"
	"strconv"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"partnerapi/domain"
	"partnerapi/v2/op"
)

// message is the HTTP request that a message came with.
type message struct {
	request  *http.Request
	id       string // of the request
	readOnly bool
}

type messageKey struct{}

// messageOf is the message that the protocol's handlers are called for.
func messageOf(ctx context.Context) *message { return ctx.Value(messageKey{}).(*message) }

const sessionHeader = "Mcp-Session-Id"

// Serve answers a message of ctx's caller, whose key is known by now. The errors
// are those of the edge, for it to render; nothing was written then.
func (s *Server) Serve(w http.ResponseWriter, r *http.Request) error {
	caller := domain.CallerFrom(r.Context())
	session := r.Header.Get(sessionHeader)
	readOnly := s.ReadOnly || asksReadOnly(r)
	if session != "" {
		only, ok := s.sealer.open(caller.Key, session)
		if !ok || s.ended.Contains(session) {
			return &domain.Error{Code: domain.NotFound, Message: "no such session of this key; begin another"}
		}
		readOnly = readOnly || only
	}
	if r.Method == http.MethodDelete && session != "" {
		s.ended.Add(session, struct{}{})
		w.WriteHeader(http.StatusNoContent)
		return nil
	}

	body, err := readBody(w, r)
	if err != nil {
		return err
	}
	v := view{
		read: caller.Can(domain.Read), write: caller.Can(domain.Write), allClients: caller.AllClients, readOnly: readOnly,
	}
	m := &message{id: w.Header().Get("X-Request-Id"), readOnly: readOnly, request: r}
	said := read(body)
	answer, err := s.answer(m, v, said, body)
	if err != nil {
		return err
	}
	if said.Method == "initialize" && answer.status == http.StatusOK {
		answer.header.Set(sessionHeader, s.sealer.seal(caller.Key, readOnly))
	}
	answer.copyTo(w)
	return nil
}

// answer answers a message: a plain call at once, what runs no operation when it
// is its turn, and all but plain calls by the SDK.
func (s *Server) answer(m *message, v view, said incoming, body []byte) (*recorder, error) {
	ctx := m.request.Context()
	if t, arguments := s.plain(m.request, said); t != nil {
		return s.answerPlain(context.WithValue(ctx, messageKey{}, m), t, said.ID, arguments)
	}
	if !runsOperation(said.Method) {
		leave, err := s.Enter(ctx)
		if err != nil {
			return nil, err
		}
		defer leave()
	}
	return s.bySDK(m, v, body), nil
}

// bySDK lets the SDK answer a message. Its handler has the request's values and
// ends when the caller hangs up, but has no deadline: an operation that the
// message runs has its own, and its answer is to be written.
func (s *Server) bySDK(m *message, v view, body []byte) *recorder {
	outer := m.request.Context()
	ctx, cancel := context.WithCancel(context.WithoutCancel(outer))
	defer cancel()
	stop := context.AfterFunc(outer, func() {
		if errors.Is(outer.Err(), context.Canceled) {
			cancel()
		}
	})
	defer stop()

	m.request = m.request.WithContext(ctx)
	inner := m.request.WithContext(context.WithValue(ctx, messageKey{}, m))
	inner.Body = io.NopCloser(bytes.NewReader(body))
	answer := &recorder{header: http.Header{}, status: http.StatusOK}
	s.views[v].ServeHTTP(answer, inner)
	return answer
}

// copyTo writes the answer.
func (r *recorder) copyTo(w http.ResponseWriter) {
	for name, values := range r.header {
		w.Header()[name] = values
	}
	w.Header()["Cache-Control"] = []string{"no-store"}
	if r.body.Len() > 0 {
		w.Header().Set("Content-Length", strconv.Itoa(r.body.Len()))
	}
	w.WriteHeader(r.status)
	_, _ = w.Write(r.body.Bytes()) // an error means that nobody waits
}

func asksReadOnly(r *http.Request) bool {
	asked, err := strconv.ParseBool(r.URL.Query().Get("read_only"))
	return err == nil && asked
}

// readBody reads the message. It is one: the protocol's newer versions have no
// lists of them, which could ask for any number of operations at once.
func readBody(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	if r.Method != http.MethodPost {
		return nil, nil
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, op.MaxBody))
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &tooLarge):
		return nil, &domain.Error{Code: domain.PayloadTooLarge, Message: "the body is larger than 1 MiB"}
	case err != nil:
		return nil, domain.ErrInvalid("body", "could not be read to its end")
	case bytes.HasPrefix(bytes.TrimSpace(body), []byte("[")):
		return nil, domain.ErrInvalid("body", "must be one message: lists of them are not taken")
	}
	return body, nil
}

// runsOperation reports whether messages of a method are requests to the service,
// which wait for their turn themselves.
func runsOperation(method string) bool { return method == "tools/call" || method == "resources/read" }

// guard is around every message: a tool that the session is not shown is called
// too, so that the operation says why not; and a panic is an internal error, as
// the handler runs outside of the edge's own guard.
func (s *Server) guard(next sdk.MethodHandler) sdk.MethodHandler {
	return func(ctx context.Context, method string, r sdk.Request) (out sdk.Result, err error) {
		defer func() {
			if p := recover(); p != nil {
				s.Log.ErrorContext(ctx, "mcp: panic", "method", method, "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
				out, err = nil, &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: "something went wrong on our side"}
			}
		}()
		if call, ok := r.(*sdk.CallToolRequest); ok && call.Params != nil && s.byName[call.Params.Name] != nil {
			return s.call(ctx, call)
		}
		if method == "subscriptions/listen" { // nothing is ever pushed
			return nil, &jsonrpc.Error{Code: jsonrpc.CodeMethodNotFound, Message: "this server pushes nothing"}
		}
		return next(ctx, method, r)
	}
}
