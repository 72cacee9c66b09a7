package op

import (
	"bytes"
	"errors"
	"io"
	"reflect"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"partnerapi/domain"
)

// MaxBody is the largest body that is read, in bytes (decisions 2.5).
const MaxBody = 1 << 20

// decodeBody reads one JSON object into dst. Faults name the member by its
// path, as in user_ids[3].
func decodeBody(body []byte, dst any, lenient bool) error {
	if err := checkObject(body); err != nil {
		return err
	}
	options := []json.Options{json.RejectUnknownMembers(!lenient), jsontext.AllowDuplicateNames(lenient)}
	if lenient {
		options = append(options, strictElements)
	} else {
		options = append(options, strict)
	}
	err := json.Unmarshal(body, dst, options...)
	if err == nil {
		return nil
	}
	if semantic, ok := errors.AsType[*json.SemanticError](err); ok {
		return domain.ErrInvalid(fieldPath(semantic.JSONPointer), semanticMessage(semantic))
	}
	return badJSON(err)
}

// strict refuses what would else pass for a member that is not there: null for
// one that cannot be null, and the empty text for an enum.
var strict = json.WithUnmarshalers(json.UnmarshalFromFunc(func(dec *jsontext.Decoder, dst any) error {
	v := reflect.ValueOf(dst).Elem()
	switch kind := dec.PeekKind(); {
	case kind == 'n' && v.Kind() != reflect.Pointer:
		if _, ok := v.Interface().(optional); ok {
			return errors.ErrUnsupported // it knows by itself
		}
		if err := dec.SkipValue(); err != nil {
			return err
		}
		return errNull
	case kind == '"' && v.Kind() == reflect.String:
		enum, ok := v.Interface().(Enum)
		if !ok {
			return errors.ErrUnsupported
		}
		token, err := dec.ReadToken()
		if err != nil {
			return err
		}
		if !EnumHas(enum, token.String()) {
			return callerError(enumMessage(enum))
		}
		v.SetString(token.String())
		return nil
	}
	return errors.ErrUnsupported
}))

// strictElements refuses null among the elements of an array: it may stand for
// a member that is not there, but there is no such element.
var strictElements = json.WithUnmarshalers(json.UnmarshalFromFunc(func(dec *jsontext.Decoder, _ any) error {
	if dec.PeekKind() != 'n' {
		return errors.ErrUnsupported
	}
	if within, _ := dec.StackIndex(dec.StackDepth()); within != '[' {
		return errors.ErrUnsupported
	}
	if err := dec.SkipValue(); err != nil {
		return err
	}
	return errNull
}))

// checkObject reports a body that is not exactly one JSON object in UTF-8, or
// that holds a NUL, which PostgreSQL's texts cannot.
func checkObject(body []byte) error {
	dec := jsontext.NewDecoder(bytes.NewReader(body), jsontext.AllowDuplicateNames(true))
	if kind := dec.PeekKind(); kind != '{' {
		if kind == 0 {
			_, err := dec.ReadToken()
			return badJSON(err)
		}
		return domain.ErrInvalid("body", "must be a JSON object")
	}
	for {
		token, err := dec.ReadToken()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return badJSON(err)
		}
		if token.Kind() == '"' && strings.ContainsRune(token.String(), 0) {
			return domain.ErrInvalid(fieldPath(dec.StackPointer()), "must not hold a NUL")
		}
		if dec.StackDepth() == 0 && dec.PeekKind() != 0 {
			return domain.ErrInvalid("body", "must be one JSON object and nothing after it")
		}
	}
}

func badJSON(err error) error {
	if syntactic, ok := errors.AsType[*jsontext.SyntacticError](err); ok {
		if errors.Is(err, jsontext.ErrDuplicateName) {
			return domain.ErrInvalid(fieldPath(syntactic.JSONPointer), "must be given once")
		}
	}
	if errors.Is(err, io.EOF) {
		return domain.ErrInvalid("body", "must be a JSON object, but is empty")
	}
	return domain.ErrInvalid("body", "must be valid JSON in UTF-8")
}

// messenger is an error whose text is meant for callers.
type messenger interface {
	error
	CallerMessage() string
}

func semanticMessage(e *json.SemanticError) string {
	if errors.Is(e.Err, json.ErrUnknownName) {
		return "is unknown"
	}
	if m, ok := errors.AsType[messenger](e.Err); ok {
		return m.CallerMessage()
	}
	if e.GoType == nil {
		return "has the wrong type"
	}
	return "must be " + typeName(e.GoType)
}

// fieldPath turns a JSON pointer into the path that errors show:
// /user_ids/3 is user_ids[3].
func fieldPath(p jsontext.Pointer) string {
	var path strings.Builder
	for token := range p.Tokens() {
		if _, err := strconv.Atoi(token); err == nil && path.Len() > 0 {
			path.WriteString("[" + token + "]")
			continue
		}
		if path.Len() > 0 {
			path.WriteByte('.')
		}
		path.WriteString(token)
	}
	if path.Len() == 0 {
		return "body"
	}
	return path.String()
}
