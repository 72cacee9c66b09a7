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

// bodyReader reads one JSON object into a body, and collects what is wrong with
// its members. The text is known to be an object in well-formed JSON.
type bodyReader struct {
	dec *jsontext.Decoder
	// lenient lets unknown and repeated members pass, and takes null for a
	// member that is left out.
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

// value reads the next value into v. most is the greatest number of items of an
// array; 0 does not bound it. The error is one of the JSON itself.
func (r *bodyReader) value(v reflect.Value, most int) error {
	if r.dec.PeekKind() == 'n' {
		return r.null(v)
	}
	if o, ok := v.Addr().Interface().(opener); ok {
		v = reflect.ValueOf(o.Open()).Elem()
	}
	if v.Kind() == reflect.Pointer {
		v.Set(reflect.New(v.Type().Elem()))
		v = v.Elem()
	}

	kind := r.dec.PeekKind()
	switch {
	case hasOwnForm(v.Type()):
		return r.scalar(v)
	case v.Kind() == reflect.Struct && kind == '{':
		return r.object(v)
	case v.Kind() == reflect.Slice && kind == '[':
		return r.array(v, most)
	}
	return r.scalar(v)
}

// null reads a null: the value of a nullable member; for others a fault, or what
// a lenient reader takes for absent. It never stands for an item of an array.
func (r *bodyReader) null(v reflect.Value) error {
	if err := r.dec.SkipValue(); err != nil {
		return err
	}
	within, _ := r.dec.StackIndex(r.dec.StackDepth())
	nullable := v.Kind() == reflect.Pointer
	o, isOptional := v.Addr().Interface().(opener)
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

// object reads the members of an object that is next.
func (r *bodyReader) object(v reflect.Value) error {
	if _, err := r.dec.ReadToken(); err != nil {
		return err
	}
	members, given := membersOf(v.Type()), map[string]bool{}
	for r.dec.PeekKind() != '}' {
		token, err := r.dec.ReadToken()
		if err != nil {
			return err
		}
		name := token.String()
		m, known := members[name]
		if known && (r.lenient || !given[name]) {
			given[name] = true
			if err := r.value(v.FieldByIndex(m.index), m.most); err != nil {
				return err
			}
			continue
		}
		if err := r.dec.SkipValue(); err != nil {
			return err
		}
		switch {
		case known:
			r.fault("must be given once")
		case !r.lenient:
			r.fault("is unknown")
		}
	}
	_, err := r.dec.ReadToken()
	return err
}

// array reads the items of an array that is next. It stops at the greatest
// number of them, before a long list costs anything.
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
			if n == most { // which stands for what is wrong with the items
				r.faults.cut(known)
				r.faults.add(fieldPath(r.dec.StackPointer().Parent()), manyItems(most))
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

// scalar reads a value as a whole.
func (r *bodyReader) scalar(v reflect.Value) error {
	raw, err := r.dec.ReadValue()
	if err != nil {
		return err
	}
	switch err := json.Unmarshal(raw, v.Addr().Interface(), jsontext.AllowDuplicateNames(true)); {
	case err != nil:
		r.fault(scalarFault(err, v.Type()))
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

// fault says what is wrong with the value that was read last.
func (r *bodyReader) fault(message string) {
	r.faults.add(fieldPath(r.dec.StackPointer()), message)
}

// messenger is an error whose text is meant for callers.
type messenger interface {
	error
	CallerMessage() string
}

func scalarFault(err error, t reflect.Type) string {
	if m, ok := errors.AsType[messenger](err); ok {
		return m.CallerMessage()
	}
	return "must be " + typeName(t)
}

// hasOwnForm reports whether a type reads its JSON by itself.
func hasOwnForm(t reflect.Type) bool {
	t = reflect.PointerTo(t)
	return t.Implements(textType) || t.Implements(reflect.TypeFor[json.Unmarshaler]())
}

// member is a member of an object.
type member struct {
	index []int
	most  int // items of an array; 0 for no bound
}

// memberCache holds the members of each type that was read.
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
		members[name] = member{index: f.Index, most: maxRule(f.Tag)}
	}
	memberCache.Store(t, members)
	return members
}

// maxRule is the bound of a field's rule max; 0 for none.
func maxRule(tag reflect.StructTag) int {
	for rule := range strings.SplitSeq(tag.Get("validate"), ",") {
		if param, ok := strings.CutPrefix(rule, "max="); ok {
			most, _ := strconv.Atoi(param)
			return most
		}
		if rule == "dive" { // whose rules are the items'
			break
		}
	}
	return 0
}

func manyItems(most int) string { return fmt.Sprintf("must hold at most %d items", most) }

const (
	notNull  = "must not be null"
	notBlank = "must not be blank"
	badJSON  = "must be valid JSON in UTF-8"
)

// checkObject reports a body that is not exactly one JSON object in UTF-8: it is
// then false. It also reports members that hold a NUL, which PostgreSQL's texts
// cannot.
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
