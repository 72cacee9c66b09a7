package op

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strconv"
	"strings"
	"sync"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// MaxBody is the largest body that is read, in bytes (decisions 2.5).
const MaxBody = 1 << 20

// bodyReader reads one JSON object into a body and collects the faults of its members. The text was checked to be a
// well-formed JSON object.
type bodyReader struct {
	dec *jsontext.Decoder
	// lenient accepts unknown and repeated members, and null for an absent member.
	lenient bool
	faults  *faults
}

// readBody reads the body into dst, a pointer to a struct.
func readBody(body []byte, dst reflect.Value, lenient bool, f *faults) {
	if !checkObject(body, f) {
		return
	}
	dec := jsontext.NewDecoder(bytes.NewBuffer(body), jsontext.AllowDuplicateNames(true))
	r := &bodyReader{dec: dec, lenient: lenient, faults: f}
	if err := r.object(dst.Elem()); err != nil {
		f.add("body", badJSON)
	}
}

// value reads the next value into v. most is the maximum number of items of an array; 0 for no bound. Only malformed
// JSON is an error.
func (r *bodyReader) value(v reflect.Value, most int) error {
	if r.dec.PeekKind() == 'n' {
		return r.null(v)
	}
	if o, ok := v.Addr().Interface().(optionalPointer); ok {
		v = reflect.ValueOf(o.Open()).Elem()
	}
	if v.Kind() == reflect.Pointer {
		v.Set(reflect.New(v.Type().Elem()))
		v = v.Elem()
	}

	kind := r.dec.PeekKind()
	switch {
	case readsOwnJSON(v.Type()):
		return r.scalar(v)
	case v.Kind() == reflect.Struct && kind == '{':
		return r.object(v)
	case v.Kind() == reflect.Slice && kind == '[':
		return r.array(v, most)
	}
	return r.scalar(v)
}

// null reads a null: the value of a nullable member; for others a fault, or absent to a lenient reader. An item of an
// array is never null.
func (r *bodyReader) null(v reflect.Value) error {
	if err := r.dec.SkipValue(); err != nil {
		return err
	}
	within, _ := r.dec.StackIndex(r.dec.StackDepth())
	nullable := v.Kind() == reflect.Pointer
	o, isOptional := v.Addr().Interface().(optionalPointer)
	if isOptional {
		_, nullable = OptionalElement(v.Type())
	}
	switch {
	case within == '[', !nullable && !r.lenient:
		r.fault(notNull)
	case !r.lenient:
		r.faults.markBlank(fieldPath(r.dec.StackPointer()), notNull)
	}
	if isOptional && nullable {
		o.Open()
	}
	return nil
}

// object reads the next value, an object.
func (r *bodyReader) object(v reflect.Value) error {
	if _, err := r.dec.ReadToken(); err != nil {
		return err
	}
	members, seen := membersOf(v.Type()), map[string]bool{}
	for r.dec.PeekKind() != '}' {
		token, err := r.dec.ReadToken()
		if err != nil {
			return err
		}
		name := token.String()
		m, declared := members[name]
		if declared && (r.lenient || !seen[name]) {
			seen[name] = true
			if err := r.value(v.FieldByIndex(m.index), m.most); err != nil {
				return err
			}
			continue
		}
		if err := r.dec.SkipValue(); err != nil {
			return err
		}
		switch {
		case declared:
			r.fault("must be given once")
		case !r.lenient:
			r.fault("is unknown")
		}
	}
	_, err := r.dec.ReadToken()
	return err
}

// array reads the next value, an array. It skips the items after the maximum, so that a long list costs nothing.
func (r *bodyReader) array(v reflect.Value, most int) error {
	if _, err := r.dec.ReadToken(); err != nil {
		return err
	}
	v.Set(reflect.MakeSlice(v.Type(), 0, 0))
	known := len(r.faults.list)
	for n := 0; r.dec.PeekKind() != ']'; n++ {
		if most > 0 && n >= most {
			if err := r.dec.SkipValue(); err != nil {
				return err
			}
			if n == most { // this fault replaces those of the items
				r.faults.truncate(known)
				r.faults.add(fieldPath(r.dec.StackPointer().Parent()), tooManyItems(most))
			}
			continue
		}
		item := reflect.New(v.Type().Elem()).Elem()
		if err := r.value(item, 0); err != nil {
			return err
		}
		v.Set(reflect.Append(v, item))
	}
	_, err := r.dec.ReadToken()
	return err
}

// scalar reads the next value as a whole.
func (r *bodyReader) scalar(v reflect.Value) error {
	raw, err := r.dec.ReadValue()
	if err != nil {
		return err
	}
	switch err := json.Unmarshal(raw, v.Addr().Interface(), jsontext.AllowDuplicateNames(true)); {
	case err != nil:
		message := "must be " + jsonTypeName(v.Type())
		if m, ok := errors.AsType[callerError](err); ok {
			message = m.CallerMessage()
		}
		r.fault(message)
	case isBlank(v):
		r.faults.markBlank(fieldPath(r.dec.StackPointer()), notBlank)
		fallthrough
	default:
		if enum, ok := v.Interface().(Enum); ok && !r.lenient && !EnumHas(enum, v.String()) {
			r.fault(enumMessage(enum))
		}
	}
	return nil
}

func isBlank(v reflect.Value) bool {
	return v.IsZero() || v.Kind() == reflect.String && strings.TrimSpace(v.String()) == ""
}

// fault adds a fault of the value that was read last.
func (r *bodyReader) fault(message string) {
	r.faults.add(fieldPath(r.dec.StackPointer()), message)
}

// callerError is an error with a text for callers.
type callerError interface {
	error
	CallerMessage() string
}

// readsOwnJSON reports whether a type unmarshals itself.
func readsOwnJSON(t reflect.Type) bool {
	t = reflect.PointerTo(t)
	return t.Implements(textType) || t.Implements(reflect.TypeFor[json.Unmarshaler]())
}

// member is a member of an object.
type member struct {
	index []int
	most  int // items of an array; 0 for no bound
}

// memberCache holds the members by type.
var memberCache sync.Map

// membersOf returns the members of a struct by their names.
func membersOf(t reflect.Type) map[string]member {
	if cached, ok := memberCache.Load(t); ok {
		return cached.(map[string]member)
	}
	members := map[string]member{}
	for _, f := range reflect.VisibleFields(t) {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name == "" || name == "-" || !f.IsExported() {
			continue
		}
		members[name] = member{index: f.Index, most: maxFromTag(f.Tag)}
	}
	memberCache.Store(t, members)
	return members
}

// maxFromTag returns the parameter of a field's rule max; 0 for none.
func maxFromTag(tag reflect.StructTag) int {
	for rule := range strings.SplitSeq(tag.Get("validate"), ",") {
		if param, ok := strings.CutPrefix(rule, "max="); ok {
			most, _ := strconv.Atoi(param)
			return most
		}
		if rule == "dive" { // the rules after it are those of items
			break
		}
	}
	return 0
}

func tooManyItems(most int) string { return fmt.Sprintf("must hold at most %d items", most) }

const (
	notNull  = "must not be null"
	notBlank = "must not be blank"
	badJSON  = "must be valid JSON in UTF-8"
)

// checkObject reports whether a body is exactly one JSON object in UTF-8, and adds the fault if not. It adds a fault for
// members with a NUL too, which PostgreSQL's texts cannot hold.
func checkObject(body []byte, f *faults) bool {
	refuse := func(message string) bool {
		f.add("body", message)
		return false
	}
	dec := jsontext.NewDecoder(bytes.NewBuffer(body), jsontext.AllowDuplicateNames(true))
	if kind := dec.PeekKind(); kind != '{' {
		if kind != 0 {
			return refuse("must be a JSON object")
		}
		if _, err := dec.ReadToken(); errors.Is(err, io.EOF) {
			return refuse("must be a JSON object, but is empty")
		}
		return refuse(badJSON)
	}

	mayHoldNUL := bytes.Contains(body, []byte(`\u0000`)) // as itself it is no JSON
	for {
		token, err := dec.ReadToken()
		if err == io.EOF {
			return true
		}
		if err != nil {
			return refuse(badJSON)
		}
		if mayHoldNUL && token.Kind() == '"' && strings.ContainsRune(token.String(), 0) {
			f.add(fieldPath(dec.StackPointer()), "must not hold a NUL")
		}
		if dec.StackDepth() == 0 && dec.PeekKind() != 0 {
			return refuse("must be one JSON object and nothing after it")
		}
	}
}

// fieldPath converts a JSON pointer to the path in errors: /user_ids/3 is user_ids[3].
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

// optional is any domain.Optional.
type optional interface {
	IsZero() bool
	// Pointer returns what the member's rules apply to: a pointer to the value, nil for an absent member.
	Pointer() any
}

// optionalPointer is a pointer to any domain.Optional.
type optionalPointer interface {
	// Open marks the member as present and returns a pointer to its value.
	Open() any
}

// OptionalElement returns the value's type of a domain.Optional, and whether it is nullable; nil for other types.
func OptionalElement(t reflect.Type) (of reflect.Type, nullable bool) {
	if _, ok := reflect.Zero(t).Interface().(optional); !ok {
		return nil, false
	}
	value, _ := t.FieldByName("Value")
	if of = value.Type; of.Kind() == reflect.Pointer {
		return of.Elem(), true
	}
	return of, false
}
