package site

import (
	"bytes"
	"fmt"
	"html/template"
	"maps"
	"slices"
	"strings"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// row is a field, a parameter or a header in a table.
type row struct {
	// Name is the field's path in a body: risk.grade, data[].id.
	Name string
	Type string
	// Needed says that a request must have it.
	Needed bool
	About  template.HTML
	// Values are those that there are, where there are few.
	Values []string
	// Rules are what values must be, as phrases.
	Rules []string
}

// declaredOrder is the extension that has the properties of a schema in the
// order of their declaration.
const declaredOrder = "x-declared-order"

// maxDepth is how deep the fields of a body are shown.
const maxDepth = 8

// rows lists the fields of a body with the objects in it.
func (r *reader) rows(schema *openapi3.SchemaRef) ([]row, error) {
	if schema == nil || schema.Value == nil {
		return nil, nil
	}
	var list []row
	err := r.fields(&list, "", schema.Value, 0)
	return list, err
}

func (r *reader) fields(list *[]row, prefix string, schema *openapi3.Schema, depth int) error {
	if depth > maxDepth {
		return nil
	}
	schema = resolved(schema)
	if schema.Items != nil {
		return r.fields(list, prefix+"[]", schema.Items.Value, depth+1)
	}
	if schema.AdditionalProperties.Schema != nil {
		return r.fields(list, prefix+".*", schema.AdditionalProperties.Schema.Value, depth+1)
	}
	for _, name := range propertiesOf(schema) {
		member := schema.Properties[name]
		full := strings.TrimPrefix(prefix+"."+name, ".")
		line, err := r.row(full, member, slices.Contains(schema.Required, name))
		if err != nil {
			return err
		}
		*list = append(*list, line)
		if err := r.fields(list, full, member.Value, depth+1); err != nil {
			return err
		}
	}
	return nil
}

// propertiesOf lists the properties of an object in the order they are
// declared in.
func propertiesOf(schema *openapi3.Schema) []string {
	order, _ := schema.Extensions[declaredOrder].([]string)
	names := slices.Clone(order)
	for _, name := range slices.Sorted(maps.Keys(schema.Properties)) {
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return slices.DeleteFunc(names, func(name string) bool { return schema.Properties[name] == nil })
}

// resolved is the schema that says what a value is, behind one that only adds
// to it that it may be null, or a description.
func resolved(schema *openapi3.Schema) *openapi3.Schema {
	for _, several := range []openapi3.SchemaRefs{schema.AllOf, schema.OneOf, schema.AnyOf} {
		if schema.Type == nil && len(several) == 1 && several[0].Value != nil {
			return resolved(several[0].Value)
		}
	}
	return schema
}

func (r *reader) row(name string, ref *openapi3.SchemaRef, required bool) (line row, err error) {
	line = row{Name: name, Needed: required}
	if ref == nil || ref.Value == nil {
		return line, nil
	}
	own := ref.Value
	schema := resolved(own)
	line.Type = typeOf(schema)
	if own.Nullable || schema.Nullable {
		line.Type += " or null"
	}
	line.Values, line.Rules = valuesOf(schema), rulesOf(schema)
	if own.Default != nil {
		line.Rules = append(line.Rules, "default "+fmt.Sprint(own.Default))
	} else if schema.Default != nil {
		line.Rules = append(line.Rules, "default "+fmt.Sprint(schema.Default))
	}
	about := own.Description
	if about == "" && schema.Items == nil {
		about = schema.Description
	}
	line.About, err = r.markdown.text(about)
	return line, err
}

// typeOf names the type of a value.
func typeOf(schema *openapi3.Schema) string {
	switch {
	case schema.Items != nil:
		return "array of " + typeOf(resolved(schema.Items.Value))
	case schema.Format != "" && schema.Type.Is("string"):
		return schema.Format
	case schema.Type != nil && len(*schema.Type) > 0:
		return strings.Join(*schema.Type, " or ")
	}
	return "object"
}

// valuesOf lists the values that there are of an enumeration, or of a list's
// items.
func valuesOf(schema *openapi3.Schema) (words []string) {
	if schema.Items != nil && schema.Items.Value != nil {
		schema = resolved(schema.Items.Value)
	}
	for _, v := range schema.Enum {
		if v != nil {
			words = append(words, fmt.Sprint(v))
		}
	}
	return words
}

// rulesOf lists what values of a schema must be.
func rulesOf(schema *openapi3.Schema) []string {
	var rules []string
	add := func(format string, values ...any) { rules = append(rules, fmt.Sprintf(format, values...)) }
	switch low, high := schema.Min, schema.Max; {
	case low != nil && high != nil:
		add("%v to %v", *low, number(*high))
	case low != nil:
		add("at least %v", *low)
	case high != nil:
		add("at most %v", number(*high))
	}
	if schema.MaxLength != nil {
		add("at most %d characters", *schema.MaxLength)
	}
	if schema.MaxItems != nil {
		add("at most %d items", *schema.MaxItems)
	}
	if schema.MinItems > 0 {
		add("at least %d", schema.MinItems)
	}
	return rules
}

// number writes a large number without an exponent.
func number(f float64) string { return fmt.Sprintf("%.10g", f) }

// exampleText is an example as indented JSON; none is "".
func exampleText(example any) (string, error) {
	if example == nil {
		return "", nil
	}
	var value jsontext.Value
	switch e := example.(type) {
	case jsontext.Value:
		value = slices.Clone(e)
	case []byte:
		value = slices.Clone(jsontext.Value(e))
	default:
		encoded, err := json.Marshal(example, json.Deterministic(true))
		if err != nil {
			return "", fmt.Errorf("an example: %w", err)
		}
		value = encoded
	}
	if err := value.Indent(jsontext.WithIndent("  ")); err != nil {
		return "", fmt.Errorf("an example: %w", err)
	}
	return string(bytes.TrimSpace(value)), nil
}

// referencePages adds the pages of all references.
func (b *builder) referencePages() error {
	for _, r := range b.references {
		p := page{Path: r.Path, Title: r.Title, Section: r.Name, About: "Every operation of " + r.Title + "."}
		if err := b.add("reference", p, r); err != nil {
			return err
		}
		for _, t := range r.Tags {
			p := page{
				Path: t.Path, Title: t.Title, Section: r.Name,
				About: r.Title + ": the operations of " + strings.ToLower(t.Title) + ".",
			}
			for _, o := range t.Operations {
				p.Headings = append(p.Headings, heading{Level: 2, ID: o.Anchor, Text: o.Summary})
			}
			if err := b.add("tag", p, struct {
				Reference *reference
				Tag       *tag
			}{r, t}); err != nil {
				return err
			}
		}
	}
	return nil
}
