package op

import (
	"cmp"
	"encoding"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"

	"github.com/go-playground/validator/v10"

	"partnerapi/domain"
)

// Enum is a type of text with a fixed list of values. A field of such a type
// carries the rule enum.
type Enum interface{ Values() []string }

// rules checks inputs by their validate tags. It is built once; registering
// the Optional types of an input happens while operations are declared, before
// anything is validated.
var rules = newRules()

func newRules() *validator.Validate {
	v := validator.New(validator.WithRequiredStructEnabled())
	v.RegisterTagNameFunc(WireName)
	register := func(tag string, fn validator.Func) {
		if err := v.RegisterValidation(tag, fn); err != nil {
			panic(err) // a table of this package is wrong
		}
	}
	register("name", func(f validator.FieldLevel) bool { return domain.CheckName(f.Field().String()) == "" })
	register("email", func(f validator.FieldLevel) bool {
		_, ok := domain.CleanEmail(f.Field().String())
		return ok
	})
	register("endpoint", func(f validator.FieldLevel) bool { return domain.CheckWebhookURL(f.Field().String()) == nil })
	register("filled", func(f validator.FieldLevel) bool { return strings.TrimSpace(f.Field().String()) != "" })
	register("enum", func(f validator.FieldLevel) bool {
		enum, ok := f.Field().Interface().(Enum)
		return ok && EnumHas(enum, f.Field().String())
	})
	register("between", func(f validator.FieldLevel) bool {
		var low, high int64
		_, err := fmt.Sscanf(f.Param(), "%d %d", &low, &high)
		return err == nil && f.Field().Int() >= low && f.Field().Int() <= high
	})
	return v
}

// EnumHas reports whether text is one of the enum's values.
func EnumHas(enum Enum, text string) bool {
	for _, value := range enum.Values() {
		if value == text {
			return true
		}
	}
	return false
}

func enumMessage(enum Enum) string { return "must be one of " + strings.Join(enum.Values(), ", ") }

// WireName is the name that callers know a field by.
func WireName(f reflect.StructField) string {
	for _, tag := range []string{"json", "query", "path"} {
		if name, _, _ := strings.Cut(f.Tag.Get(tag), ","); name != "" && name != "-" {
			return name
		}
	}
	return ""
}

// registeredOptionals are the Optional types that the rules know.
var registeredOptionals = struct {
	sync.Mutex
	types map[reflect.Type]bool
}{types: map[reflect.Type]bool{}}

// registerOptionals teaches the rules the Optional types of a body. Each type is
// registered once: operations may be declared again while others are called.
func registerOptionals(body reflect.Type) {
	if body.Kind() != reflect.Struct {
		return
	}

	registeredOptionals.Lock()
	defer registeredOptionals.Unlock()
	for i := range body.NumField() {
		t := body.Field(i).Type
		zero := reflect.Zero(t).Interface()
		if _, ok := zero.(optional); ok && !registeredOptionals.types[t] {
			rules.RegisterCustomTypeFunc(func(v reflect.Value) any { return v.Interface().(optional).Pointer() }, zero)
			registeredOptionals.types[t] = true
		}
	}
}

// hasRules reports whether a type, or one within it, has a rule for a field.
func hasRules(t reflect.Type) bool {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t.Kind() != reflect.Struct {
		return false
	}
	for _, f := range reflect.VisibleFields(t) {
		if f.IsExported() && (f.Tag.Get("validate") != "" || hasRules(f.Type)) {
			return true
		}
	}
	return false
}

// Validate brings the names and emails of an input into the form that they are
// stored in, and checks the input by its tags and that a PATCH changes
// something. The errors are InvalidRequest and name every field that is wrong.
func (in *Input) Validate(input any) error {
	f := &faults{}
	if err := in.check(input, f); err != nil {
		return err
	}
	return f.err()
}

// check is Validate, for an input of which some faults are known. It names no
// field twice, and nothing inside what could not be read.
func (in *Input) check(input any, f *faults) error {
	v := reflect.ValueOf(input).Elem()
	for _, c := range in.cleaned {
		c.clean(v)
	}
	var err error
	if in.hasRules {
		err = rules.Struct(input)
	}
	if err == nil {
		if len(f.list) == 0 && isEmptyPatch(v) {
			f.add("body", "must name at least one field to change")
		}
		return nil
	}
	broken, ok := err.(validator.ValidationErrors)
	if !ok {
		return fmt.Errorf("validate %T: %w", input, err)
	}
	unread := f.named["body"]
	for _, fault := range broken {
		if unread && strings.Contains(fault.Namespace(), ".Body.") {
			continue
		}
		if path := faultPath(fault); !f.hasParentFault(path) {
			f.add(path, faultMessage(fault, f.blank[path]))
		}
	}
	return nil
}

// isEmptyPatch reports a body made of Optionals of which none is given.
func isEmptyPatch(input reflect.Value) bool {
	body := input.FieldByName("Body")
	if !body.IsValid() || body.Kind() != reflect.Struct {
		return false
	}
	for i := range body.NumField() {
		if p, ok := body.Field(i).Interface().(optional); !ok || !p.IsZero() {
			return false
		}
	}
	return body.NumField() > 0
}

// faultPath is the path of a faulty field inside its part: the namespace
// without the input's type and the part's name.
func faultPath(fault validator.FieldError) string {
	path := fault.Namespace()
	for _, part := range []string{".Body.", ".Query.", ".Path."} {
		if _, rest, ok := strings.Cut(path, part); ok {
			path = rest
			break
		}
	}
	// An embedded struct stands in the namespace by its Go name.
	parts := strings.Split(path, ".")
	named := parts[:0]
	for _, p := range parts {
		if p != "" && (p[0] < 'A' || p[0] > 'Z') {
			named = append(named, p)
		}
	}
	return strings.Join(named, ".")
}

// faultMessage says what is wrong with a field. blank is the message for one
// that is required and was given, but as nothing; empty for others.
func faultMessage(fault validator.FieldError, blank string) string {
	kind := fault.Kind()
	switch fault.Tag() {
	case "filled", "required", "required_if":
		if text, _ := fault.Value().(string); blank == "" && text != "" {
			return notBlank
		}
		return cmp.Or(blank, "is required")
	case "name":
		text, _ := fault.Value().(string)
		return domain.CheckName(text)
	case "email":
		return "must be an email address"
	case "endpoint":
		text, _ := fault.Value().(string)
		if err := domain.CheckWebhookURL(text); err != nil {
			return err.Error()
		}
	case "unique":
		return "must hold no item twice"
	case "enum":
		if enum, ok := fault.Value().(Enum); ok {
			return enumMessage(enum)
		}
	case "between":
		return "must be between " + strings.Replace(fault.Param(), " ", " and ", 1)
	case "min":
		if kind == reflect.Slice {
			return "must hold at least " + fault.Param() + " items"
		}
		return "must be at least " + fault.Param()
	case "max":
		switch kind {
		case reflect.String:
			return "must be at most " + fault.Param() + " characters"
		case reflect.Slice:
			return "must hold at most " + fault.Param() + " items"
		}
		return "must be at most " + fault.Param()
	}
	return "is invalid"
}

var textType = reflect.TypeFor[encoding.TextUnmarshaler]()

// jsonTypeName says in a caller's words what JSON a Go type is read from.
func jsonTypeName(t reflect.Type) string {
	if object, ok := reflect.Zero(t).Interface().(interface{ Noun() string }); ok {
		return "the id of a " + object.Noun()
	}
	if t == reflect.TypeFor[domain.Time]() {
		return "an RFC 3339 date-time, such as 2026-01-31T08:00:00Z"
	}
	if t.Kind() == reflect.Struct && reflect.PointerTo(t).Implements(textType) {
		return "a string"
	}
	switch t.Kind() {
	case reflect.Bool:
		return "true or false"
	case reflect.Int, reflect.Int32, reflect.Int64:
		return "an integer"
	case reflect.String:
		return "a string"
	case reflect.Slice:
		return "an array"
	case reflect.Struct, reflect.Map:
		return "an object"
	case reflect.Pointer:
		return jsonTypeName(t.Elem())
	}
	return "of another type"
}

// cleaner brings a text of a body or a query into the form that it is stored in.
type cleaner struct {
	index     []int
	normalize func(string) string
}

// cleanersOf returns the cleaners of a part's fields: those with the rule name or
// email.
func cleanersOf(part reflect.Type, index []int) (list []cleaner) {
	if part.Kind() != reflect.Struct {
		return nil
	}
	for _, f := range reflect.VisibleFields(part) {
		rules := strings.Split(f.Tag.Get("validate"), ",")
		at := slices.Concat(index, f.Index)
		switch {
		case slices.Contains(rules, "email"):
			list = append(list, cleaner{at, cleanEmail})
		case slices.Contains(rules, "name") && slices.Contains(rules, "filled"):
			list = append(list, cleaner{at, cleanNameUnlessBlank})
		case slices.Contains(rules, "name"):
			list = append(list, cleaner{at, domain.CleanName})
		}
	}
	return list
}

// cleanNameUnlessBlank leaves a blank name as it is, for the rule filled to refuse.
func cleanNameUnlessBlank(text string) string {
	return cmp.Or(domain.CleanName(text), text)
}

// cleanEmail leaves what is no email address as it is, for the rule to refuse.
func cleanEmail(text string) string {
	if email, ok := domain.CleanEmail(text); ok {
		return email
	}
	return text
}

// clean brings the member of the input into its form. A pointer is replaced and
// not written through, as others may hold it too.
func (c cleaner) clean(input reflect.Value) {
	v := input.FieldByIndex(c.index)
	if _, ok := v.Interface().(optional); ok {
		v = v.FieldByName("Value")
	}
	if v.Kind() != reflect.Pointer {
		v.SetString(c.normalize(v.String()))
		return
	}
	if v.IsNil() {
		return
	}
	if text := v.Elem().String(); c.normalize(text) != text {
		v.Set(reflect.New(v.Type().Elem()))
		v.Elem().SetString(c.normalize(text))
	}
}
