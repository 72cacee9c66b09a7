package mcp

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"partnerapi/domain"
	"partnerapi/v2/op"
)

// call runs a tool and returns its result; it is the handler of all tools. An error response of the operation is a result
// with IsError. With schemas, a body of success is structured content too; otherwise a page is in the compact form.
func (s *Server) call(ctx context.Context, t *tool, arguments []byte) (*sdk.CallToolResult, error) {
	structured := messageOf(ctx).view.schemas
	p := t.parseArguments(arguments, structured)
	answer, err := s.invoke(ctx, t, p)
	if err != nil {
		return nil, err
	}
	text, out := answer.body.Bytes(), &sdk.CallToolResult{}
	switch {
	case answer.status == http.StatusNoContent:
		text = []byte(noAnswer)
	case answer.status >= http.StatusBadRequest:
		out.IsError = true
	case structured:
		out.StructuredContent = json.RawMessage(text)
	default:
		if text, err = t.formatCompact(text, p.fields); err != nil {
			return nil, err
		}
	}
	out.Content = []sdk.Content{&sdk.TextContent{Text: string(text)}}
	return out, nil
}

// noAnswer is the text of a result without a body.
const noAnswer = "Done. This operation returns no content."

// invoke converts a call to an HTTP request and serves that as if the message's caller had sent it. It returns the
// response with its invisible characters escaped.
func (s *Server) invoke(ctx context.Context, t *tool, p *callParts) (*recorder, error) {
	m := messageOf(ctx)
	request, err := t.request(m, s.Prefix, p)
	if err != nil {
		return nil, err
	}
	request.RemoteAddr, request.Host, request.TLS = m.request.RemoteAddr, m.request.Host, m.request.TLS
	for _, name := range []string{"X-Api-Key", "User-Agent", "X-Forwarded-For"} {
		if values := m.request.Header[name]; values != nil {
			request.Header[name] = values
		}
	}
	request.Header.Set("X-Request-Id", m.id)
	answer := newRecorder()
	s.Handler.ServeHTTP(answer, request)
	answer.body = *bytes.NewBuffer(escapeInvisible(answer.body.Bytes()))
	return answer, nil
}

// recorder is a ResponseWriter that keeps the response.
type recorder struct {
	header  http.Header
	status  int
	written bool
	body    bytes.Buffer
}

func newRecorder() *recorder { return &recorder{header: http.Header{}, status: http.StatusOK} }

func (r *recorder) Header() http.Header { return r.header }

// WriteHeader keeps the first status.
func (r *recorder) WriteHeader(status int) {
	if !r.written {
		r.status, r.written = status, true
	}
}

func (r *recorder) Write(p []byte) (int, error) {
	r.written = true
	return r.body.Write(p)
}

// request returns the HTTP request of a call in a message. Faults of arguments are passed in the request's context
// (op.WithFaults); the operation reports them with its own. Its context has the limits of the
// session.
func (t *tool) request(m *message, prefix string, p *callParts) (*http.Request, error) {
	target := prefix + t.path(p)
	if query := p.query.Encode(); query != "" {
		target += "?" + query
	}

	var body io.Reader
	if t.operation.Input().Body != nil {
		body = strings.NewReader("{" + p.body.String() + "}")
	}
	ctx := m.request.Context()
	if len(p.faults) > 0 {
		ctx = op.WithFaults(ctx, p.faults)
	}
	if m.session.readOnly {
		ctx = op.WithReadOnly(ctx)
	}
	if !m.session.only.IsZero() {
		ctx = domain.WithOnly(ctx, m.session.only)
	}

	request, err := http.NewRequestWithContext(ctx, t.operation.Meta().Method, target, body)
	if err != nil {
		return nil, fmt.Errorf("the request of %s: %w", t.Name, err)
	}
	if request.Body == nil {
		request.Body = http.NoBody
	} else {
		request.Header.Set("Content-Type", "application/json")
	}

	if key := p.header[idempotencyKey]; key != "" {
		request.Header.Set("Idempotency-Key", key)
	}
	request.RequestURI = target // as in any request that a server receives
	return request, nil
}

// path returns the path of the request. A path parameter that is missing or blank is a fault, as is one that is no text
// (setParameter). All of these are written as -, which is no valid id.
func (t *tool) path(p *callParts) string {
	return op.ReplaceParams(t.operation.Meta().Path, func(name string) string {
		text, isText := p.path[name] // if given but no text, setParameter added a fault
		switch {
		case !p.given[name]:
			p.fault(name, "is required")
		case isText && strings.TrimSpace(text) == "":
			p.fault(name, "must not be blank")
			text = ""
		}
		return url.PathEscape(cmp.Or(text, "-"))
	})
}
