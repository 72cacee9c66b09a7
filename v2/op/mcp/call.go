package mcp

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"maps"
	"math"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"partnerapi/domain"
	"partnerapi/v2/op"
)

// call runs a tool; it is the handler of every tool, for every session. The message carries the result's content as
// its list.
func (s *Server) call(ctx context.Context, t *tool, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
	m := messageOf(ctx)
	p := t.parseArguments(r.Params.Arguments, m.view.schemas)
	answer, err := s.invoke(ctx, t, p)
	if err != nil {
		return nil, err
	}
	text, failed := answer.body.Bytes(), answer.status >= http.StatusBadRequest
	structured := m.view.schemas && !failed && answer.status != http.StatusNoContent
	switch {
	case answer.status == http.StatusNoContent:
		text = []byte(noAnswer)
	case !failed && !structured:
		if text, err = t.compact(text, p.fields); err != nil {
			return nil, err
		}
	}
	list := append(make([]byte, 0, len(text)*9/4+64), `[{"type":"text","text":`...)
	if list, err = jsontext.AppendQuote(list, text); err != nil {
		return nil, fmt.Errorf("the answer of %s: %w", t.Name, err)
	}
	list = append(list, `}]`...)
	if structured {
		list = append(append(list, `,"structuredContent":`...), text...)
	}
	m.list = list
	out := new(sdk.CallToolResult)
	if usesNewest(r.Session) {
		*out = completed
	}
	out.Content, out.IsError = []sdk.Content{}, failed
	return out, nil
}

// noAnswer is the text of a result without a body.
const noAnswer = "Done. This operation has no answer."

// invoke has the service answer the HTTP request made of a call.
func (s *Server) invoke(ctx context.Context, t *tool, p *callParts) (*recorder, error) {
	request, err := t.request(ctx, s.Prefix, p)
	if err != nil {
		return nil, err
	}
	return s.serveRequest(ctx, request), nil
}

// serveRequest serves a request as if the message's caller had sent it.
func (s *Server) serveRequest(ctx context.Context, request *http.Request) *recorder {
	m := messageOf(ctx)
	request.RemoteAddr, request.Host, request.TLS = m.request.RemoteAddr, m.request.Host, m.request.TLS
	for _, name := range []string{"X-Api-Key", "User-Agent", "X-Forwarded-For"} {
		if values := m.request.Header[name]; values != nil {
			request.Header[name] = values
		}
	}
	request.Header.Set("X-Request-Id", m.id)
	answer := &recorder{header: http.Header{}, status: http.StatusOK}
	s.Handler.ServeHTTP(answer, request)
	answer.body = *bytes.NewBuffer(visible(answer.body.Bytes()))
	return answer
}

// recorder is a ResponseWriter that keeps the response.
type recorder struct {
	header  http.Header
	status  int
	written bool
	body    bytes.Buffer
}

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

// callParts are the arguments of a call, split into the parts of a request.
type callParts struct {
	path, header map[string]string
	query        url.Values
	fields       []string     // of a row, to show
	body         bytes.Buffer // the members of the object
	faults       []domain.FieldError
	given        map[string]bool
	whole        bool // the result is structured, with all fields
}

// fault adds a fault of an argument.
func (p *callParts) fault(field, message string) {
	p.faults = append(p.faults, domain.FieldError{Field: field, Message: message})
}

// request returns the HTTP request of a call. Argument faults that cannot be expressed in HTTP travel in the
// request's context (op.WithFaults); the operation reports them with its own.
func (t *tool) request(ctx context.Context, prefix string, p *callParts) (*http.Request, error) {
	target := prefix + t.path(p)
	if query := p.query.Encode(); query != "" {
		target += "?" + query
	}

	var body io.Reader
	if t.operation.Input().Body != nil {
		body = strings.NewReader("{" + p.body.String() + "}")
	}
	m := messageOf(ctx)
	ctx = m.request.Context()
	if len(p.faults) > 0 {
		ctx = op.WithFaults(ctx, p.faults)
	}
	if m.view.readOnly {
		ctx = op.WithReadOnly(ctx)
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
	request.RequestURI = target
	return request, nil
}

// path returns the path of the request. A path parameter that cannot be parsed is a fault, and an invalid id stands
// in for it.
func (t *tool) path(p *callParts) string {
	segments := strings.Split(t.operation.Meta().Path, "/")
	for i, segment := range segments {
		name, ok := strings.CutPrefix(segment, ":")
		if !ok {
			continue
		}
		text, read := p.path[name]
		switch {
		case !p.given[name]:
			p.fault(name, "is required")
		case read && strings.TrimSpace(text) == "":
			p.fault(name, "must not be blank")
			text = ""
		}
		if segments[i] = url.PathEscape(text); text == "" {
			segments[i] = "-"
		}
	}
	return strings.Join(segments, "/")
}

// parseArguments parses the arguments (an object, nothing or null) into the parts of a request. A result with a
// schema has all of its fields.
func (t *tool) parseArguments(arguments []byte, schemas bool) *callParts {
	p := &callParts{whole: schemas, path: map[string]string{}, header: map[string]string{}, query: url.Values{}, given: map[string]bool{}}
	if trimmed := bytes.TrimSpace(arguments); len(trimmed) == 0 || string(trimmed) == "null" {
		return p
	}
	dec := jsontext.NewDecoder(bytes.NewReader(arguments), jsontext.AllowDuplicateNames(true))
	if dec.PeekKind() != '{' {
		p.fault("arguments", "must be a JSON object")
		return p
	}
	if err := t.parseMembers(dec, p); err != nil {
		p.fault("arguments", "must be valid JSON in UTF-8")
	}
	return p
}

// parseMembers reads the members of an object. Members of the body are passed on unparsed, for the operation to
// decode.
func (t *tool) parseMembers(dec *jsontext.Decoder, p *callParts) error {
	if _, err := dec.ReadToken(); err != nil {
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
		at, known := t.arguments[name]
		known = known && (at.in != inResult || !p.whole)
		switch {
		case known && at.in == inBody, !known && t.operation.Input().Body != nil:
			p.addMember(name, value)
		case !known:
			p.fault(name, "is unknown")
		case p.given[name]:
			p.fault(name, "must be given once")
		default:
			p.given[name] = true
			if p.setParameter(name, at, value); at.in == inResult {
				t.checkFields(p)
			}
		}
	}
	_, err := dec.ReadToken()
	return err
}

// addMember appends a member to the body.
func (p *callParts) addMember(name string, value jsontext.Value) {
	if p.body.Len() > 0 {
		p.body.WriteByte(',')
	}
	quoted, _ := jsontext.AppendQuote(nil, name) // which was read as UTF-8
	p.body.Write(quoted)
	p.body.WriteByte(':')
	p.body.Write(value)
}

// setParameter adds an argument as the text of a parameter.
func (p *callParts) setParameter(name string, at argument, value jsontext.Value) {
	if value.Kind() == 'n' {
		p.fault(name, "must not be null")
		return
	}
	text, message := parameterText(at.kind, value)
	switch {
	case message != "":
		p.fault(name, message)
	case at.in == inPath:
		p.path[name] = text
	case at.in == inQuery:
		p.query.Set(name, text)
	case at.in == inResult:
		p.fields = strings.FieldsFunc(text, func(r rune) bool { return r == ',' })
	default:
		p.header[name] = text
	}
}

// parameterText formats a JSON value of a type as a parameter; message says what the value must be if it is of
// another type.
func parameterText(kind string, value jsontext.Value) (text, message string) {
	is := value.Kind()
	switch kind {
	case openapi3.TypeInteger:
		return integerText(value)
	case openapi3.TypeNumber:
		if is != '0' {
			return "", "must be a number"
		}
	case openapi3.TypeBoolean:
		if is != 't' && is != 'f' {
			return "", "must be true or false"
		}
	case openapi3.TypeArray:
		return listText(value)
	default:
		if is != '"' {
			return "", "must be a string"
		}
		unquoted, err := jsontext.AppendUnquote(nil, value)
		if err != nil {
			return "", "must be a string"
		}
		return string(unquoted), ""
	}
	return string(value), ""
}

// integerText formats a number without a fraction as a parameter: JSON Schema counts 5.0 and 5e0 as integers, and
// languages with a single number type write them so.
func integerText(value jsontext.Value) (text, message string) {
	if value.Kind() == '0' && !bytes.ContainsAny(value, ".eE") {
		return string(value), ""
	}
	n, err := strconv.ParseFloat(string(value), 64)
	if value.Kind() != '0' || err != nil || n != math.Trunc(n) || math.Abs(n) > maxInteger {
		return "", "must be an integer"
	}
	return strconv.FormatInt(int64(n), 10), ""
}

// maxInteger is the largest integer up to which a float64 is exact.
const maxInteger = 1<<53 - 1

// listText formats an array of strings as a comma-separated parameter.
func listText(value jsontext.Value) (text, message string) {
	var items []string
	if value.Kind() != '[' || json.Unmarshal(value, &items) != nil {
		return "", "must be an array of strings"
	}
	return strings.Join(items, ","), ""
}

// checkFields adds a fault for the first requested field that rows do not have.
func (t *tool) checkFields(p *callParts) {
	for _, name := range p.fields {
		if !t.fields[name] {
			known := slices.Sorted(maps.Keys(t.fields))
			p.fault(fieldsArgument, fmt.Sprintf("%q is no field; there are %s", name, strings.Join(known, ", ")))
			return
		}
	}
}
