package mcp

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/getkin/kin-openapi/openapi3"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"partnerapi/v2/op"
	"partnerapi/v2/op/openapi"
)

// overwrites are the operations other than DELETE, PATCH and PUT that replace something.
var overwrites = []string{"webhooks.secret"}

// tool is an operation as agents see it, or the search of the guides.
type tool struct {
	Name string
	// operation is nil for the search of the guides.
	operation op.Declaration
	arguments map[string]argument
	// input is the shape of the arguments, which is that of withoutSchemas.
	input *shape
	// nullable are the fields of the body that the argument clear may name.
	nullable []string
	// fields are the paths that the rows of a page have; nil if the output is no page.
	fields map[string]bool
	// withSchemas is the tool for callers who request schemas, and withoutSchemas for others.
	withSchemas, withoutSchemas *sdk.Tool
}

// argument is an argument of a tool.
type argument struct {
	in       argumentPlace
	kind     string // its OpenAPI type; empty for fields of the body
	required bool
}

// argumentPlace is the part of the request that contains an argument.
type argumentPlace int

const (
	inPath argumentPlace = iota
	inQuery
	inBody
	inHeader
	inResult // selects which fields are shown
	inClear  // names fields of the body to set to null
)

const (
	// idempotencyKey is the argument for the header Idempotency-Key.
	idempotencyKey = "idempotency_key"
	// clearArgument is the argument of updates that names the fields to set to null, as null counts as absent.
	clearArgument = "clear"
)

// toolName returns the name of an operation's tool.
func toolName(o op.Declaration) string { return strings.ReplaceAll(o.Meta().ID, ".", "_") }

// operationsOf returns the operations of a document by id.
func operationsOf(doc *openapi3.T) map[string]*openapi3.Operation {
	byID := map[string]*openapi3.Operation{}
	for _, item := range doc.Paths.Map() {
		for _, o := range item.Operations() {
			byID[o.OperationID] = o
		}
	}
	return byID
}

// newTool returns the tool of an operation. described is the operation in the document; nil is an error. A list has the
// argument fields in the form without schemas only.
func newTool(o op.Declaration, described *openapi3.Operation) (*tool, error) {
	if described == nil {
		return nil, errors.New("the document does not describe it")
	}
	t := &tool{Name: toolName(o), operation: o, arguments: map[string]argument{}}
	members, err := t.members(described)
	if err != nil {
		return nil, fmt.Errorf("its input: %w", err)
	}
	var output *openapi3.SchemaRef
	if o.Output() != reflect.TypeFor[op.NoContent]() {
		output = described.Responses.Value(strconv.Itoa(o.Meta().Status)).Value.Content.Get("application/json").Schema
	}

	if members, err = t.addClear(members); err != nil {
		return nil, err
	}
	if t.withSchemas, err = t.describe(members, output); err != nil {
		return nil, err
	}
	if err := t.addFields(output); err != nil {
		return nil, err
	}
	if t.fields != nil {
		t.arguments[fieldsArgument] = argument{in: inResult, kind: openapi3.TypeArray}
		schema := openapi3.NewArraySchema().WithItems(openapi3.NewStringSchema())
		members = append(members, openapi.Member{Name: fieldsArgument, Schema: schema.NewRef()})
	}
	t.withoutSchemas, err = t.describe(members, nil)
	return t, err
}

// addClear adds the argument clear to the members of an update's input, if fields of its body are nullable. These may
// not be within objects of the body, which the argument could not name.
func (t *tool) addClear(members []openapi.Member) ([]openapi.Member, error) {
	if t.operation.Meta().Method != http.MethodPatch {
		return members, nil
	}
	var names []any
	for _, m := range members {
		if t.arguments[m.Name].in != inBody {
			continue
		}
		if isNullable(m.Schema.Value) {
			t.nullable, names = append(t.nullable, m.Name), append(names, m.Name)
		}
		for name, inner := range m.Schema.Value.Properties {
			if isNullable(inner.Value) {
				return nil, fmt.Errorf("%s.%s is nullable, which %s cannot name", m.Name, name, clearArgument)
			}
		}
	}
	if names == nil {
		return members, nil
	}
	t.arguments[clearArgument] = argument{in: inClear, kind: openapi3.TypeArray}
	schema := openapi3.NewArraySchema().WithItems(openapi3.NewStringSchema().WithEnum(names...))
	schema.Description = "The fields to clear."
	return append(members, openapi.Member{Name: clearArgument, Schema: schema.NewRef()}), nil
}

// isNullable reports whether a schema allows null.
func isNullable(s *openapi3.Schema) bool {
	isNull := func(ref *openapi3.SchemaRef) bool { return ref.Value.Type.Is(openapi3.TypeNull) }
	return s.Type.Includes(openapi3.TypeNull) || slices.ContainsFunc(s.AnyOf, isNull)
}

// describe returns the SDK's form of the tool, without an output schema if output is nil, and sets t.input.
func (t *tool) describe(members []openapi.Member, output *openapi3.SchemaRef) (*sdk.Tool, error) {
	input, err := openapi.ClosedObject(members)
	if err != nil {
		return nil, fmt.Errorf("its input: %w", err)
	}
	m := t.operation.Meta()
	out := &sdk.Tool{Name: t.Name, Description: descriptionOf(m), Annotations: annotationsOf(m)}
	text, err := openapi.JSONSchema(input.NewRef(), simplifyInput)
	if err != nil {
		return nil, fmt.Errorf("its input: %w", err)
	}
	if len(members) == 0 { // the encoder omits empty properties
		text = []byte(`{"type":"object","properties":{},"additionalProperties":false}`)
	}
	t.input = &shape{}
	if err := json.Unmarshal(text, t.input); err != nil {
		return nil, fmt.Errorf("its input: %w", err)
	}
	out.InputSchema = json.RawMessage(text)
	if output != nil {
		if text, err = openapi.JSONSchema(output, nil); err != nil {
			return nil, fmt.Errorf("its output: %w", err)
		}
		out.OutputSchema = json.RawMessage(text)
	}
	return out, nil
}

// forPeople matches what descriptions tell the authors of programs: how to read a list again and again, what the names of
// sort orders show, and that arrays are sets. It is on almost every tool, and the lists of tools have a bound in tokens.
var forPeople = regexp.MustCompile(`^Opaque \w+ ID\.$| To follow the list, .*$|` +
	`Sort order of the list\. A leading minus sign reverses the order\. ?| A repeated (?:ID|type) counts once\.`)

// simplifyInput removes from a schema of the input what takes room or what models' vendors reject, and the errors of
// rejected calls name anyway. TestVendors has the vendors' rules. A default goes into the description. Null, which
// counts as absent, is not its own type.
func simplifyInput(s *openapi3.Schema) {
	s.Examples, s.Pattern, s.MinLength, s.MaxLength, s.MaxItems, s.UniqueItems, s.MinProps = nil, "", 0, nil, nil, false, 0
	if s.Format != "date-time" {
		s.Format = ""
	}
	s.Description = strings.TrimSuffix(forPeople.ReplaceAllString(s.Description, ""), " Null clears it.")
	if s.Default != nil {
		s.Description = strings.TrimSpace(fmt.Sprintf("%s Default: %v.", s.Description, s.Default))
		s.Default = nil
	}
	if len(s.AnyOf) == 2 && isNullable(s) {
		s.AnyOf, s.AllOf = nil, s.AnyOf[:1] // a part alone is merged into s
	}
	if len(s.Type.Slice()) > 1 {
		s.Type = &openapi3.Types{s.Type.Slice()[0]}
	}
	s.Enum = slices.DeleteFunc(slices.Clone(s.Enum), func(value any) bool { return value == nil })
}

// addFields sets the fields of the tool if its output is a page: the paths that rows have, and everyField. It fails
// unless the operation has Columns that are among them, or has neither Columns nor a page.
func (t *tool) addFields(output *openapi3.SchemaRef) error {
	columns := t.operation.Meta().Columns
	if output == nil || output.Value.Properties["page"] == nil {
		if columns != nil {
			return errors.New("it has columns but returns no page")
		}
		return nil
	}
	t.fields = map[string]bool{everyField: true}
	addPaths(t.fields, "", output.Value.Properties["data"].Value.Items)
	if columns == nil {
		return errors.New("it returns a page but has no columns")
	}
	for _, column := range columns {
		if !t.fields[column] {
			return fmt.Errorf("its rows have no %s", column)
		}
	}
	return nil
}

// addPaths adds the paths of an object's members, and of the members within them. Of an object that may have any
// members, it adds the path with a dot.
func addPaths(paths map[string]bool, prefix string, ref *openapi3.SchemaRef) {
	schema := ref.Value
	for _, part := range slices.Concat(schema.AllOf, schema.AnyOf, schema.OneOf) {
		addPaths(paths, prefix, part)
	}
	if prefix != "" && schema.Type.Is(openapi3.TypeObject) && len(schema.Properties) == 0 { // such as the data of an event
		paths[prefix] = true
	}
	for name, member := range schema.Properties {
		paths[prefix+name] = true
		addPaths(paths, prefix+name+".", member)
	}
}

// descriptionOf returns the description of a tool: the operation's summary, whether it needs access to all clients, and
// the first sentence of its description.
func descriptionOf(m *op.Meta) string {
	text := m.Summary
	if m.AllClients {
		text += " (requires an API key with access to all clients)"
	}
	first, _, _ := strings.Cut(m.Description, ". ")
	if first == "" {
		return text + "."
	}
	return text + ". " + strings.TrimSuffix(first, ".") + "."
}

// annotationsOf returns the hints about a tool's effects: DELETE, PATCH and PUT are destructive and idempotent, the
// overwrites are only destructive, and GET is idempotent.
func annotationsOf(m *op.Meta) *sdk.ToolAnnotations {
	reads := m.Method == http.MethodGet
	replaces := slices.Contains([]string{http.MethodDelete, http.MethodPatch, http.MethodPut}, m.Method)
	destructive := replaces || slices.Contains(overwrites, m.ID)
	open := m.ReachesOut
	return &sdk.ToolAnnotations{
		ReadOnlyHint: reads, DestructiveHint: &destructive, IdempotentHint: reads || replaces, OpenWorldHint: &open,
	}
}

// members returns the parameters of the path and the query, the fields of the body and, for a POST, idempotency_key as
// members of one object, and adds them to t.arguments. Self-evident parameters lose description and default. It does
// not reject members of the same name; ClosedObject does.
func (t *tool) members(described *openapi3.Operation) ([]openapi.Member, error) {
	var members []openapi.Member
	for _, ref := range described.Parameters {
		p := ref.Value
		if p.In != openapi3.ParameterInPath && p.In != openapi3.ParameterInQuery {
			continue
		}
		schema := *p.Schema.Value
		if len(schema.AllOf) == 1 { // a reference to an enum, with an extension
			schema = *schema.AllOf[0].Value
		}
		if schema.Description = p.Description; isSelfEvident(p) {
			schema.Description, schema.Default = "", nil
		}
		if schema.Type == nil || len(*schema.Type) != 1 {
			return nil, fmt.Errorf("%s has no own type", p.Name)
		}
		arg := argument{in: inQuery, kind: (*schema.Type)[0], required: p.Required}
		if p.In == openapi3.ParameterInPath {
			arg.in = inPath
		}
		t.arguments[p.Name] = arg
		members = append(members, openapi.Member{Name: p.Name, Schema: schema.NewRef(), Required: p.Required})
	}
	if described.RequestBody != nil {
		body, err := openapi.MembersOf(described.RequestBody.Value.Content.Get("application/json").Schema)
		if err != nil {
			return nil, fmt.Errorf("body: %w", err)
		}
		for _, m := range body {
			t.arguments[m.Name] = argument{in: inBody} // the operation checks it
		}
		members = append(members, body...)
	}
	if t.operation.Meta().Method == http.MethodPost {
		t.arguments[idempotencyKey] = argument{in: inHeader, kind: openapi3.TypeString}
		members = append(members, openapi.Member{Name: idempotencyKey, Schema: openapi3.NewStringSchema().NewRef()})
	}
	return members, nil
}

// isSelfEvident reports whether a parameter needs no description: it is in the path, or the instructions explain it.
func isSelfEvident(p *openapi3.Parameter) bool {
	return p.In == openapi3.ParameterInPath || p.Description != "" && p.Description == pagingDocs[p.Name]
}

// pagingDocs are the descriptions of the parameters of all lists.
var pagingDocs = map[string]string{"limit": pagingDoc("Limit"), "cursor": pagingDoc("Cursor")}

// pagingDoc returns the description of a field of op.Paging.
func pagingDoc(field string) string {
	f, _ := reflect.TypeFor[op.Paging]().FieldByName(field)
	return f.Tag.Get("doc")
}
