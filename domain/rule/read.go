package rule

import (
	"bytes"
	"encoding"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"partnerapi/domain"
)

// Reader reads a JSON object into a struct. The zero value is the strict one.
type Reader struct {
	// Lenient accepts unknown and repeated members, and null for an absent member. It leaves the values of enums to Check.
	Lenient bool
	// NullIsAbsent accepts null for an absent member.
	NullIsAbsent bool
	// Skip is a member that is not read; empty for none.
	Skip string
}

// Read reads text into the struct that dst points to, and adds its faults to f. It returns which members are given;
// with NullIsAbsent, a member that is null is not.
func (r Reader) Read(text []byte, dst any, f *Faults) (given map[string]bool) {
	if !checkObject(text, f) {
		return nil
	}
	dec := jsontext.NewDecoder(bytes.NewBuffer(text), jsontext.AllowDuplicateNames(true))
	v := &valueReader{Reader: r, dec: dec, faults: f}
	given, err := v.object(reflect.ValueOf(dst).Elem())
	if err != nil {
		f.Add(Whole, badJSON)
	}
	return given
}

// valueReader reads values and collects their faults. The text was checked to be a well-formed JSON object.
type valueReader struct {
	Reader
	dec    *jsontext.Decoder
	faults *Faults
}

// value reads the next value into v. most is the maximum number of items of an array; 0 for no bound. Only malformed
// JSON is an error.
func (r *valueReader) value(v reflect.Value, most int) error {
	if r.dec.PeekKind() == 'n' {
		return r.null(v)
	}
	if o, ok := v.Addr().Interface().(domain.AnyOptional); ok {
		v = reflect.ValueOf(o.Open()).Elem()
	}
	if v.Kind() == reflect.Pointer {
		v.Set(reflect.New(v.Type().Elem()))
		v = v.Elem()
	}

	kind := r.dec.PeekKind()
	switch {
	case v.Kind() == reflect.Struct && kind == '{' && (len(membersOf(v.Type())) > 0 || !readsOwnJSON(v.Type())):
		_, err := r.object(v)
		return err
	case v.Kind() == reflect.Slice && kind == '[' && !readsOwnJSON(v.Type()):
		return r.array(v, most)
	}
	return r.scalar(v)
}

// null reads a null: the value of a nullable member; for others a fault, or absent to a lenient reader. An item of an
// array is never null.
func (r *valueReader) null(v reflect.Value) error {
	if err := r.dec.SkipValue(); err != nil {
		return err
	}
	within, _ := r.dec.StackIndex(r.dec.StackDepth())
	nullable := v.Kind() == reflect.Pointer
	o, isOptional := v.Addr().Interface().(domain.AnyOptional)
	lenient := r.Lenient || r.NullIsAbsent
	if isOptional {
		_, nullable = OptionalElement(v.Type())
	}
	switch {
	case within == '[', !nullable && !lenient:
		r.fault(notNull)
	case !lenient:
		r.faults.markBlank(fieldPath(r.dec.StackPointer()), notNull)
	}
	if isOptional && nullable {
		o.Open()
	}
	return nil
}

// object reads the next value, an object, and returns which of its members are given.
func (r *valueReader) object(v reflect.Value) (given map[string]bool, err error) {
	if _, err := r.dec.ReadToken(); err != nil {
		return nil, err
	}
	members, seen := membersOf(v.Type()), map[string]bool{}
	for r.dec.PeekKind() != '}' {
		token, err := r.dec.ReadToken()
		if err != nil {
			return nil, err
		}
		name := token.String()
		m, declared := members[name]
		_, again := seen[name]
		if declared && (r.Lenient || !again) {
			seen[name] = !r.NullIsAbsent || r.dec.PeekKind() != 'n'
			if err := r.value(v.FieldByIndex(m.index), m.most); err != nil {
				return nil, err
			}
			continue
		}
		if err := r.dec.SkipValue(); err != nil {
			return nil, err
		}
		switch {
		case declared || again:
			r.fault("must be given once")
		case name == r.Skip && name != "" && r.dec.StackDepth() == 1:
			seen[name] = true
		case !r.Lenient:
			r.fault("is unknown")
		}
	}
	_, err = r.dec.ReadToken()
	return seen, err
}

// array reads the next value, an array. It skips the items after the maximum, so that a long list costs nothing.
func (r *valueReader) array(v reflect.Value, most int) error {
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
				r.faults.Add(fieldPath(r.dec.StackPointer().Parent()), TooManyItems(most))
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
func (r *valueReader) scalar(v reflect.Value) error {
	raw, err := r.dec.ReadValue()
	if err != nil {
		return err
	}
	switch err := unmarshal(raw, v); {
	case err != nil:
		message := "must be " + jsonTypeName(v.Type())
		if fault, ok := errors.AsType[domain.Fault](err); ok {
			message = string(fault)
		}
		r.fault(message)
	case isBlank(v):
		r.faults.markBlank(fieldPath(r.dec.StackPointer()), notBlank)
		fallthrough
	default:
		if enum, ok := v.Interface().(Enum); ok && !r.Lenient && !EnumHas(enum, v.String()) {
			r.fault(EnumMessage(enum))
		}
	}
	return nil
}

// unmarshal sets v to a JSON value. It reads texts without package json where it can, which takes a fifth of the time.
func unmarshal(raw jsontext.Value, v reflect.Value) error {
	into := v.Addr().Interface()
	_, readsItself := into.(json.Unmarshaler)
	_, isTime := into.(*time.Time) // which package json reads its own way
	if raw.Kind() != '"' || readsItself && !isTime {
		return json.Unmarshal(raw, into, jsontext.AllowDuplicateNames(true))
	}
	text, err := jsontext.AppendUnquote(nil, raw)
	if err != nil {
		return err
	}
	switch into := into.(type) {
	case *time.Time:
		at, err := domain.ParseTime(string(text))
		*into = at.Truncate(time.Microsecond) // which is what PostgreSQL keeps
		return err
	case *domain.Time:
		return unmarshal(raw, reflect.ValueOf(&into.Time).Elem())
	case encoding.TextUnmarshaler:
		return into.UnmarshalText(text)
	}
	if v.Kind() == reflect.String {
		v.SetString(string(text))
		return nil
	}
	return json.Unmarshal(raw, into)
}

func isBlank(v reflect.Value) bool {
	return v.IsZero() || v.Kind() == reflect.String && strings.TrimSpace(v.String()) == ""
}

// fault adds a fault of the value that was read last.
func (r *valueReader) fault(message string) {
	r.faults.Add(fieldPath(r.dec.StackPointer()), message)
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
		members[name] = member{index: f.Index, most: MaxFromTag(f.Tag)}
	}
	memberCache.Store(t, members)
	return members
}

// MaxFromTag returns the parameter of a field's rule max; 0 for none.
func MaxFromTag(tag reflect.StructTag) int {
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

// TooManyItems says that a list exceeds its maximum number of items.
func TooManyItems(most int) string { return fmt.Sprintf("must hold at most %d items", most) }

const (
	notNull  = "must not be null"
	notBlank = "must not be blank"
	badJSON  = "must be valid JSON in UTF-8"
)

// checkObject reports whether a body is exactly one JSON object in UTF-8, and adds the fault if not. It adds a fault for
// members with a NUL too, which PostgreSQL's texts cannot hold.
func checkObject(body []byte, f *Faults) bool {
	refuse := func(message string) bool {
		f.Add(Whole, message)
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
		if errors.Is(err, io.EOF) {
			return true
		}
		if err != nil {
			return refuse(badJSON)
		}
		if mayHoldNUL && token.Kind() == '"' && strings.ContainsRune(token.String(), 0) {
			f.Add(fieldPath(dec.StackPointer()), "must not hold a NUL")
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
		return Whole
	}
	return path.String()
}

// OptionalElement returns the value's type of a domain.Optional, and whether it is nullable; nil for other types.
func OptionalElement(t reflect.Type) (of reflect.Type, nullable bool) {
	if _, ok := reflect.Zero(t).Interface().(Optional); !ok {
		return nil, false
	}
	value, _ := t.FieldByName("Value")
	if of = value.Type; of.Kind() == reflect.Pointer {
		return of.Elem(), true
	}
	return of, false
}
