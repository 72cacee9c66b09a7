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
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"partnerapi/domain"
)

// message is a message of the protocol: its HTTP request, and the list that its answer contains.
type message struct {
	request *http.Request
	id      string // of the request
	view    view
	list    []byte // the answer's content or tools, which insertList inserts; nil for the SDK's own
}

type messageKey struct{}

// messageOf returns the message whose handler ctx belongs to.
func messageOf(ctx context.Context) *message { return ctx.Value(messageKey{}).(*message) }

const sessionHeader = "Mcp-Session-Id"

// Serve answers a message of an authenticated caller, whose body has been read. A DELETE ends its session, and a
// successful initialize returns the id of a new one. A read-only session stays read-only, as its id is marked. A
// session that this key did not begin, or that was ended, is NotFound. With an error, Serve has written nothing.
func (s *Server) Serve(w http.ResponseWriter, r *http.Request, body []byte) error {
	method, err := s.chargeMessage(r, body)
	if err != nil {
		return err
	}
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
	if r.Method == http.MethodDelete && session != "" {
		s.ended.Add(session, struct{}{})
		w.WriteHeader(http.StatusNoContent)
		return nil
	}

	sets, err := s.toolsetsOf(r)
	if err != nil {
		return err
	}
	m := &message{request: r, id: w.Header().Get("X-Request-Id"), view: view{schemas: queryFlag(r, "schemas"), toolsets: sets, rights: rights{
		read: caller.Can(domain.Read), write: caller.Can(domain.Write), allClients: caller.AllClients, readOnly: readOnly,
	}}}
	answer, err := s.answer(m, method, body)
	if err != nil {
		return err
	}
	if method == "initialize" && answer.status == http.StatusOK && !answer.isError() {
		answer.header.Set(sessionHeader, s.signer.newID(caller.Key, readOnly))
	}
	answer.copyTo(w)
	return nil
}

// chargeMessage returns the method of the message; empty for a request other than POST. It counts the message, even a
// malformed one, unless it runs an operation: then the operation's request is counted. The error for a used up budget
// precedes the one for a malformed message.
func (s *Server) chargeMessage(r *http.Request, body []byte) (method string, err error) {
	ctx := r.Context()
	if r.Method == http.MethodPost {
		err = s.Parse(ctx, len(body), func() (methodErr error) {
			method, methodErr = methodOf(body)
			return methodErr
		})
	}
	if !runsOperation(method) {
		if limitErr := s.CountMessage(ctx); limitErr != nil {
			return "", limitErr
		}
	}
	return method, err
}

// answer answers a message. It bounds how many large messages are parsed at a time, except those that run an operation:
// the operation's own request waits for the same bound.
func (s *Server) answer(m *message, method string, body []byte) (answer *recorder, err error) {
	switch {
	case m.request.Method != http.MethodPost, runsOperation(method): // only a POST has a message to parse
		answer = s.serveBySDK(m, body)
	default:
		err = s.Parse(m.request.Context(), len(body), func() (listenErr error) {
			if method == listen {
				answer, listenErr = rejectListen(m.request, body)
				return listenErr
			}
			answer = s.serveBySDK(m, body)
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	if answer, err = rewordErrors(m.request, answer); err == nil {
		answer.insertList(m)
	}
	return answer, err
}

// errNoJSON is the Cause of the error for a body that is not a JSON object.
var errNoJSON = errors.New("no JSON")

// methodOf returns the method of a message, and InvalidRequest for a body that is no JSON object. Batches are rejected:
// the protocol's newer versions have none, and a batch could run any number of operations.
func methodOf(body []byte) (string, error) {
	var m struct {
		JSONRPC string `json:"jsonrpc"` // not used: its type is checked
		Method  string `json:"method"`
	}
	switch body = bytes.TrimSpace(body); {
	case len(body) == 0:
		return "", domain.ErrInvalid("body", "must be one message, but is empty")
	case body[0] == '[':
		return "", domain.ErrInvalid("body", "must be one message: lists of them are not taken")
	case json.Unmarshal(body, &m, jsontext.AllowDuplicateNames(true)) != nil: // parseMembers reports those of arguments
		return "", &domain.Error{
			Code: domain.InvalidRequest, Cause: errNoJSON,
			Message: "body must be one message of JSON-RPC 2.0, a JSON object in UTF-8",
		}
	}
	return m.Method, nil
}

// serveBySDK lets the SDK answer a message. It replaces the context of m.request by one without a deadline, which is
// cancelled if the caller disconnects: an operation has a deadline of its own, and its answer must still be written
// after that.
func (s *Server) serveBySDK(m *message, body []byte) *recorder {
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
	request.Body = io.NopCloser(bytes.NewReader(body))
	answer := &recorder{header: http.Header{}, status: http.StatusOK}
	s.handler.ServeHTTP(answer, request)
	return answer
}

// insertList inserts the message's list, if it has one, into the answer in place of the SDK's empty list. The SDK
// encodes each value five times, which takes longer than most operations, so long lists bypass it. A text in the answer
// cannot be mistaken for the empty list, because its quotes are escaped.
func (r *recorder) insertList(m *message) {
	for _, name := range []string{`"content":`, `"tools":`} {
		before, after, found := bytes.Cut(r.body.Bytes(), []byte(name+"[]"))
		if found && m.list != nil {
			r.body = *bytes.NewBuffer(slices.Concat(before, []byte(name), m.list, after))
			return
		}
	}
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

// Origins returns the origins of the service's own pages: of its public URL, and of the address that it listens on. If
// that is loopback or all addresses, they include localhost, 127.0.0.1 and ::1 with its port. An invalid one has none.
func Origins(publicURL, listen string) []string {
	var list []string
	if u, err := url.Parse(publicURL); err == nil && u.Host != "" {
		list = append(list, originOf(u))
	}
	host, port, err := net.SplitHostPort(listen)
	if err != nil {
		return list
	}
	hosts := []string{host}
	ip, _ := netip.ParseAddr(host) // a name has the zero Addr, which is neither loopback nor unspecified
	listensOnAll := host == "" || ip.IsUnspecified()
	if listensOnAll || host == "localhost" || ip.IsLoopback() {
		hosts = append(hosts, "localhost", "127.0.0.1", "::1")
	}
	for _, host := range hosts {
		if host != "" {
			list = append(list, originOf(&url.URL{Scheme: "http", Host: net.JoinHostPort(host, port)}))
		}
	}
	return list
}

// originOf returns the origin of an address as browsers write it: in lower case, without the scheme's default port.
func originOf(u *url.URL) string {
	scheme, host := strings.ToLower(u.Scheme), strings.ToLower(u.Host)
	for name, port := range map[string]string{"http": ":80", "https": ":443"} {
		if scheme == name {
			host = strings.TrimSuffix(host, port)
		}
	}
	return scheme + "://" + host
}

// CheckOrigin returns Forbidden for a request from a script of a page whose origin is not in Config.Origins. Programs
// other than browsers send no origin.
func (s *Server) CheckOrigin(r *http.Request) error {
	for _, origin := range r.Header.Values("Origin") {
		u, err := url.Parse(origin)
		if err != nil || u.Host == "" || !s.origins[originOf(u)] {
			return domain.ErrForbidden("pages of another origin may not use this server")
		}
	}
	return nil
}
