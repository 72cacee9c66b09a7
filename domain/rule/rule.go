// Package rule reads and checks inputs by the rules in the tags of their fields, with the same message for the same
// fault everywhere: the inputs of operations, the records of an import, and signals.
//
// A field's tag validate lists its rules: rules of validator/v10, and these:
//
//	filled       the text is not blank
//	name         it is a name: without control characters, stored without white space around it
//	trim         it is stored without white space around it; a blank one is stored as null
//	email        it is an email address, stored in lower case
//	message_id   it is the id of an email, stored without angle brackets
//	endpoint     it is the URL of a webhook
//	header       it is the value of a header: visible ASCII characters, with spaces only between them
//	enum         it is one of the values of its type (Enum)
//	between=A B  it is an integer from A to B
//	epoch        the time is not before 1970
//	past         the time is at most domain.SignalLead ahead of now
package rule

import (
	"cmp"
	"context"
	"encoding"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/go-playground/validator/v10"

	"partnerapi/domain"
)

// Enum is a type of text with a fixed list of values. A field of such a type carries the rule enum.
type Enum interface{ Values() []string }

// checks validates inputs by their validate tags. The Optional types of inputs are registered with it while operations
// are declared, before any input is validated.
var checks = newChecks()

// newChecks returns a validator with the rules that this package adds, such as name. Its faults have the wire names of
// fields. The rule past takes the latest valid time from the context (latestKey).
func newChecks() *validator.Validate {
	v := validator.New(validator.WithRequiredStructEnabled())
	v.RegisterTagNameFunc(WireName)
	register := func(tag string, fn validator.Func) {
		if err := v.RegisterValidation(tag, fn); err != nil {
			panic(err) // a tag below is invalid
		}
	}
	register("name", func(f validator.FieldLevel) bool { return domain.CheckName(f.Field().String()) == "" })
	register("email", func(f validator.FieldLevel) bool {
		_, ok := domain.CleanEmail(f.Field().String())
		return ok
	})
	register("trim", func(validator.FieldLevel) bool { return true }) // its cleaner has done it
	register("endpoint", func(f validator.FieldLevel) bool { return domain.CheckWebhookURL(f.Field().String()) == nil })
	register("header", func(f validator.FieldLevel) bool { return isHeader(f.Field().String()) })
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
	v.RegisterCustomTypeFunc(func(v reflect.Value) any { return v.Interface().(domain.Time).Time }, domain.Time{})
	register("message_id", func(f validator.FieldLevel) bool { return domain.MessageKey(f.Field().String()) != "" })
	register("epoch", func(f validator.FieldLevel) bool { return f.Field().Interface().(time.Time).Unix() >= 0 })
	err := v.RegisterValidationCtx("past", func(ctx context.Context, f validator.FieldLevel) bool {
		latest := ctx.Value(latestKey{}).(time.Time)
		return !f.Field().Interface().(time.Time).After(latest)
	})
	if err != nil {
		panic(err)
	}
	return v
}

// isHeader reports whether a text is not empty and consists of visible ASCII characters, with spaces only between them.
func isHeader(text string) bool {
	invisible := func(r rune) bool { return r < ' ' || r > '~' }
	return text != "" && strings.Trim(text, " ") == text && !strings.ContainsFunc(text, invisible)
}

// Required is the message for a required field that is absent.
const Required = "is required"

// EnumHas reports whether text is one of the enum's values.
func EnumHas(enum Enum, text string) bool { return slices.Contains(enum.Values(), text) }

// EnumMessage returns the message for a text that is not one of the enum's values.
func EnumMessage(enum Enum) string { return OneOfMessage(enum.Values()) }

// OneOfMessage returns the message for a text that is not one of the values.
func OneOfMessage(values []string) string { return "must be one of " + strings.Join(values, ", ") }

// WireName returns the name of a field in its tag json, query or path; "" if it has none.
func WireName(f reflect.StructField) string {
	for _, tag := range []string{"json", "query", "path"} {
		if name, _, _ := strings.Cut(f.Tag.Get(tag), ","); name != "" && name != "-" {
			return name
		}
	}
	return ""
}

// registeredOptionals holds the Optional types that are registered with checks.
var registeredOptionals = struct {
	sync.Mutex
	types map[reflect.Type]bool
}{types: map[reflect.Type]bool{}}

// registerOptionals registers the Optional types of a struct's fields with checks, which then applies the rules of such
// a field to its value (pointerOf). It registers each type once: registering is not safe while inputs are validated,
// and operations may be declared again at that time.
func registerOptionals(structType reflect.Type) {
	registeredOptionals.Lock()
	defer registeredOptionals.Unlock()
	for i := range structType.NumField() {
		t := structType.Field(i).Type
		zero := reflect.Zero(t).Interface()
		if _, ok := zero.(Optional); ok && !registeredOptionals.types[t] {
			checks.RegisterCustomTypeFunc(pointerOf, zero)
			registeredOptionals.types[t] = true
		}
	}
}

// pointerOf returns a pointer to the value of an Optional, to which the rules of the field apply; a nil pointer for an
// absent member. If v is addressable, the pointer is into v, so that the value is not copied.
func pointerOf(v reflect.Value) any {
	if !v.CanAddr() {
		return v.Interface().(Optional).Pointer()
	}
	o := v.Addr().Interface().(domain.AnyOptional)
	if o.IsZero() {
		return o.Pointer()
	}
	return o.MarkGiven() // it is given already: this only returns the pointer
}

// Optional is any domain.Optional.
type Optional interface {
	IsZero() bool
	// Pointer returns a pointer to the value, to which the member's rules apply; nil for an absent member.
	Pointer() any
}

// MarshalOptionals writes an Optional as its value in JSON.
var MarshalOptionals = json.MarshalToFunc(func(enc *jsontext.Encoder, o Optional) error {
	return json.MarshalEncode(enc, o.Pointer())
})

// Rules are the rules declared for the fields of a type.
type Rules struct {
	declared bool // whether any field has a rule
	cleaners []cleaner
	goNames  map[string]string // names of fields by their wire names
}

// Of returns the rules of a struct type, with those of the structs in it. It registers the Optional types of its
// fields, and of the fields of its structs, with the validator (checks).
func Of(t reflect.Type) *Rules {
	r := &Rules{declared: hasRules(t), cleaners: cleanersOf(t, nil /* the input */), goNames: map[string]string{}}
	for i := range t.NumField() {
		f := t.Field(i)
		r.goNames[WireName(f)] = f.Name
		if f.Type.Kind() == reflect.Struct {
			registerOptionals(f.Type)
		}
	}
	registerOptionals(t)
	return r
}

// Clean normalizes the texts of v, a pointer to a struct, to the form in which they are stored. Check begins with it.
func (r *Rules) Clean(v any) {
	for _, c := range r.cleaners {
		c.clean(reflect.ValueOf(v).Elem())
	}
}

// latestKey is the context key of the latest time that is valid by the rule past.
type latestKey struct{}

// Check normalizes the texts of v, a pointer to a struct (Clean), checks v by its rules, and adds the faults to f. By
// the rule past, a time may be up to domain.SignalLead after now. Check leaves out faults inside an object, array or
// body that has a fault already. If only is not nil, it checks only the fields with these wire names. An error means
// that v could not be checked.
func (r *Rules) Check(v any, now time.Time, f *Faults, only ...string) error {
	r.Clean(v)
	ctx := context.WithValue(context.Background(), latestKey{}, now.Add(domain.SignalLead))
	var err error
	switch {
	case !r.declared: // nothing to check
	case only == nil:
		err = checks.StructCtx(ctx, v)
	default:
		fields := make([]string, len(only))
		for i, name := range only {
			fields[i] = r.goNames[name]
		}
		err = checks.StructPartialCtx(ctx, v, fields...)
	}
	if err == nil {
		return nil
	}
	failures, ok := err.(validator.ValidationErrors)
	if !ok {
		return fmt.Errorf("check a %T: %w", v, err)
	}
	for _, fault := range failures {
		if f.hasFault[Whole] && strings.Contains(fault.Namespace(), ".Body.") {
			continue // the body could not be read
		}
		if path := faultPath(fault); !f.hasParentFault(path) {
			f.Add(path, faultMessage(fault, f.blank[path]))
		}
	}
	return nil
}

// hasRules reports whether a field of a struct type, or of a struct in it, has a rule.
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

// faultPath returns the path of a faulty field, in wire names, within the body, the query or the path of the input.
func faultPath(fault validator.FieldError) string {
	_, path, _ := strings.Cut(fault.Namespace(), ".") // without the name of the input's type
	path = "." + path                                 // so that the first part has a period before it as well
	for _, part := range []string{".Body.", ".Query.", ".Path."} {
		if _, rest, ok := strings.Cut(path, part); ok {
			path = rest
			break
		}
	}
	// Names that begin with a capital are the Go names of embedded structs, which are no wire names.
	parts := strings.Split(path, ".")
	wireNames := parts[:0]
	for _, p := range parts {
		if p != "" && (p[0] < 'A' || p[0] > 'Z') {
			wireNames = append(wireNames, p)
		}
	}
	return strings.Join(wireNames, ".")
}

// faultMessage returns the message for the fault of a field. If Read found the field null or blank (markBlank),
// blankMessage is the message for a required field that is so; otherwise it is empty.
func faultMessage(fault validator.FieldError, blankMessage string) string {
	kind := fault.Kind()
	switch fault.Tag() {
	case "filled", "required", "required_if":
		text, _ := fault.Value().(string)
		isItem := strings.HasSuffix(fault.Namespace(), "]")
		if blankMessage == "" && (text != "" || isItem) { // it is given: white space, or an empty item
			return notBlank
		}
		return cmp.Or(blankMessage, Required)
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
	case "header":
		return "must contain only visible ASCII characters, with spaces only between them"
	case "message_id":
		return notBlank
	case "epoch":
		return "must not be before 1970"
	case "past":
		return "must not be in the future"
	case "enum":
		if enum, ok := fault.Value().(Enum); ok {
			return EnumMessage(enum)
		}
	case "between":
		return "must be between " + strings.Replace(fault.Param(), " ", " and ", 1)
	case "min":
		if kind == reflect.Slice || kind == reflect.Map {
			return "must contain at least " + itemsOf(fault.Param())
		}
		return "must be at least " + fault.Param()
	case "max":
		switch kind {
		case reflect.String:
			return "must be at most " + fault.Param() + " characters"
		case reflect.Slice:
			return "must contain at most " + itemsOf(fault.Param())
		}
		return "must be at most " + fault.Param()
	}
	return "is invalid"
}

// itemsOf returns a number with its noun: 2 items.
func itemsOf(number string) string {
	if number == "1" {
		return "1 item"
	}
	return number + " items"
}

var textType = reflect.TypeFor[encoding.TextUnmarshaler]()

// jsonTypeName returns a noun, in words for callers, for the JSON values of a Go type.
func jsonTypeName(t reflect.Type) string {
	if object, ok := reflect.Zero(t).Interface().(interface{ Noun() string }); ok {
		return "the ID of a " + object.Noun()
	}
	if t == reflect.TypeFor[domain.Time]() || t == reflect.TypeFor[time.Time]() {
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

// cleaner normalizes a text of a body or a query to the form in which it is stored.
type cleaner struct {
	index     []int // of the field, for FieldByIndex
	normalize func(string) string
	// blankIsNil makes a pointer to a text that is empty once it is normalized nil.
	blankIsNil bool
}

// cleanersOf returns the cleaners of the fields of a struct type with the rule name, trim, email or message_id, and of
// the fields of its parts: structs without a wire name, such as Body. index is the index of the struct in the input.
func cleanersOf(t reflect.Type, index []int) (list []cleaner) {
	for _, f := range reflect.VisibleFields(t) {
		rules := strings.Split(f.Tag.Get("validate"), ",")
		fieldIndex := slices.Concat(index, f.Index)
		if element, _ := OptionalElement(f.Type); element != nil {
			value, _ := f.Type.FieldByName("Value")
			fieldIndex = append(fieldIndex, value.Index...) // the text is in the Optional
		}
		switch {
		case f.Type.Kind() == reflect.Struct && WireName(f) == "" && f.IsExported() && !f.Anonymous:
			list = append(list, cleanersOf(f.Type, fieldIndex)...) // not if embedded: VisibleFields has its fields
		case slices.Contains(rules, "message_id"):
			list = append(list, cleaner{index: fieldIndex, normalize: domain.MessageKey})
		case slices.Contains(rules, "trim"):
			list = append(list, cleaner{index: fieldIndex, normalize: domain.CleanName, blankIsNil: true})
		case slices.Contains(rules, "email"):
			list = append(list, cleaner{index: fieldIndex, normalize: cleanEmail})
		case slices.Contains(rules, "name") && slices.Contains(rules, "filled"):
			list = append(list, cleaner{index: fieldIndex, normalize: cleanNameUnlessBlank}) // filled has a message for blank names
		case slices.Contains(rules, "name"):
			list = append(list, cleaner{index: fieldIndex, normalize: domain.CleanName})
		}
	}
	return list
}

// cleanNameUnlessBlank returns a name as domain.CleanName does, but a blank name as it is: the rule filled needs it for
// the right message.
func cleanNameUnlessBlank(text string) string { return cmp.Or(domain.CleanName(text), text) }

// cleanEmail returns an email address as domain.CleanEmail does, and every other text as it is: the rule email refuses
// it.
func cleanEmail(text string) string {
	if email, ok := domain.CleanEmail(text); ok {
		return email
	}
	return text
}

// clean normalizes a text, a pointer to a text, or all texts of a map. It replaces a pointer and does not change its
// text, which other values may point to as well.
func (c cleaner) clean(input reflect.Value) {
	v := input.FieldByIndex(c.index)
	if v.Kind() == reflect.Map {
		for _, key := range v.MapKeys() {
			v.SetMapIndex(key, reflect.ValueOf(c.normalize(v.MapIndex(key).String())))
		}
		return
	}
	if v.Kind() != reflect.Pointer {
		v.SetString(c.normalize(v.String()))
		return
	}
	if v.IsNil() {
		return
	}
	text := v.Elem().String()
	switch normalized := c.normalize(text); {
	case normalized == "" && c.blankIsNil:
		v.SetZero()
	case normalized != text:
		v.Set(reflect.New(v.Type().Elem()))
		v.Elem().SetString(normalized)
	}
}
