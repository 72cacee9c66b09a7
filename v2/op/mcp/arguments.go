package mcp

import (
	"bytes"
	"fmt"
	"maps"
	"math"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"partnerapi/domain"
)

// callParts are the arguments of a call, split into the parts of a request.
type callParts struct {
	path, header map[string]string
	query        url.Values
	fields       []string     // the fields of a row to show; empty for the tool's columns
	clear        []string     // the fields of the body to set to null
	body         bytes.Buffer // the fields of the body's object, without braces
	faults       []domain.FieldError
	given        map[string]bool // the arguments that were given, except fields of the body
	members      map[string]bool // the fields of the body that were given
	structured   bool            // whether the result is structured, with all fields
}

// fault adds a fault of an argument.
func (p *callParts) fault(field, message string) {
	p.faults = append(p.faults, domain.FieldError{Field: field, Message: message})
}

// parseArguments parses the arguments (an object, nothing or null) into the parts of a request. If structured is true,
// the result will be structured content with all fields, so the argument that selects fields is unknown.
//
// Models that must name every argument send null, "" or [] for those that they do not use. So null counts as absent, at
// every level, as do an empty text for an optional argument and an empty list of fields (decisions 12).
func (t *tool) parseArguments(arguments []byte, structured bool) *callParts {
	p := &callParts{structured: structured, path: map[string]string{}, header: map[string]string{}, query: url.Values{}}
	p.given, p.members = map[string]bool{}, map[string]bool{}
	dec := jsontext.NewDecoder(bytes.NewReader(arguments), asSent)
	if kind := dec.PeekKind(); kind != '{' {
		if len(arguments) > 0 && kind != 'n' {
			p.fault("arguments", "must be a JSON object")
		}
		return p
	}
	_, _ = dec.ReadToken() // no read fails, as ParseMessage found the message to be valid
	for dec.PeekKind() == '"' {
		token, _ := dec.ReadToken()
		name := token.String()
		value, _ := dec.ReadValue()
		t.addArgument(p, name, value)
	}
	t.clearMembers(p)
	return p
}

// addArgument adds an argument to its part of the request. A field of the body is passed on for the operation to
// decode, without what counts as absent in it; so is an unknown argument, if the operation has a body.
func (t *tool) addArgument(p *callParts, name string, value jsontext.Value) {
	arg, known := t.arguments[name]
	if t.input.omits(name, value) || arg.in == inResult && isEmptyList(value) {
		return
	}
	known = known && (arg.in != inResult || !p.structured) // a structured result has all fields
	switch {
	case known && arg.in == inBody, !known && t.operation != nil && t.operation.Input().Body != nil:
		p.addMember(name, t.input.Properties[name].appendPresent(nil, jsontext.NewDecoder(bytes.NewReader(value), asSent)))
	case !known:
		p.fault(name, "is unknown")
	case p.given[name]:
		p.fault(name, "must be given once")
	default:
		p.given[name] = true
		if p.setParameter(name, arg, value); arg.in == inResult {
			t.selectFields(p)
		}
	}
}

// shape is what an input schema says of a value.
type shape struct {
	Properties map[string]*shape
	Required   []string
	Items      *shape
}

// omits reports whether a member of an object counts as absent: it is null, or empty and an optional text.
func (s *shape) omits(name string, value jsontext.Value) bool {
	if value.Kind() == 'n' {
		return true
	}
	isOptional := s != nil && s.Properties[name] != nil && !slices.Contains(s.Required, name)
	return isOptional && string(value) == `""`
}

// appendPresent appends the next value of dec without the members that count as absent, at every level. The elements of
// an array all count: a list that became empty might mean everyone. s is nil for a value that the schema does not know.
// The value must be valid JSON, so that no read fails.
func (s *shape) appendPresent(out []byte, dec *jsontext.Decoder) []byte {
	kind := dec.PeekKind()
	if kind != '{' && kind != '[' {
		value, _ := dec.ReadValue()
		return append(out, value...)
	}
	_, _ = dec.ReadToken()
	out = append(out, byte(kind))
	for isFirst := true; dec.PeekKind() != '}' && dec.PeekKind() != ']'; {
		before, name := len(out), ""
		if !isFirst {
			out = append(out, ',')
		}
		if kind == '{' {
			token, _ := dec.ReadToken()
			name = token.String()
			out = append(appendName(out, name), ':')
		}
		at := len(out)
		out = s.of(kind, name).appendPresent(out, dec)
		if kind == '{' && s.omits(name, out[at:]) {
			out = out[:before]
			continue
		}
		isFirst = false
	}
	_, _ = dec.ReadToken()
	return append(out, byte(kind)+2) // in ASCII, what closes follows two places after what opens
}

// of returns the shape of a member of an object, or of the elements of an array; nil if the schema does not know it.
func (s *shape) of(kind jsontext.Kind, name string) *shape {
	switch {
	case s == nil:
		return nil
	case kind == '[':
		return s.Items
	}
	return s.Properties[name]
}

// appendName appends the name of a member as a JSON string.
func appendName(out []byte, name string) []byte {
	quoted, _ := jsontext.AppendQuote(out, name) // never fails: the decoder checked that name is UTF-8
	return quoted
}

// isEmptyList reports whether a value is an array without elements.
func isEmptyList(value jsontext.Value) bool {
	return value.Kind() == '[' && len(bytes.TrimSpace(value[1:len(value)-1])) == 0
}

// addMember appends a member to the body.
func (p *callParts) addMember(name string, value jsontext.Value) {
	p.members[name] = true
	if p.body.Len() > 0 {
		p.body.WriteByte(',')
	}
	p.body.Write(appendName(nil, name))
	p.body.WriteByte(':')
	p.body.Write(value)
}

// clearMembers sets the fields of the body to null that the argument clear names. It adds a fault for the first name
// that is none of a nullable member, and for one of a member that has a value too.
func (t *tool) clearMembers(p *callParts) {
	slices.Sort(p.clear)
	for _, name := range slices.Compact(p.clear) {
		switch {
		case !slices.Contains(t.nullable, name):
			p.fault(clearArgument, fmt.Sprintf("%q cannot be cleared; only %s can", name, strings.Join(t.nullable, " and ")))
			return
		case p.members[name]:
			p.fault(clearArgument, fmt.Sprintf("%q also has a value; either clear it or set it", name))
			return
		}
		p.addMember(name, jsontext.Value("null"))
	}
}

// setParameter adds an argument to its part of the request, as text, or a fault if it is of another type.
func (p *callParts) setParameter(name string, arg argument, value jsontext.Value) {
	text, message := parameterText(arg.kind, value)
	switch {
	case message != "":
		p.fault(name, message)
	case arg.in == inPath:
		p.path[name] = text
	case arg.in == inQuery:
		p.query.Set(name, text)
	case arg.in == inResult:
		p.fields = splitList(text)
	case arg.in == inClear:
		p.clear = splitList(text)
	default: // inHeader
		p.header[name] = text
	}
}

// parameterText formats a JSON value as the text of a parameter of an OpenAPI type. If the value is of another type,
// message says what it must be.
func parameterText(openAPIType string, value jsontext.Value) (text, message string) {
	kind := value.Kind()
	text = string(value)
	switch openAPIType {
	case openapi3.TypeInteger:
		return integerText(value)
	case openapi3.TypeArray:
		return listText(value)
	case openapi3.TypeNumber:
		if kind != '0' {
			message = "must be a number"
		}
	case openapi3.TypeBoolean:
		if kind != 't' && kind != 'f' {
			message = "must be true or false"
		}
	default:
		if kind != '"' {
			message = "must be a string"
		}
		unquoted, _ := jsontext.AppendUnquote(nil, value)
		text = string(unquoted)
	}
	return text, message
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
	var items []*string // null is no string
	if value.Kind() != '[' || json.Unmarshal(value, &items) != nil || slices.Contains(items, nil) {
		return "", "must be an array of strings"
	}
	out := make([]string, len(items))
	for i, item := range items {
		out[i] = *item
	}
	return strings.Join(out, ","), ""
}

// splitList splits the text of listText, without empty items.
func splitList(text string) []string {
	return strings.FieldsFunc(text, func(r rune) bool { return r == ',' })
}

// maxFields bounds the different fields that a call requests: an object that may have any fields has any number.
const maxFields = 100

// selectFields reduces the requested fields to each once, and none within another one, which shows it. So no choice of
// fields makes a page larger than its JSON. It adds a fault for the first field that rows do not have, and for more
// than maxFields.
func (t *tool) selectFields(p *callParts) {
	distinct := map[string]bool{}
	for _, name := range p.fields {
		if distinct[name] = true; len(distinct) > maxFields {
			p.fault(fieldsArgument, fmt.Sprintf("must name at most %d fields", maxFields))
			return
		}
		if !t.hasField(name) {
			known := slices.Sorted(maps.Keys(t.fields))
			known = slices.DeleteFunc(known, func(path string) bool { return strings.HasSuffix(path, ".") })
			p.fault(fieldsArgument, fmt.Sprintf("%q is not a field; the fields are %s", domain.Cut(name, 100), strings.Join(known, ", ")))
			return
		}
	}
	p.fields = slices.DeleteFunc(p.fields, func(name string) bool {
		isFirst := distinct[name]
		distinct[name] = false // the name stays a key
		return !isFirst || hasParent(name, func(path string) bool { _, named := distinct[path]; return named })
	})
}

// hasParent reports whether a path of a field is within a path for which is returns true: risk.score is within risk.
func hasParent(path string, is func(path string) bool) bool {
	for i, c := range path {
		if c == '.' && is(path[:i]) {
			return true
		}
	}
	return false
}

// hasField reports whether rows have a field, or may have it: as a member of an object that may have any.
func (t *tool) hasField(name string) bool {
	return t.fields[name] || hasParent(name, func(path string) bool { return t.fields[path+"."] })
}
