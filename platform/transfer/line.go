package transfer

import (
	"bytes"
	"encoding"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"partnerapi/domain"
)

// errNotObject says that a line is not what it should be at all.
var errNotObject = errors.New("is not a JSON object")

// objectOf finds what kind of object a line is of.
func objectOf(text []byte) (string, error) {
	if rest, first := bytes.CutPrefix(text, []byte(`{"object":"`)); first { // where most lines have it
		name, _, ended := bytes.Cut(rest, []byte(`"`))
		if k, _ := kindCalled(string(name)); k != nil && ended {
			return string(name), nil // the kind says what is wrong with the rest
		}
	}
	var head struct {
		Object *string `json:"object"`
	}
	if err := json.Unmarshal(text, &head); err != nil {
		return "", lineError(err)
	}
	if head.Object == nil {
		return "", errors.New("object is missing")
	}
	return *head.Object, nil
}

// lineError says why a line is no JSON object.
func lineError(err error) error {
	var syntax *jsontext.SyntacticError
	var semantic *json.SemanticError
	switch {
	case errors.Is(err, jsontext.ErrDuplicateName) && errors.As(err, &syntax):
		return fmt.Errorf("has the field %.40q twice", syntax.JSONPointer.LastToken())
	case errors.As(err, &syntax) && strings.Contains(syntax.Error(), "UTF-8"):
		return errors.New("is not text in UTF-8")
	case errors.As(err, &semantic) && semantic.JSONPointer != "":
		return errors.New("object: must be a string")
	}
	return errNotObject
}

// read reads a line into a record, which is addressable and zero, and returns what is
// wrong with all of its fields. now is the time of reading.
func (p *plan) read(text []byte, record reflect.Value, now time.Time) *faults {
	in := jsontext.NewDecoder(bytes.NewReader(text))
	if begin, err := in.ReadToken(); err != nil || begin.Kind() != '{' {
		return fault(errNotObject)
	}

	wrong := &faults{}
	identified := false
	for in.PeekKind() != '}' {
		token, err := in.ReadToken()
		if err != nil {
			return fault(lineError(err))
		}
		name := token.String()
		value, err := in.ReadValue()
		if err != nil {
			return fault(lineError(err))
		}
		switch f := p.byName[name]; {
		case name == "object":
		case name == "id":
			identified = true
			wrong.add("id", p.setID(record, value))
		case f == nil:
			wrong.say("has a field that no %s has: %.40q", p.object, name)
		default:
			wrong.add(name, f.set(f.state(record), value, now))
		}
	}

	_, err := in.ReadToken() // the end of the object
	if err == nil {
		_, err = in.ReadToken()
	}
	if err == nil {
		err = errNotObject
	}
	if err != io.EOF {
		return fault(lineError(err))
	}
	if !identified {
		wrong.say("id is missing")
	}
	return wrong
}

func (p *plan) setID(record reflect.Value, value jsontext.Value) error {
	if value.Kind() != '"' {
		return errors.New("must be a string")
	}
	text, err := jsontext.AppendUnquote(nil, value)
	if err != nil {
		return err
	}
	return p.readID(record, string(text))
}

// set reads a value into a field, brings it into the form that is stored, and
// checks it.
func (f *field) set(s state, value jsontext.Value, now time.Time) error {
	if value.Kind() == 'n' {
		if !f.null {
			return errors.New("must not be null")
		}
		s.Open()
		return nil
	}
	into := s.Open()
	if f.null {
		of := reflect.ValueOf(into).Elem()
		of.Set(reflect.New(of.Type().Elem()))
		into = of.Interface()
	}
	if readPlain(into, value) {
		return f.check(into, now)
	}
	if err := json.Unmarshal(value, into, json.RejectUnknownMembers(true)); err != nil {
		if _, isTime := into.(*domain.Time); isTime && value.Kind() == '"' {
			text, _ := jsontext.AppendUnquote(nil, value)
			return fmt.Errorf("must be a time such as 2026-01-31T08:00:00Z, not %.40q", text)
		}
		return valueError(err, reflect.TypeOf(into).Elem())
	}
	return f.check(into, now)
}

// readPlain reads a text without escapes into a value that is one, or that is read from
// one; it reports false where the value cannot be read so.
func readPlain(into any, value jsontext.Value) bool {
	if value.Kind() != '"' || bytes.IndexByte(value, '\\') >= 0 {
		return false
	}
	plain := value[1 : len(value)-1]
	switch v := into.(type) {
	case *string:
		*v = string(plain)
		return true
	case encoding.TextUnmarshaler:
		return v.UnmarshalText(plain) == nil
	}
	return false
}

// valueError says why a value cannot be read as one of a type.
func valueError(err error, want reflect.Type) error {
	var wrong *json.SemanticError
	if !errors.As(err, &wrong) {
		return errors.New("must be " + typeName(want))
	}
	at := ""
	if wrong.JSONPointer != "" {
		at = "[" + strings.ReplaceAll(strings.TrimPrefix(string(wrong.JSONPointer), "/"), "/", "][") + "] "
	}
	switch {
	case errors.Is(wrong.Err, json.ErrUnknownName):
		return fmt.Errorf("%sis unknown", at)
	case wrong.Err != nil && at == "" && wrong.JSONKind != '"' && want.Kind() != reflect.Slice:
		return errors.New("must be " + typeName(want))
	case wrong.Err != nil:
		return fmt.Errorf("%s%w", at, wrong.Err)
	case wrong.GoType != nil:
		want = wrong.GoType
	}
	return errors.New(at + "must be " + typeName(want))
}

// typeName says in words what JSON a type is read from.
func typeName(t reflect.Type) string {
	switch t {
	case reflect.TypeFor[domain.Time]():
		return "a time such as 2026-01-31T08:00:00Z"
	case reflect.TypeFor[domain.AudienceRecord](), reflect.TypeFor[domain.ModulesRecord]():
		return "an object"
	}
	switch t.Kind() {
	case reflect.Bool:
		return "true or false"
	case reflect.Int:
		return "a whole number"
	case reflect.Slice:
		return "an array"
	case reflect.Map:
		return "an object"
	case reflect.Pointer:
		return typeName(t.Elem())
	}
	return "a string"
}

// append appends a record as a line with its end.
func (p *plan) append(line []byte, of any) ([]byte, error) {
	record := reflect.ValueOf(of).Elem()
	line = append(line, `{"object":"`+p.object+`","id":`...)
	id, err := json.Marshal(record.Field(p.id).Interface())
	if err != nil {
		return line, err
	}
	line = append(line, id...)
	for i := range p.fields {
		f := &p.fields[i]
		s := f.state(record)
		if s.IsZero() {
			continue
		}
		line = append(line, `,"`+f.name+`":`...)
		text, err := json.Marshal(s.Pointer(), json.Deterministic(true))
		if err != nil {
			return line, err
		}
		line = append(line, text...)
	}
	return append(line, '}', '\n'), nil
}
