package mcp

import (
	"bytes"
	"cmp"
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

// call runs a tool and returns its result; it is the handler of all tools. The result has no content: that is put into
// the message's list, which insertList inserts into the answer. An error response of the operation is a result with
// IsError. With schemas, a body of success is structured content too; otherwise a page is in the compact form.
func (s *Server) call(ctx context.Context, t *tool, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
	m := messageOf(ctx)
	p := t.parseArguments(r.Params.Arguments, m.view.schemas)
	answer, err := s.invoke(ctx, t, p)
	if err != nil {
		return nil, err
	}
	text, isError := answer.body.Bytes(), answer.status >= http.StatusBadRequest
	structured := m.view.schemas && !isError && answer.status != http.StatusNoContent
	switch {
	case answer.status == http.StatusNoContent:
		text = []byte(noAnswer)
	case !isError && !structured:
		if text, err = t.formatCompact(text, p.fields); err != nil {
			return nil, err
		}
	}
	// Room for the text twice: as a JSON string, and as structured content.
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
	if usesNewestVersion(r.Session) {
		*out = completeResult // that version marks its results
	}
	out.Content, out.IsError = []sdk.Content{}, isError
	return out, nil
}

// noAnswer is the text of a result without a body.
const noAnswer = "Done. This operation has no answer."

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
	answer := &recorder{header: http.Header{}, status: http.StatusOK}
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
	fields       []string     // the fields of a row to show; nil for the tool's columns
	body         bytes.Buffer // the members of the body's object, without braces
	faults       []domain.FieldError
	given        map[string]bool // the arguments that were given, except members of the body
	structured   bool            // whether the result is structured, with all fields
}

// fault adds a fault of an argument.
func (p *callParts) fault(field, message string) {
	p.faults = append(p.faults, domain.FieldError{Field: field, Message: message})
}

// request returns the HTTP request of a call in a message. Faults of arguments are passed in the request's context
// (op.WithFaults); the operation reports them with its own. In a read-only session the context allows no writes.
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

// parseArguments parses the arguments (an object, nothing or null) into the parts of a request. If structured is true,
// the result will be structured content with all fields, so the argument that selects fields is unknown.
func (t *tool) parseArguments(arguments []byte, structured bool) *callParts {
	p := &callParts{structured: structured, path: map[string]string{}, header: map[string]string{}, query: url.Values{}}
	p.given = map[string]bool{}
	if trimmed := bytes.TrimSpace(arguments); len(trimmed) == 0 || string(trimmed) == "null" {
		return p
	}
	dec := jsontext.NewDecoder(bytes.NewReader(arguments), jsontext.AllowDuplicateNames(true)) // parseMembers reports them
	if dec.PeekKind() != '{' {
		p.fault("arguments", "must be a JSON object")
		return p
	}
	if err := t.parseMembers(dec, p); err != nil {
		p.fault("arguments", "must be valid JSON in UTF-8")
	}
	return p
}

// parseMembers reads the members of an object. Members of the body are copied as they are, for the operation to decode;
// so are unknown members, if the operation has a body. An error means that the object is not valid JSON.
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
		arg, known := t.arguments[name]
		known = known && (arg.in != inResult || !p.structured) // a structured result has all fields
		switch {
		case known && arg.in == inBody, !known && t.operation.Input().Body != nil:
			p.addMember(name, value)
		case !known:
			p.fault(name, "is unknown")
		case p.given[name]:
			p.fault(name, "must be given once")
		default:
			p.given[name] = true
			if p.setParameter(name, arg, value); arg.in == inResult {
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
	quoted, _ := jsontext.AppendQuote(nil, name) // never fails: the decoder checked that name is UTF-8
	p.body.Write(quoted)
	p.body.WriteByte(':')
	p.body.Write(value)
}

// setParameter adds an argument to its part of the request, as text, or a fault if it is null or of another type.
func (p *callParts) setParameter(name string, arg argument, value jsontext.Value) {
	if value.Kind() == 'n' {
		p.fault(name, "must not be null")
		return
	}
	text, message := parameterText(arg.kind, value)
	switch {
	case message != "":
		p.fault(name, message)
	case arg.in == inPath:
		p.path[name] = text
	case arg.in == inQuery:
		p.query.Set(name, text)
	case arg.in == inResult:
		p.fields = strings.FieldsFunc(text, func(r rune) bool { return r == ',' })
	default: // inHeader
		p.header[name] = text
	}
}

// parameterText formats a JSON value as the text of a parameter of an OpenAPI type. If the value is of another type,
// message says what it must be.
func parameterText(openAPIType string, value jsontext.Value) (text, message string) {
	kind := value.Kind()
	switch openAPIType {
	case openapi3.TypeInteger:
		return integerText(value)
	case openapi3.TypeNumber:
		if kind != '0' {
			return "", "must be a number"
		}
	case openapi3.TypeBoolean:
		if kind != 't' && kind != 'f' {
			return "", "must be true or false"
		}
	case openapi3.TypeArray:
		return listText(value)
	default:
		if kind != '"' {
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

// listText formats an array of strings as a comma-separated parameter. For any other value it returns a message.
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
