package mcp

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/getkin/kin-openapi/openapi3"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"partnerapi/v2/op"
	"partnerapi/v2/op/openapi"
)

// withoutTool is why operations have no tool, by their ids.
var withoutTool = map[string]string{}

// overwrites are the operations that replace something and are no PATCH.
var overwrites = []string{"webhooks.secret"}

// tool is an operation as agents see it.
type tool struct {
	sdk.Tool
	operation op.Operation
	arguments map[string]argument
}

// argument is where an argument of a tool goes to.
type argument struct {
	in       place
	kind     string // the type of its JSON, for parameters of the path and the query
	required bool
}

type place int

const (
	inPath place = iota
	inQuery
	inBody
	inHeader
)

// idempotencyKey is the argument that stands for the header Idempotency-Key.
const idempotencyKey = "idempotency_key"

// nameOf is the name of an operation's tool.
func nameOf(o op.Operation) string { return strings.ReplaceAll(o.Meta().ID, ".", "_") }

// operationsOf are the operations of a document by their ids.
func operationsOf(doc *openapi3.T) map[string]*openapi3.Operation {
	list := map[string]*openapi3.Operation{}
	for _, item := range doc.Paths.Map() {
		for _, o := range item.Operations() {
			list[o.OperationID] = o
		}
	}
	return list
}

func newTool(o op.Operation, described *openapi3.Operation) (*tool, error) {
	if described == nil {
		return nil, errors.New("the document does not describe it")
	}
	t := &tool{operation: o, arguments: map[string]argument{}}
	t.Name, t.Title, t.Description = nameOf(o), o.Meta().Summary, descriptionOf(o.Meta())
	t.Annotations = annotationsOf(o.Meta())
	input, err := t.inputSchema(described)
	if err != nil {
		return nil, fmt.Errorf("its input: %w", err)
	}
	t.InputSchema = input
	if o.Output() == reflect.TypeFor[op.NoContent]() {
		return t, nil
	}
	answer := described.Responses.Value(strconv.Itoa(o.Meta().Status)).Value.Content.Get("application/json")
	output, err := openapi.JSONSchema(answer.Schema)
	if err != nil {
		return nil, fmt.Errorf("its output: %w", err)
	}
	t.OutputSchema = json.RawMessage(output)
	return t, nil
}

// descriptionOf is the description of an operation for an agent.
func descriptionOf(m *op.Meta) string {
	text := m.Summary + "."
	if m.Description != "" {
		text += " " + m.Description
	}
	if m.AllClients {
		text += " Needs a key with access to all clients."
	}
	return text
}

// annotationsOf says what a tool does to the world: a DELETE removes, and a PATCH
// or a PUT overwrites; both do no more when they are repeated.
func annotationsOf(m *op.Meta) *sdk.ToolAnnotations {
	reads := m.Method == http.MethodGet
	again := slices.Contains([]string{http.MethodDelete, http.MethodPatch, http.MethodPut}, m.Method)
	destructive := again || slices.Contains(overwrites, m.ID)
	open := m.ReachesOut
	return &sdk.ToolAnnotations{
		Title: m.Summary, ReadOnlyHint: reads, DestructiveHint: &destructive,
		IdempotentHint: reads || again, OpenWorldHint: &open,
	}
}

// inputSchema flattens the path, the query and the body into one object. Two
// arguments of one name are an error.
func (t *tool) inputSchema(described *openapi3.Operation) (json.RawMessage, error) {
	var members []openapi.Member
	for _, ref := range described.Parameters {
		p := ref.Value
		if p.In != openapi3.ParameterInPath && p.In != openapi3.ParameterInQuery {
			continue
		}
		schema := *p.Schema.Value
		if p.Description != "" {
			schema.Description = p.Description
		}
		if schema.Type == nil || len(*schema.Type) != 1 {
			return nil, fmt.Errorf("%s has no type of its own", p.Name)
		}
		at := argument{in: inQuery, kind: (*schema.Type)[0], required: p.Required}
		if p.In == openapi3.ParameterInPath {
			at.in = inPath
		}
		t.arguments[p.Name] = at
		members = append(members, openapi.Member{Name: p.Name, Schema: schema.NewRef(), Required: p.Required})
	}
	if described.RequestBody != nil {
		body, err := openapi.MembersOf(described.RequestBody.Value.Content.Get("application/json").Schema)
		if err != nil {
			return nil, fmt.Errorf("body: %w", err)
		}
		for _, m := range body {
			t.arguments[m.Name] = argument{in: inBody}
		}
		members = append(members, body...)
	}
	if t.operation.Meta().Method == http.MethodPost {
		t.arguments[idempotencyKey] = argument{in: inHeader, kind: openapi3.TypeString}
		members = append(members, openapi.Member{Name: idempotencyKey, Schema: idempotencySchema().NewRef()})
	}

	schema, err := openapi.ClosedObject(members)
	if err != nil {
		return nil, err
	}
	text, err := openapi.JSONSchema(schema.NewRef())
	return json.RawMessage(text), err
}

func idempotencySchema() *openapi3.Schema {
	schema := openapi3.NewStringSchema().WithMaxLength(255)
	schema.Description = "Any text that names this call. For 24 hours a repeat with the same text and the same " +
		"arguments is answered with the first success, and not done again."
	return schema
}
