package openapi

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/getkin/kin-openapi/openapi3"
)

// Since is the extension with the first release of an operation, or of a member of an object or a parameter, from its
// field's tag since.
const Since = "x-since"

// annotate applies the tags validate, doc, since, format and default of a field to its schema. A reference can have no
// other keywords, and is wrapped in an allOf for a doc; without it, since and format are ignored.
func (m *mapper) annotate(schema *openapi3.SchemaRef, tag reflect.StructTag) (*openapi3.SchemaRef, error) {
	if err := applyRules(schema, tag.Get("validate")); err != nil {
		return nil, err
	}
	about, documented := tag.Lookup("doc")
	value, defaulted := tag.Lookup("default")
	inner := schema.Value
	if schema.Ref != "" {
		defaulted = false
		var err error
		if schema, err = m.withDefault(schema, tag); err != nil {
			return nil, err
		}
		if schema.Ref != "" && !documented {
			return schema, nil
		}
		if schema.Ref != "" {
			schema = (&openapi3.Schema{AllOf: openapi3.SchemaRefs{schema}}).NewRef()
		}
	}
	if documented {
		if strings.HasPrefix(schema.Value.Description, knownValues) {
			about += " " + schema.Value.Description
		}
		schema.Value.Description = about
	}
	if since, ok := tag.Lookup("since"); ok {
		extensions := map[string]any{Since: since}
		maps.Copy(extensions, schema.Value.Extensions)
		schema.Value.Extensions = extensions
	}
	if format, ok := tag.Lookup("format"); ok {
		schema.Value.Format = format
	}
	if defaulted {
		parsed, err := parseDefault(inner, value)
		if err != nil {
			return nil, fmt.Errorf("default %q: %w", value, err)
		}
		schema.Value.Default = parsed
	}
	return schema, nil
}

// withDefault returns the schema of a field that refers to a component, with the default of its tag, or none. Generators
// such as ogen accept a default only beside the type that it is of. So the first field that refers to a component gives
// the component its default, and a field with another one gets a copy of the component.
func (m *mapper) withDefault(ref *openapi3.SchemaRef, tag reflect.StructTag) (*openapi3.SchemaRef, error) {
	text, defaulted := tag.Lookup("default")
	before, known := m.defaults[ref.Ref]
	switch {
	case known && before == text:
		return ref, nil
	case known:
		copied := *ref.Value
		copied.Default = nil
		ref = copied.NewRef()
	default:
		m.defaults[ref.Ref] = text
	}
	if !defaulted {
		return ref, nil
	}
	parsed, err := parseDefault(ref.Value, text)
	if err != nil {
		return nil, fmt.Errorf("default %q: %w", text, err)
	}
	ref.Value.Default = parsed
	return ref, nil
}

// parseDefault parses the default tag as a value of the schema's type, and of its enum. Other types are an error.
func parseDefault(schema *openapi3.Schema, text string) (any, error) {
	switch {
	case schema.Type.Is(openapi3.TypeInteger):
		n, err := strconv.Atoi(text)
		return float64(n), err // as decoded JSON has it
	case schema.Type.Is(openapi3.TypeNumber):
		return strconv.ParseFloat(text, 64)
	case schema.Type.Is(openapi3.TypeBoolean):
		return strconv.ParseBool(text)
	case schema.Type.Is(openapi3.TypeString) && (schema.Enum == nil || slices.Contains(schema.Enum, any(text))):
		return text, nil
	}
	return nil, fmt.Errorf("not a value of the type")
}

// isRequired reports whether the rules reject a missing member.
func isRequired(rules string) bool {
	for rule := range strings.SplitSeq(rules, ",") {
		switch rule {
		case "required", "filled":
			return true
		case "dive": // from here on the rules are those of the items
			return false
		}
	}
	return false
}

// ruleSchemas maps each rule of the validate tag to its effect on a schema. An unknown rule is an error.
var ruleSchemas = map[string]func(s *openapi3.Schema, param string) error{
	"required": func(s *openapi3.Schema, _ string) error { return setNotEmpty(s) },
	"filled":   func(s *openapi3.Schema, _ string) error { s.Pattern = `\S`; return setNotEmpty(s) },
	"email":    func(s *openapi3.Schema, _ string) error { s.Format = "email"; return nil },
	"endpoint": func(s *openapi3.Schema, _ string) error {
		s.Format, s.Pattern = "uri", "^[Hh][Tt][Tt][Pp][Ss]://"
		return nil
	},
	"header":      func(s *openapi3.Schema, _ string) error { s.Pattern = "^[!-~]([ -~]*[!-~])?$"; return nil },
	"name":        noEffect,
	"trim":        noEffect,
	"between":     setRange,
	"min":         setMinimum,
	"max":         setMaximum,
	"enum":        func(s *openapi3.Schema, _ string) error { return requireEnum(s) },
	"required_if": noEffect, // a schema cannot express it: the doc tag describes it
	"omitnil":     noEffect,
	"omitempty":   noEffect,
}

// noEffect is the effect of a rule that a schema does not show.
func noEffect(*openapi3.Schema, string) error { return nil }

// setNotEmpty sets a minimum length of 1 on a text without an enum.
func setNotEmpty(s *openapi3.Schema) error {
	if s.Type.Is(openapi3.TypeString) && len(s.Enum) == 0 {
		s.MinLength = max(s.MinLength, 1)
	}
	return nil
}

// requireEnum fails unless the schema lists its values.
func requireEnum(s *openapi3.Schema) error {
	if len(s.Enum) == 0 {
		return fmt.Errorf("the type has no values")
	}
	return nil
}

// setRange sets the bounds "low high".
func setRange(s *openapi3.Schema, param string) error {
	var low, high float64
	if _, err := fmt.Sscanf(param, "%g %g", &low, &high); err != nil {
		return err
	}
	s.WithMin(low).WithMax(high)
	return nil
}

// setMinimum sets a lower bound on a number, a length or a number of items.
func setMinimum(s *openapi3.Schema, param string) error {
	n, err := strconv.ParseUint(param, 10, 32)
	switch {
	case err != nil:
		return err
	case s.Type.Is(openapi3.TypeString):
		s.MinLength = n
	case s.Type.Is(openapi3.TypeArray):
		s.MinItems = n
	default:
		s.WithMin(float64(n))
	}
	return nil
}

// setMaximum sets an upper bound on a number, a length or a number of items.
func setMaximum(s *openapi3.Schema, param string) error {
	n, err := strconv.ParseUint(param, 10, 32)
	switch {
	case err != nil:
		return err
	case s.Type.Is(openapi3.TypeString):
		s.MaxLength = &n
	case s.Type.Is(openapi3.TypeArray):
		s.MaxItems = &n
	default:
		s.WithMax(float64(n))
	}
	return nil
}

// applyRules applies the rules of a validate tag to a schema, and those after dive to its items. A rule that would
// change a component is an error.
func applyRules(schema *openapi3.SchemaRef, rules string) error {
	if rules == "" {
		return nil
	}
	for rule := range strings.SplitSeq(rules, ",") {
		if rule == "dive" {
			if schema.Value.Items == nil {
				return fmt.Errorf("rule dive: not an array")
			}
			schema = schema.Value.Items
			continue
		}
		name, param, _ := strings.Cut(rule, "=")
		apply, known := ruleSchemas[name]
		if !known {
			return fmt.Errorf("rule %s has no schema", name)
		}
		target := schema.Value
		if schema.Ref != "" {
			target = &openapi3.Schema{Type: target.Type, Enum: target.Enum} // a copy: other fields share the component
		}
		if err := apply(target, param); err != nil {
			return fmt.Errorf("rule %s: %w", rule, err)
		}
		if schema.Ref != "" && !reflect.DeepEqual(target, &openapi3.Schema{Type: target.Type, Enum: target.Enum}) {
			return fmt.Errorf("rule %s: not on a component", rule)
		}
	}
	return nil
}
