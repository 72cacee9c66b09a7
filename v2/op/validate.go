package op

import (
	"encoding"
	"fmt"
	"reflect"
	"strings"

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

// registerOptionals teaches the rules the Optional types of a body.
func registerOptionals(body reflect.Type) {
	if body.Kind() != reflect.Struct {
		return
	}
	for i := range body.NumField() {
		t := body.Field(i).Type
		if _, ok := reflect.Zero(t).Interface().(optional); ok {
			zero := reflect.Zero(t).Interface()
			rules.RegisterCustomTypeFunc(func(v reflect.Value) any { return v.Interface().(optional).rules() }, zero)
		}
	}
}

// validate checks an input by its tags, and that a PATCH changes something.
func validate(in any) error {
	if err := rules.Struct(in); err != nil {
		faults, ok := err.(validator.ValidationErrors)
		if !ok {
			return fmt.Errorf("validate %T: %w", in, err)
		}
		fields := make([]domain.FieldError, len(faults))
		for i, fault := range faults {
			fields[i] = domain.FieldError{Field: faultPath(fault), Message: faultMessage(fault)}
		}
		return domain.ErrInvalidFields(fields)
	}
	return needChange(in)
}

// needChange reports a body made of Optionals of which none is given.
func needChange(in any) error {
	body := reflect.ValueOf(in).Elem().FieldByName("Body")
	if !body.IsValid() || body.Kind() != reflect.Struct {
		return nil
	}
	for i := range body.NumField() {
		if p, ok := body.Field(i).Interface().(optional); !ok || p.given() {
			return nil
		}
	}
	if body.NumField() == 0 {
		return nil
	}
	return domain.ErrInvalid("body", "must name at least one field to change")
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
	kept := parts[:0]
	for _, p := range parts {
		if p != "" && (p[0] < 'A' || p[0] > 'Z') {
			kept = append(kept, p)
		}
	}
	return strings.Join(kept, ".")
}

func faultMessage(fault validator.FieldError) string {
	kind := fault.Kind()
	switch fault.Tag() {
	case "filled", "required", "required_if":
		return "is required"
	case "email":
		return "must be an email address"
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

// typeName says in a caller's words what JSON a Go type is read from.
func typeName(t reflect.Type) string {
	if object, ok := reflect.Zero(t).Interface().(interface{ Noun() string }); ok {
		return "the id of a " + object.Noun()
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
		return typeName(t.Elem())
	}
	return "of another type"
}
