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
	"unicode/utf8"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"partnerapi/domain"
)

// Reader reads a JSON object into a struct. The zero value is strict.
type Reader struct {
	// Lenient accepts unknown and repeated members, and null for every member. It leaves the check of enums to Check.
	Lenient bool
	// NullIsAbsent accepts null for every member, and treats a member that is null as absent.
	NullIsAbsent bool
	// UUIDs accepts a UUID, in upper or lower case, for an id in the form of v2.
	UUIDs bool
	// Includes reports whether a member is known whose tag since has the text; nil if all members are.
	Includes func(since string) bool
	// Fixed reports whether an unknown field of the object is one that cannot be changed; nil if none is.
	Fixed func(name string) bool
	// Skip is the name of an unknown field of the object that is no fault, but is given; empty for none.
	Skip string
}

// Read reads text into the struct that dst points to, and adds the faults to f. given has the members of text that are
// fields of dst, and the member r.Skip: false for a null with NullIsAbsent, otherwise true. It is nil if text is no
// object.
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

// valueReader reads values and collects their faults. checkObject has accepted the text.
type valueReader struct {
	Reader
	dec    *jsontext.Decoder
	faults *Faults
}

// value reads the next value into v, which may be an Optional or a pointer. maxItems is the maximum number of items of
// an array; 0 for no limit. A value that is not valid for v is added to the faults; only malformed JSON is an error.
func (r *valueReader) value(v reflect.Value, maxItems int) error {
	kind := r.dec.PeekKind()
	if kind == 'n' {
		return r.null(v)
	}
	if o, ok := v.Addr().Interface().(domain.AnyOptional); ok {
		v = reflect.ValueOf(o.MarkGiven()).Elem()
	}
	if v.Kind() == reflect.Pointer {
		v.Set(reflect.New(v.Type().Elem()))
		v = v.Elem()
	}

	switch {
	// A struct with members is read as an object, even if it has a text form as well, such as domain.ProgramCourse.
	case v.Kind() == reflect.Struct && kind == '{' && (len(membersOf(v.Type())) > 0 || !readsOwnJSON(v.Type())):
		_, err := r.object(v)
		return err
	case v.Kind() == reflect.Slice && kind == '[' && !readsOwnJSON(v.Type()):
		return r.array(v, maxItems)
	}
	return r.scalar(v)
}

// null reads a null. As an item of an array it is a fault. As a member it is accepted if the reader is Lenient or
// NullIsAbsent. Otherwise it is a fault if the member is not nullable; a nullable member is marked as blank: if it is
// required, Check then says that it must not be null. A nullable Optional becomes a given nil.
func (r *valueReader) null(v reflect.Value) error {
	if err := r.dec.SkipValue(); err != nil {
		return err
	}
	parent, _ := r.dec.StackIndex(r.dec.StackDepth())
	acceptsNull := r.Lenient || r.NullIsAbsent
	nullable := v.Kind() == reflect.Pointer
	o, isOptional := v.Addr().Interface().(domain.AnyOptional)
	if isOptional {
		_, nullable = OptionalElement(v.Type())
	}
	switch {
	case parent == '[', !nullable && !acceptsNull:
		r.fault(notNull)
	case !acceptsNull:
		r.faults.markBlank(fieldPath(r.dec.StackPointer()), notNull)
	}
	if isOptional && nullable {
		o.MarkGiven()
	}
	return nil
}

// object reads the next value, an object, into the struct v. given has those members that are fields of v and, in the
// outermost object, the member r.Skip: false for a null with NullIsAbsent, otherwise true. Any other member, and a
// repeated field, is a fault unless the reader is Lenient.
func (r *valueReader) object(v reflect.Value) (given map[string]bool, err error) {
	if _, err := r.dec.ReadToken(); err != nil {
		return nil, err
	}
	members := membersOf(v.Type())
	given = map[string]bool{}
	for r.dec.PeekKind() != '}' {
		token, err := r.dec.ReadToken()
		if err != nil {
			return nil, err
		}
		name := token.String()
		m, declared := members[name]
		if declared && m.since != "" && r.Includes != nil {
			declared = r.Includes(m.since)
		}
		_, repeated := given[name]
		if declared && (r.Lenient || !repeated) {
			given[name] = !r.NullIsAbsent || r.dec.PeekKind() != 'n'
			if err := r.value(v.FieldByIndex(m.index), m.maxItems); err != nil {
				return nil, err
			}
			continue
		}
		if err := r.dec.SkipValue(); err != nil {
			return nil, err
		}
		switch {
		case repeated:
			r.fault("must be given once")
		case name == r.Skip && name != "" && r.dec.StackDepth() == 1:
			given[name] = true
		case !r.Lenient && r.Fixed != nil && r.dec.StackDepth() == 1 && r.Fixed(name):
			r.fault("cannot be changed")
		case !r.Lenient:
			r.fault("is unknown")
		}
	}
	_, err = r.dec.ReadToken()
	return given, err
}

// array reads the next value, an array, into the slice v. It does not decode the items after the first maxItems (0 for
// no limit). If there are any, one fault of the array replaces the faults of its items.
func (r *valueReader) array(v reflect.Value, maxItems int) error {
	if _, err := r.dec.ReadToken(); err != nil {
		return err
	}
	v.Set(reflect.MakeSlice(v.Type(), 0, 0))
	before := len(r.faults.list)
	for n := 0; r.dec.PeekKind() != ']'; n++ {
		if maxItems > 0 && n >= maxItems {
			if err := r.dec.SkipValue(); err != nil {
				return err
			}
			if n == maxItems {
				r.faults.truncate(before)
				r.faults.Add(fieldPath(r.dec.StackPointer().Parent()), TooManyItems(maxItems))
			}
			continue
		}
		item := reflect.New(v.Type().Elem()).Elem()
		if err := r.value(item, 0); err != nil { // an array in an array has no limit
			return err
		}
		v.Set(reflect.Append(v, item))
	}
	_, err := r.dec.ReadToken()
	return err
}

// scalar reads the next value with unmarshal. A value that cannot be decoded is a fault, and so is a value of an enum
// that is not in its list, unless the reader is Lenient. A blank value is also marked as blank: if the member is
// required, Check then says that it must not be blank.
func (r *valueReader) scalar(v reflect.Value) error {
	raw, err := r.dec.ReadValue()
	if err != nil {
		return err
	}
	if id, ok := v.Addr().Interface().(interface{ SetUUID(string) bool }); ok && r.UUIDs {
		if text, err := jsontext.AppendUnquote(nil, raw); err == nil && id.SetUUID(string(text)) {
			return nil
		}
	}
	if err := unmarshal(raw, v); err != nil {
		message := "must be " + jsonTypeName(v.Type())
		if fault, ok := errors.AsType[domain.Fault](err); ok {
			message = string(fault)
		}
		r.fault(message)
		return nil
	}
	if isBlank(v) {
		r.faults.markBlank(fieldPath(r.dec.StackPointer()), notBlank)
	}
	if enum, ok := v.Interface().(Enum); ok && !r.Lenient && !EnumHas(enum, v.String()) {
		r.fault(EnumMessage(enum))
	}
	return nil
}

// unmarshal sets v to a JSON value. It decodes strings itself, unless their type has an UnmarshalJSON, because that
// takes a fifth of the time of package json. Times are those of domain.ParseTime, in whole microseconds. A number that
// is an integer may be written with a fraction or an exponent (PlainInteger).
func unmarshal(raw jsontext.Value, v reflect.Value) error {
	target := v.Addr().Interface()
	if raw.Kind() == '0' {
		raw = jsontext.Value(PlainInteger(string(raw)))
	}
	_, unmarshalsItself := target.(json.Unmarshaler)
	_, isTime := target.(*time.Time) // has an UnmarshalJSON, whose format is not the service's
	if raw.Kind() != '"' || unmarshalsItself && !isTime {
		return json.Unmarshal(raw, target, jsontext.AllowDuplicateNames(true))
	}
	text, err := jsontext.AppendUnquote(nil, raw)
	if err != nil {
		return err
	}
	switch target := target.(type) {
	case *time.Time:
		at, err := domain.ParseTime(string(text))
		*target = at.Truncate(time.Microsecond) // the precision of PostgreSQL
		return err
	case *domain.Time: // its UnmarshalText does not truncate
		return unmarshal(raw, reflect.ValueOf(&target.Time).Elem())
	case encoding.TextUnmarshaler:
		return target.UnmarshalText(text)
	}
	if v.Kind() == reflect.String {
		v.SetString(string(text))
		return nil
	}
	return json.Unmarshal(raw, target) // such as a string for an integer, which is an error
}

// isBlank reports whether a value is the zero value of its type, or a text of white space.
func isBlank(v reflect.Value) bool {
	return v.IsZero() || v.Kind() == reflect.String && strings.TrimSpace(v.String()) == ""
}

// fault adds a fault of the value that was read last.
func (r *valueReader) fault(message string) { r.faults.Add(fieldPath(r.dec.StackPointer()), message) }

// readsOwnJSON reports whether a type has an UnmarshalText or an UnmarshalJSON.
func readsOwnJSON(t reflect.Type) bool {
	t = reflect.PointerTo(t)
	return t.Implements(textType) || t.Implements(reflect.TypeFor[json.Unmarshaler]())
}

// member is a member of an object.
type member struct {
	index    []int // of the struct's field, for FieldByIndex
	maxItems int   // of an array; 0 for no limit
	since    string
}

// memberCache caches the result of membersOf for each type.
var memberCache sync.Map

// membersOf returns the members of a struct type by their JSON names: its exported fields, and those of embedded
// structs, that have a name in their tag json.
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
		members[name] = member{index: f.Index, maxItems: MaxFromTag(f.Tag), since: f.Tag.Get("since")}
	}
	memberCache.Store(t, members)
	return members
}

// MaxFromTag returns the parameter of a field's rule max; 0 if it has none, or only for its items, after dive.
func MaxFromTag(tag reflect.StructTag) int {
	for rule := range strings.SplitSeq(tag.Get("validate"), ",") {
		if param, ok := strings.CutPrefix(rule, "max="); ok {
			n, _ := strconv.Atoi(param)
			return n
		}
		if rule == "dive" {
			break
		}
	}
	return 0
}

// TooManyItems returns the message for an array with more than maxItems items.
func TooManyItems(maxItems int) string { return fmt.Sprintf("must contain at most %d items", maxItems) }

const (
	notNull       = "must not be null"
	notBlank      = "must not be blank"
	badJSON       = "must be valid JSON in UTF-8"
	halfCharacter = `must not contain half of a surrogate pair, such as \ud83d alone`
)

// maxDepth is the maximum nesting of objects and arrays in a body. Package jsontext rejects 10,000 levels.
const maxDepth = 1000

var tooDeep = fmt.Sprintf("must not be nested deeper than %d levels", maxDepth)

// malformed returns the message for a body that the decoder cannot read. Half of a surrogate pair is the only fault of
// a body that is valid JSON in UTF-8 by the grammar.
func malformed(body []byte) string {
	lenient := []jsontext.Options{jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true)}
	if utf8.Valid(body) && jsontext.Value(body).IsValid(lenient...) {
		return halfCharacter
	}
	return badJSON
}

// checkObject reports whether a body is exactly one JSON object in UTF-8; if not, it adds a fault. It also adds a fault
// for each string with a NUL character, which texts in PostgreSQL cannot contain, but still returns true.
func checkObject(body []byte, f *Faults) bool {
	refuse := func(message string) bool {
		f.Add(Whole, message)
		return false
	}
	dec := jsontext.NewDecoder(bytes.NewBuffer(body), jsontext.AllowDuplicateNames(true))
	if kind := dec.PeekKind(); kind != '{' {
		if kind != 0 { // 0: no value, or malformed JSON
			return refuse("must be a JSON object")
		}
		if _, err := dec.ReadToken(); errors.Is(err, io.EOF) {
			return refuse("must be a JSON object, but is empty")
		}
		return refuse(malformed(body))
	}

	mayHoldNUL := bytes.Contains(body, []byte(`\u0000`)) // an unescaped NUL is invalid JSON
	for {
		token, err := dec.ReadToken()
		if errors.Is(err, io.EOF) {
			return true
		}
		if err != nil {
			return refuse(malformed(body))
		}
		if dec.StackDepth() > maxDepth {
			return refuse(tooDeep)
		}
		if mayHoldNUL && token.Kind() == '"' && strings.ContainsRune(token.String(), 0) {
			f.Add(fieldPath(dec.StackPointer()), "must not contain a NUL")
		}
		if dec.StackDepth() == 0 && dec.PeekKind() != 0 { // another value follows the object
			return refuse("must be one JSON object and nothing after it")
		}
	}
}

// fieldPath converts a JSON pointer to the path in errors: /user_ids/3 to user_ids[3], and the empty pointer to Whole.
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

// OptionalElement returns the type of the value of a domain.Optional, and whether the value is nullable; nil for other
// types. For a nullable value, which is a pointer, it returns the type that it points to.
func OptionalElement(t reflect.Type) (element reflect.Type, nullable bool) {
	if _, ok := reflect.Zero(t).Interface().(Optional); !ok {
		return nil, false
	}
	value, _ := t.FieldByName("Value")
	if element = value.Type; element.Kind() == reflect.Pointer {
		return element.Elem(), true
	}
	return element, false
}
