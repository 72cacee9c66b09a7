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
	"unicode/utf8"

	"partnerapi/domain"
	"partnerapi/domain/rule"
)

// Input describes the named parts of an operation's input: a struct with any of the fields Path, Query and Body, each
// bound from its own source only.
//
// The fields of Path and Query carry the tags path:"name" and query:"name", or are embedded structs whose fields do; a
// query field may carry default:"text". Fields without a tag are in-process only: no surface binds them. Body is what a
// JSON object is decoded into.
type Input struct {
	Type  reflect.Type
	Path  []Param
	Query []Param
	// Body is nil where the operation takes none. OptionalBody (the tag optional of the part) accepts a request without
	// a body as one with an empty object.
	Body         reflect.Type
	OptionalBody bool

	// filters is Query without limit and cursor.
	filters []Param
	body    []int // the index of the field Body; nil if there is none
	weight  int64
	// dryRun is the index of the body's member dry_run; nil if there is none.
	dryRun []int
	rules  *rule.Rules
	// creation is the input of the operation that creates what this one changes (Set.InputOf); nil if it is not known.
	creation *Input
}

// Param is one parameter of a path or a query.
type Param struct {
	Name string
	Type reflect.Type
	// Tag is the field's tag: its rules (validate), default and doc.
	Tag reflect.StructTag

	index  []int
	since  string // the tag since; empty if all releases have the parameter
	maxLen int    // in characters, by the rule max; 0 for no limit
	isList bool
	// isEmail is true for a parameter with the rule email.
	isEmail bool
	// fallback is the text of the default; defaulted reports whether there is one.
	fallback  string
	defaulted bool
}

// Weigher is a body that takes more memory than its bytes. Weight returns the factor by which each byte counts while
// the request is in progress; it is 1 for other bodies.
type Weigher interface{ Weight() int64 }

// Weight returns the factor by which each byte of the body counts (see Weigher); 0 for an input without a body.
func (in *Input) Weight() int64 { return in.weight }

// Describe describes an input's type. A parameter that cannot be bound is a programming error, and panics.
func Describe(t reflect.Type) *Input {
	in := &Input{Type: t, rules: rule.Of(t)}
	for f := range t.Fields() {
		switch f.Name {
		case "Path":
			in.Path = params(f.Type, "path", f.Index)
		case "Query":
			in.Query = params(f.Type, "query", f.Index)
			in.filters = slices.DeleteFunc(slices.Clone(in.Query), func(p Param) bool { return p.Name == "limit" || p.Name == "cursor" })
		case "Body":
			in.Body, in.body = f.Type, f.Index
			in.OptionalBody = f.Tag.Get("optional") == "true"
			in.weight = 1
			in.dryRun = dryRunOf(f)
			if w, ok := reflect.New(f.Type).Interface().(Weigher); ok {
				in.weight = w.Weight()
			}
		}
	}
	return in
}

// dryRunOf returns the index, in the input, of a body's member dry_run, a bool; nil if there is none.
func dryRunOf(body reflect.StructField) []int {
	if body.Type.Kind() != reflect.Struct {
		return nil
	}
	for _, f := range reflect.VisibleFields(body.Type) {
		if rule.WireName(f) == "dry_run" && f.Type.Kind() == reflect.Bool {
			return append(slices.Clone(body.Index), f.Index...)
		}
	}
	return nil
}

// HasDryRun reports whether the body has the member dry_run.
func (in *Input) HasDryRun() bool { return in.dryRun != nil }

// IsDryRun reports whether an input asks for a dry run.
func (in *Input) IsDryRun(input any) bool {
	return in.dryRun != nil && reflect.ValueOf(input).Elem().FieldByIndex(in.dryRun).Bool()
}

// requiredSince returns the name of a parameter or field of the body that is required and has the tag since, so that a
// release would require what it does not know; empty if there is none.
func (in *Input) requiredSince() string {
	for _, part := range []string{"Path", "Query", "Body"} {
		f, ok := in.Type.FieldByName(part)
		if !ok || f.Type.Kind() != reflect.Struct {
			continue
		}
		for _, f := range reflect.VisibleFields(f.Type) {
			rules := strings.Split(f.Tag.Get("validate"), ",")
			optional, _ := rule.OptionalElement(f.Type) // "filled" then only concerns one that is given
			required := optional == nil && (slices.Contains(rules, "required") || slices.Contains(rules, "filled"))
			if required && !V2_0.Includes(f.Tag.Get("since")) {
				return rule.WireName(f)
			}
		}
	}
	return ""
}

// params lists the parameters among the fields of t, the part Path or Query, and of the structs that it embeds. tag is
// the tag with a parameter's name, and index that of t in the input. A parameter that cannot be bound panics.
func params(t reflect.Type, tag string, index []int) (list []Param) {
	for i := range t.NumField() {
		f := t.Field(i)
		fieldIndex := append(slices.Clone(index), i)
		if f.Anonymous && f.Type.Kind() == reflect.Struct {
			list = append(list, params(f.Type, tag, fieldIndex)...)
			continue
		}
		name := f.Tag.Get(tag)
		if name == "" {
			continue
		}
		p := Param{Name: name, Type: f.Type, Tag: f.Tag, index: fieldIndex, since: f.Tag.Get("since"), isList: isListParam(f.Type)}
		p.maxLen = rule.MaxFromTag(f.Tag)
		p.isEmail = slices.Contains(strings.Split(f.Tag.Get("validate"), ","), "email")
		p.fallback, p.defaulted = f.Tag.Lookup("default")
		if !isBindable(f.Type) {
			panic(fmt.Sprintf("parameter %s: a %s cannot be bound", name, f.Type))
		}
		list = append(list, p)
	}
	return list
}

// matchPath returns an error unless path and the Path part have the same parameters.
func (in *Input) matchPath(path string) error {
	named := map[string]bool{}
	for segment := range strings.SplitSeq(path, "/") {
		if name, ok := strings.CutPrefix(segment, ":"); ok {
			named[name] = true
		}
	}
	for _, p := range in.Path {
		if !named[p.Name] {
			return fmt.Errorf("its path does not name %s", p.Name)
		}
		delete(named, p.Name)
	}
	for name := range named {
		return fmt.Errorf("its input has no path parameter %s", name)
	}
	return nil
}

// New returns a pointer to an input of this type that holds the parameters' defaults. An invalid default panics.
func (in *Input) New() any {
	v := reflect.New(in.Type)
	for _, p := range in.Query {
		if p.defaulted {
			if err := setText(v.Elem().FieldByIndex(p.index), p.fallback); err != nil {
				panic(fmt.Sprintf("default of %s: %v", p.Name, err))
			}
		}
	}
	return v.Interface()
}

// Request is what an input is bound from.
type Request struct {
	// Path returns the text of a path parameter.
	Path  func(name string) string
	Query url.Values
	// Body is the body; read only when the input has a Body.
	Body []byte
	// Arguments says that the query was built from a tool's arguments, not written by the caller.
	Arguments bool
	// Coding is the content coding that the request names for its body; empty for none.
	Coding string
	// Release is the release whose parameters and members of bodies are known; zero for all of them.
	Release Release
	// Lenient accepts unknown fields of the body, ignores a body that is not taken, and checks no rules of tags.
	Lenient bool
	// Faults are faults that were found before; Bind reports them with its own.
	Faults []domain.FieldError
}

// Bind fills dst, a pointer to an input, from the request. A path parameter over its rule max, or an unreadable id of
// an object (its type has a Noun), is left zero: the operation returns 404, after its earlier checks (decisions 1.2,
// 2.4). An empty query parameter is absent, except that an empty list of ids selects nothing.
//
// A body with a Coding is UnsupportedEncoding; in a Lenient request, only if it is not JSON, and then InvalidRequest.
// All other faults are InvalidRequest, which names every wrong parameter and field of the body, at most 100. Unless the
// request is Lenient, Bind also checks the rules of tags if the input has a body, or if it found faults.
func (in *Input) Bind(dst any, r Request) error {
	if !r.Lenient && in.Body != nil && len(r.Body) > 0 && r.Coding != "" {
		return ErrEncoded(r.Coding)
	}
	v := reflect.ValueOf(dst).Elem()
	f := &rule.Faults{}
	for _, fault := range r.Faults {
		f.Add(fault.Field, fault.Message)
	}
	for _, p := range in.Path {
		text := r.Path(p.Name)
		if p.maxLen > 0 && utf8.RuneCountInString(text) > p.maxLen { // longer than that of any object
			continue
		}
		if err := setText(v.FieldByIndex(p.index), text); err != nil && !isObjectID(p.Type) {
			f.Add(p.Name, err.Error())
		}
	}
	in.bindQuery(v, r, f)
	in.bindBody(v, r, f)
	// Otherwise the rules of tags are checked by Run only.
	if !r.Lenient && (in.Body != nil || len(f.List()) > 0) {
		if err := in.check(dst, f); err != nil {
			return err
		}
	}
	return f.Err()
}

// isObjectID reports whether a type is that of the ids of a kind of objects.
func isObjectID(t reflect.Type) bool {
	_, ok := reflect.Zero(t).Interface().(interface{ Noun() string })
	return ok
}

// ListParam is a type of comma-separated lists. A repeated parameter is one list; an empty one has no items.
type ListParam interface {
	encoding.TextUnmarshaler
	// MaxItems returns the maximum number of items.
	MaxItems() int
}

// isListParam reports whether a type, or the type that it points to, is a ListParam.
func isListParam(t reflect.Type) bool {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	return reflect.PointerTo(t).Implements(reflect.TypeFor[ListParam]())
}

// isBindable reports whether setText can set a value of a type, or of the type that it points to.
func isBindable(t reflect.Type) bool {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if reflect.PointerTo(t).Implements(reflect.TypeFor[encoding.TextUnmarshaler]()) {
		return true
	}
	return t.Kind() == reflect.String || t.Kind() == reflect.Int || t.Kind() == reflect.Bool
}

// exceedsItems reports whether a comma-separated list has more than maxItems items that are not blank.
func exceedsItems(list string, maxItems int) bool {
	for item := range strings.SplitSeq(list, ",") {
		if strings.TrimSpace(item) == "" {
			continue
		}
		if maxItems--; maxItems < 0 {
			return true
		}
	}
	return false
}

// setText sets a parameter from its text; a pointer gets a new value. The error says what the text must be.
func setText(v reflect.Value, text string) error {
	if !utf8.ValidString(text) || strings.ContainsRune(text, 0) {
		return errors.New("must be valid UTF-8 without NUL")
	}
	if v.Kind() == reflect.Pointer {
		v.Set(reflect.New(v.Type().Elem()))
		v = v.Elem()
	}

	if list, ok := v.Addr().Interface().(ListParam); ok && exceedsItems(text, list.MaxItems()) {
		return errors.New(rule.TooManyItems(list.MaxItems()))
	}
	if u, ok := v.Addr().Interface().(encoding.TextUnmarshaler); ok {
		return u.UnmarshalText([]byte(text))
	}

	switch v.Kind() { // isBindable allows no others
	case reflect.String:
		v.SetString(text)
	case reflect.Int:
		n, err := strconv.Atoi(text)
		if err != nil || strconv.Itoa(n) != text { // the second rejects +5 and 05
			return errors.New("must be an integer")
		}
		v.SetInt(int64(n))
	case reflect.Bool:
		if text != "true" && text != "false" {
			return errors.New("must be true or false")
		}
		v.SetBool(text == "true")
	}
	return nil
}
