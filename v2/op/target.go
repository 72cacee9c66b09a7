package op

import (
	"encoding"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json"

	"partnerapi/domain"
	"partnerapi/domain/rule"
)

// Braced returns a declared path as documents write it: /clients/{client_id} for /clients/:client_id.
func Braced(path string) string {
	segments := strings.Split(path, "/")
	for i, segment := range segments {
		if name, ok := strings.CutPrefix(segment, ":"); ok {
			segments[i] = "{" + name + "}"
		}
	}
	return strings.Join(segments, "/")
}

// Target returns the path, without the prefix of its version, and the query of the request that binds to the input, a
// pointer to the operation's input. It is the inverse of Bind, except for the body. A query parameter that is empty or
// holds its default is left out; a bool that is false is written if its default is true. Fields that no surface binds,
// and ids that could not be parsed, are left out.
//
// Target fails for an input that no request binds to: a path with a zero parameter, a pointer to an empty text, which
// Bind would take as absent, or a parameter whose type has no text form.
func Target(o Declaration, input any) (string, error) {
	b, err := AppendTarget(nil, o, input)
	return string(b), err
}

// AppendTarget appends Target's result to b. On an error it returns b unchanged.
func AppendTarget(b []byte, o Declaration, input any) ([]byte, error) {
	described, v := o.Input(), reflect.ValueOf(input)
	if v.Kind() != reflect.Pointer || v.Type().Elem() != described.Type {
		return b, fmt.Errorf("operation %s takes *%s, not %T", o.Meta().ID, described.Type, input)
	}
	for _, p := range described.Path {
		if v.Elem().FieldByIndex(p.index).IsZero() {
			return b, fmt.Errorf("operation %s: path parameter %s names no object", o.Meta().ID, p.Name)
		}
	}
	target, err := described.appendPath(b, o.Meta().Path, v.Elem())
	if err == nil {
		target, err = appendQuery(target, described.Query, v.Elem())
	}
	if err != nil {
		return b, fmt.Errorf("operation %s: %w", o.Meta().ID, err)
	}
	return target, nil
}

// Body returns the body of the request that binds to the input, a pointer to the operation's input; nil for an
// operation that takes none.
func Body(o Declaration, input any) ([]byte, error) {
	in := o.Input()
	if in.Body == nil {
		return nil, nil
	}
	body := reflect.ValueOf(input).Elem().FieldByIndex(in.body).Addr().Interface()
	return json.Marshal(body, json.WithMarshalers(rule.MarshalOptionals))
}

// appendPath appends a declared path, with the escaped texts of v's parameters in place of :name. v is the input.
func (in *Input) appendPath(b []byte, path string, v reflect.Value) ([]byte, error) {
	for {
		before, rest, found := strings.Cut(path, ":")
		b = append(b, before...)
		if !found {
			return b, nil
		}

		end := strings.IndexByte(rest, '/')
		if end < 0 {
			end = len(rest)
		}
		at := slices.IndexFunc(in.Path, func(p Param) bool { return p.Name == rest[:end] })
		if at < 0 {
			return b, fmt.Errorf("its input has no path parameter %s", rest[:end])
		}
		start := len(b)
		var err error
		if b, err = appendText(b, v.FieldByIndex(in.Path[at].index)); err != nil {
			return b, fmt.Errorf("path parameter %s: %w", rest[:end], err)
		}
		b, path = escape(b, start, ""), rest[end:]
	}
}

// appendQuery appends the query, with its question mark; nothing if it needs no parameter (see appendTo).
func appendQuery(b []byte, params []Param, v reflect.Value) ([]byte, error) {
	separator := byte('?')
	for i := range params {
		p := &params[i]
		before := len(b)
		b = append(b, separator)
		b = append(b, p.Name...)
		b = append(b, '=')
		start := len(b)
		var given bool
		var err error
		if b, given, err = p.appendTo(b, v.FieldByIndex(p.index)); err != nil {
			return b, fmt.Errorf("parameter %s: %w", p.Name, err)
		}
		if !given {
			b = b[:before]
			continue
		}
		b, separator = escape(b, start, ",:"), '&'
	}
	return b, nil
}

// appendTo appends the parameter's text to b, and reports whether the query needs it. The query does not need a nil
// pointer, or a value that is zero or the default; it needs a false whose default is true. If needed is false, b may end
// with the text, which the caller cuts off.
func (p *Param) appendTo(b []byte, v reflect.Value) (_ []byte, needed bool, err error) {
	pointer := v.Kind() == reflect.Pointer
	if pointer {
		if v.IsNil() {
			return b, false, nil
		}
		v = v.Elem()
	} else if v.IsZero() && (!p.defaulted || v.Kind() != reflect.Bool) { // a false may differ from the default
		return b, false, nil
	}

	start := len(b)
	if b, err = appendText(b, v); err != nil {
		return b, false, err
	}
	if !pointer && string(b[start:]) == p.fallback {
		return b, false, nil
	}
	if len(b) == start && !p.isList {
		return b, false, errors.New("a pointer to an empty text, which Bind reads as absent")
	}
	return b, true, nil
}

// appendText appends the text from which setText sets v.
func appendText(b []byte, v reflect.Value) ([]byte, error) {
	switch t := v.Addr().Interface().(type) {
	case *domain.Time: // whose own form is cut to microseconds
		return t.Time.UTC().AppendFormat(b, time.RFC3339Nano), nil
	case encoding.TextAppender:
		return t.AppendText(b)
	case encoding.TextMarshaler:
		text, err := t.MarshalText()
		return append(b, text...), err
	}
	switch v.Kind() {
	case reflect.String:
		return append(b, v.String()...), nil
	case reflect.Int:
		return strconv.AppendInt(b, v.Int(), 10), nil
	case reflect.Bool:
		return strconv.AppendBool(b, v.Bool()), nil
	}
	return b, fmt.Errorf("a %s has no text form", v.Type())
}

// escape percent-encodes b from start on, except RFC 3986's unreserved characters (letters, digits and -._~) and the
// characters in others.
func escape(b []byte, start int, others string) []byte {
	plain := func(c byte) bool {
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9':
			return true
		}
		return strings.IndexByte("-._~", c) >= 0 || strings.IndexByte(others, c) >= 0
	}
	first := slices.IndexFunc(b[start:], func(c byte) bool { return !plain(c) })
	if first < 0 {
		return b
	}

	const digits = "0123456789ABCDEF"
	raw := slices.Clone(b[start+first:])
	b = b[:start+first]
	for _, c := range raw {
		if plain(c) {
			b = append(b, c)
			continue
		}
		b = append(b, '%', digits[c>>4], digits[c&15])
	}
	return b
}
