package op

import (
	"encoding"
	"errors"
	"fmt"
	"net/url"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json"

	"partnerapi/domain"
	"partnerapi/domain/rule"
)

// ReplaceParams returns a declared path with the result of replace in place of each :name.
func ReplaceParams(path string, replace func(name string) string) string {
	segments := strings.Split(path, "/")
	for i, segment := range segments {
		if name, ok := strings.CutPrefix(segment, ":"); ok {
			segments[i] = replace(name)
		}
	}
	return strings.Join(segments, "/")
}

// Braced returns a declared path as documents write it: /clients/{client_id} for /clients/:client_id.
func Braced(path string) string {
	return ReplaceParams(path, func(name string) string { return "{" + name + "}" })
}

// Target returns the path, without the prefix of its version, and the query of the request that binds to the input, a
// pointer to the operation's input. It is the inverse of Bind, except for the body. A query parameter that is empty or
// holds its default is omitted; a bool that is false is written if its default is true. Fields that no surface binds,
// and ids that could not be parsed, are omitted.
//
// Target fails for an input that no request binds to: a path with a zero parameter, a pointer to an empty text, which
// Bind would take as absent, or a parameter whose type has no text form.
func Target(o Declaration, input any) (string, error) {
	described, v := o.Input(), reflect.ValueOf(input)
	if v.Kind() != reflect.Pointer || v.Type().Elem() != described.Type {
		return "", fmt.Errorf("operation %s takes *%s, not %T", o.Meta().ID, described.Type, input)
	}
	for _, p := range described.Path {
		if v.Elem().FieldByIndex(p.index).IsZero() {
			return "", fmt.Errorf("operation %s: path parameter %s is zero", o.Meta().ID, p.Name)
		}
	}
	return described.target(o.Meta(), described.Query, v.Elem())
}

// Body returns the body of the request that binds to the input, a pointer; nil if the operation takes no body.
func Body(o Declaration, input any) ([]byte, error) {
	in := o.Input()
	if in.Body == nil {
		return nil, nil
	}
	body := reflect.ValueOf(input).Elem().FieldByIndex(in.body).Addr().Interface()
	return json.Marshal(body, json.WithMarshalers(rule.MarshalOptionals))
}

// target returns the path of an operation, with v's path parameters in place of :name, and a query of the given
// parameters, without those that are absent, zero or the default (see textOf). Texts are escaped. v is the input.
func (in *Input) target(m *Meta, query []Param, v reflect.Value) (string, error) {
	segments := strings.Split(m.Path, "/")
	for _, p := range in.Path {
		text, err := formatText(v.FieldByIndex(p.index))
		if err != nil {
			return "", fmt.Errorf("operation %s: path parameter %s: %w", m.ID, p.Name, err)
		}
		segments[slices.Index(segments, ":"+p.Name)] = escapedSpace.Replace(url.QueryEscape(text))
	}
	target, separator := strings.Join(segments, "/"), "?"
	for _, p := range query {
		text, needed, err := p.textOf(v.FieldByIndex(p.index))
		if err != nil {
			return "", fmt.Errorf("operation %s: parameter %s: %w", m.ID, p.Name, err)
		}
		if needed {
			target += separator + p.Name + "=" + escapedQuery.Replace(url.QueryEscape(text))
			separator = "&"
		}
	}
	return target, nil
}

// escapedSpace and escapedQuery change the result of url.QueryEscape: a space is %20, as paths need it, and a query
// shows the commas of lists and the colons of times as they are.
var (
	escapedSpace = strings.NewReplacer("+", "%20")
	escapedQuery = strings.NewReplacer("+", "%20", "%2C", ",", "%3A", ":")
)

// textOf returns the text of the parameter's value v, and whether the query needs it. A nil pointer or a zero is not
// needed, as it stands for an absent parameter; but a false is, if the default is true. The default is not needed,
// unless a pointer holds it. A pointer to an empty text is an error, except for a list.
func (p *Param) textOf(v reflect.Value) (text string, needed bool, err error) {
	pointer := v.Kind() == reflect.Pointer
	if pointer {
		if v.IsNil() {
			return "", false, nil
		}
		v = v.Elem()
	} else if v.IsZero() && (!p.defaulted || v.Kind() != reflect.Bool) { // a false may differ from the default
		return "", false, nil
	}
	text, err = formatText(v)
	if err == nil && pointer && text == "" && !p.isList {
		err = errors.New("a pointer to an empty string, which Bind reads as absent")
	}
	return text, pointer || text != p.fallback, err
}

// formatText returns the text from which setText sets v.
func formatText(v reflect.Value) (string, error) {
	switch t := v.Addr().Interface().(type) {
	case *domain.Time: // whose own form is cut to microseconds
		return t.Time.UTC().Format(time.RFC3339Nano), nil
	case encoding.TextAppender:
		text, err := t.AppendText(nil)
		return string(text), err
	case encoding.TextMarshaler:
		text, err := t.MarshalText()
		return string(text), err
	}
	switch v.Kind() {
	case reflect.String:
		return v.String(), nil
	case reflect.Int:
		return strconv.FormatInt(v.Int(), 10), nil
	case reflect.Bool:
		return strconv.FormatBool(v.Bool()), nil
	}
	return "", fmt.Errorf("a %s has no text form", v.Type())
}
