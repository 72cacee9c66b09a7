package mcp

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"runtime/debug"
	"slices"
	"strconv"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"partnerapi/domain"
)

// message is the HTTP request that a message came with, and what its answer shows.
type message struct {
	request *http.Request
	id      string // of the request
	view    view
	list    []byte // what stands in place of the answer's, which the SDK is given empty
}

type messageKey struct{}

// messageOf is the message that the protocol's handlers are called for.
func messageOf(ctx context.Context) *message { return ctx.Value(messageKey{}).(*message) }

const sessionHeader = "Mcp-Session-Id"

// Serve answers a message of the caller, whose key is known by now and whose turn it
// is. The errors are those of the edge, for it to render; nothing was written then.
func (s *Server) Serve(w http.ResponseWriter, r *http.Request, body []byte) error {
	method, err := s.counted(r, body)
	if err != nil {
		return err
	}
	caller := domain.CallerFrom(r.Context())
	session := r.Header.Get(sessionHeader)
	readOnly := s.ReadOnly || asks(r, "read_only")
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

	sets, err := s.toolsetsOf(r)
	if err != nil {
		return err
	}
	m := &message{request: r, id: w.Header().Get("X-Request-Id"), view: view{schemas: asks(r, "schemas"), toolsets: sets, rights: rights{
		read: caller.Can(domain.Read), write: caller.Can(domain.Write), allClients: caller.AllClients, readOnly: readOnly,
	}}}
	answer, err := s.answer(m, method, body)
	if err != nil {
		return err
	}
	if method == "initialize" && answer.status == http.StatusOK && !answer.isFault() {
		answer.header.Set(sessionHeader, s.sealer.seal(caller.Key, readOnly))
	}
	answer.copyTo(w)
	return nil
}

// counted is the method of the message that a request has, if any. What runs no operation
// is counted here, also what is no message; what does is counted with the operation.
func (s *Server) counted(r *http.Request, body []byte) (method string, err error) {
	ctx := r.Context()
	if r.Method == http.MethodPost {
		err = s.Parse(ctx, len(body), func() (err error) {
			method, err = methodOf(body)
			return err
		})
	}
	if !runsOperation(method) {
		if full := s.CountMessage(ctx); full != nil {
			return "", full
		}
	}
	return method, err
}

// answer answers a message. Large messages are read into values by few at a time, but
// where they run an operation, which waits for others.
func (s *Server) answer(m *message, method string, body []byte) (answer *recorder, err error) {
	switch {
	case m.request.Method != http.MethodPost, runsOperation(method):
		answer = s.bySDK(m, body)
	default:
		err = s.Parse(m.request.Context(), len(body), func() (err error) {
			if method == listen {
				answer, err = refuseListen(m.request, body)
				return err
			}
			answer = s.bySDK(m, body)
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	if answer, err = inOurWords(m.request, answer); err == nil {
		answer.fill(m)
	}
	return answer, err
}

// errNoJSON is the cause of the refusal of a body that is no JSON.
var errNoJSON = errors.New("no JSON")

// methodOf is the method of a message. It is one: the protocol's newer versions have no
// lists of them, which could ask for any number of operations at once.
func methodOf(body []byte) (string, error) {
	var m struct {
		JSONRPC string `json:"jsonrpc"`
		Method  string `json:"method"`
	}
	switch body = bytes.TrimSpace(body); {
	case len(body) == 0:
		return "", domain.ErrInvalid("body", "must be one message, but is empty")
	case body[0] == '[':
		return "", domain.ErrInvalid("body", "must be one message: lists of them are not taken")
	case json.Unmarshal(body, &m, jsontext.AllowDuplicateNames(true)) != nil:
		return "", &domain.Error{
			Code: domain.InvalidRequest, Cause: errNoJSON,
			Message: "body must be one message of JSON-RPC 2.0, a JSON object in UTF-8",
		}
	}
	return m.Method, nil
}

// bySDK lets the SDK answer a message. Its handler has the request's values and
// ends when the caller hangs up, but has no deadline: an operation that the
// message runs has its own, and its answer is to be written.
func (s *Server) bySDK(m *message, body []byte) *recorder {
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
	s.handler.ServeHTTP(answer, inner)
	return answer
}

// fill puts a message's list into the answer, where an empty one is. The SDK encodes what
// it is given five times over, which takes longer than most operations; so long lists do
// not pass through it. No text can be taken for a list: the quotes within it are escaped.
func (r *recorder) fill(m *message) {
	for _, name := range []string{`"content":`, `"tools":`} {
		before, after, found := bytes.Cut(r.body.Bytes(), []byte(name+"[]"))
		if found && m.list != nil {
			r.body = *bytes.NewBuffer(slices.Concat(before, []byte(name), m.list, after))
			return
		}
	}
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
	_, _ = w.Write(r.body.Bytes()) // an error means that the client hung up
}

// asks reports whether a parameter of a message's address is true.
func asks(r *http.Request, name string) bool {
	asked, err := strconv.ParseBool(r.URL.Query().Get(name))
	return err == nil && asked
}

// runsOperation reports whether messages of a method are requests to the service.
func runsOperation(method string) bool { return method == "tools/call" || method == "resources/read" }

// guard is around every message: calls and lists of tools are answered without the SDK,
// which only takes and frames them. A tool that the session is not shown is called too, so
// that the operation says why not. A panic is an internal error, as the handler runs
// outside of the edge's own guard.
func (s *Server) guard(next sdk.MethodHandler) sdk.MethodHandler {
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
			return out, resourceCode(r, err)
		}
		return next(ctx, method, r)
	}
}

// listTools lets the SDK frame a page of tools, whose cursor is the name of its last tool.
func (s *Server) listTools(ctx context.Context, next sdk.MethodHandler, r *sdk.ListToolsRequest) (sdk.Result, error) {
	after := ""
	if r.Params != nil {
		after, r.Params.Cursor = r.Params.Cursor, ""
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
