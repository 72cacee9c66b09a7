package openapi_test

import (
	"encoding/json"
	"net/http"
	"reflect"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"

	"partnerapi/domain"
	"partnerapi/v2/op"
	"partnerapi/v2/op/openapi"
)

type failure struct {
	Message string `json:"message"`
}

type colour string

func (colour) Values() []string { return []string{"red", "blue"} }

type number struct{}

func (number) MarshalJSON() ([]byte, error) { return []byte("1"), nil }
func (*number) UnmarshalText([]byte) error  { return nil }
func (number) JSONSchema() string           { return `{"type":"integer","minimum":1,"maximum":2147483647}` }

type word struct{ text string }

func (w word) MarshalText() ([]byte, error) { return []byte(w.text), nil }

type inner struct {
	A int `json:"a"`
}

type sheet[T any] struct {
	Items []T `json:"items"`
}

// document is one operation with the types, in the shape of either version.
func document(in, out reflect.Type, lenient bool) openapi.Document {
	return openapi.Document{
		Title: "test", Version: "1", Prefix: "/v0", Lenient: lenient, Error: reflect.TypeFor[failure](),
		Operations: []openapi.Operation{{
			Meta: op.Meta{
				ID: "a.b", Method: "POST", Path: "/a", Summary: "Do it", Scope: domain.Write, Status: http.StatusCreated,
			},
			Input: op.Describe(in), Output: out, Errors: []int{404, 400, 404},
		}},
	}
}

func built(t *testing.T, d openapi.Document) *openapi3.T {
	t.Helper()
	doc, err := openapi.Build(d)
	if err != nil {
		t.Fatal(err)
	}
	return doc
}

// encoded is a form of a document, by openapi.JSON or openapi.YAML.
func encoded(t *testing.T, doc *openapi3.T, encode func(*openapi3.T) ([]byte, error)) string {
	t.Helper()
	text, err := encode(doc)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// part builds the document and returns what lies at the pointer in its JSON.
func part(t *testing.T, d openapi.Document, pointer ...string) any {
	t.Helper()
	text := encoded(t, built(t, d), openapi.JSON)
	var at any
	if err := json.Unmarshal([]byte(text), &at); err != nil {
		t.Fatal(err)
	}
	for _, name := range pointer {
		object, ok := at.(map[string]any)
		if !ok || object[name] == nil {
			t.Fatalf("the document has no %s in %s:\n%s", name, strings.Join(pointer, " "), text)
		}
		at = object[name]
	}
	return at
}

// schemaOf is the schema of a name in the document of an operation with the types.
func schemaOf(t *testing.T, in, out reflect.Type, name string) map[string]any {
	t.Helper()
	return part(t, document(in, out, false), "components", "schemas", name).(map[string]any)
}

// same compares a schema with one that is written as JSON.
func same(t *testing.T, name string, got any, want string) {
	t.Helper()
	var wanted any
	if err := json.Unmarshal([]byte(want), &wanted); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	if !reflect.DeepEqual(got, wanted) {
		text, _ := json.Marshal(got)
		t.Errorf("%s is %s, want %s", name, text, want)
	}
}

type emptyInput struct{}

func TestOutputs(t *testing.T) {
	type written struct {
		Text     string           `json:"text"`
		Maybe    *string          `json:"maybe" doc:"Perhaps."`
		LeftOut  *string          `json:"left_out,omitempty"`
		Zero     int              `json:"zero,omitzero"`
		Rate     float64          `json:"rate"`
		Flag     bool             `json:"flag"`
		Colour   colour           `json:"colour"`
		MaybeOne *colour          `json:"maybe_colour" doc:"Which."`
		At       domain.Time      `json:"at"`
		Day      domain.Date      `json:"day"`
		ID       domain.ClientID  `json:"id"`
		MaybeID  *domain.ClientID `json:"maybe_id" doc:"Of whom."`
		Number   number           `json:"number"`
		Word     word             `json:"word"`
		Email    string           `json:"email" format:"email"`
		List     []colour         `json:"list"`
		Object   inner            `json:"object"`
		Told     inner            `json:"told" doc:"What."`
		Null     *inner           `json:"null"`
		Objects  []inner          `json:"objects"`
		Nameless struct {
			B bool `json:"b"`
		} `json:"nameless"`
		NoTag   string
		Hidden  string `json:"-"`
		private string
	}
	_ = written{private: ""}.private
	schema := schemaOf(t, reflect.TypeFor[emptyInput](), reflect.TypeFor[written](), "Written")
	same(t, "required", schema["required"], `["text","maybe","rate","flag","colour","maybe_colour","at","day","id","maybe_id",
		"number","word","email","list","object","told","null","objects","nameless","NoTag"]`)
	if schema["additionalProperties"] != nil {
		t.Error("an output is object to what a later release adds")
	}
	members := schema["properties"].(map[string]any)
	const example = "cli_01jhz5q7rgec7t3vfd9w8x2k4m"
	if _, err := domain.ParseID[domain.ClientKind](example); err != nil {
		t.Error(err)
	}
	for name, want := range map[string]string{
		"text":         `{"type":"string"}`,
		"maybe":        `{"type":["string","null"],"description":"Perhaps."}`,
		"left_out":     `{"type":"string"}`,
		"zero":         `{"type":"integer"}`,
		"rate":         `{"type":"number"}`,
		"flag":         `{"type":"boolean"}`,
		"colour":       `{"type":"string","description":"Known values: red, blue."}`,
		"maybe_colour": `{"type":["string","null"],"description":"Which. Known values: red, blue."}`,
		"at":           `{"type":"string","format":"date-time","example":"2026-01-31T08:00:00.000000Z"}`,
		"day":          `{"type":"string","format":"date"}`,
		"id":           `{"type":"string","description":"Opaque client ID.","example":"` + example + `"}`,
		"maybe_id":     `{"type":["string","null"],"description":"Of whom.","example":"` + example + `"}`,
		"number":       `{"type":"integer","minimum":1,"maximum":2147483647}`,
		"word":         `{"type":"string"}`,
		"email":        `{"type":"string","format":"email"}`,
		"list":         `{"type":"array","items":{"type":"string","description":"Known values: red, blue."}}`,
		"object":       `{"$ref":"#/components/schemas/Inner"}`,
		"told":         `{"allOf":[{"$ref":"#/components/schemas/Inner"}],"description":"What."}`,
		"null":         `{"anyOf":[{"$ref":"#/components/schemas/Inner"},{"type":"null"}]}`,
		"objects":      `{"type":"array","items":{"$ref":"#/components/schemas/Inner"}}`,
		"nameless":     `{"type":"object","properties":{"b":{"type":"boolean"}},"required":["b"]}`,
		"NoTag":        `{"type":"string"}`,
	} {
		same(t, name, members[name], want)
		delete(members, name)
	}
	for name := range members {
		t.Errorf("%s is described", name)
	}
}

func TestEmbedded(t *testing.T) {
	type deep struct {
		Same  int `json:"same"`
		Risk  int `json:"risk"`
		Other int `json:"other"`
	}
	type left struct {
		deep
		Clash int
		Risk  int `json:"risk"`
	}
	type right struct{ Clash int }
	type outer struct {
		left
		right
		// Of these one has a member's name and another Go name.
		Score string `json:"risk"`
		Same  bool
	}
	schema := schemaOf(t, reflect.TypeFor[emptyInput](), reflect.TypeFor[outer](), "Outer")
	same(t, "outer", schema, `{"type":"object","required":["same","other","risk","Same"],"properties":{
		"same":{"type":"integer"},"other":{"type":"integer"},"risk":{"type":"string"},"Same":{"type":"boolean"}}}`)
}

type create struct {
	Body struct {
		Name     string            `json:"name" validate:"filled,max=200" doc:"Its name."`
		Code     string            `json:"code" validate:"required,min=2"`
		Email    *string           `json:"email,omitzero" validate:"omitnil,email,max=254"`
		Role     colour            `json:"role,omitzero" validate:"omitempty,enum" default:"red"`
		Words    []string          `json:"words,omitzero" validate:"min=1,max=500,dive,filled,max=10"`
		Count    int               `json:"count,omitzero" validate:"min=0,max=10" default:"5" doc:"How many."`
		Percent  float64           `json:"percent,omitzero" validate:"max=100" default:"1.5"`
		Send     bool              `json:"send,omitzero" default:"false"`
		At       *domain.Time      `json:"at,omitzero"`
		IDs      []domain.ClientID `json:"ids,omitzero"`
		Audience struct {
			Type string `json:"type" validate:"required_if=X y"`
		} `json:"audience" validate:"required"`
	}
}

func TestBodies(t *testing.T) {
	schema := schemaOf(t, reflect.TypeFor[create](), nil, "Create")
	same(t, "required", schema["required"], `["name","code","audience"]`)
	same(t, "unknown members", schema["additionalProperties"], `false`)
	members := schema["properties"].(map[string]any)
	for name, want := range map[string]string{
		"name":     `{"type":"string","minLength":1,"maxLength":200,"pattern":"\\S","description":"Its name."}`,
		"code":     `{"type":"string","minLength":2}`,
		"email":    `{"type":["string","null"],"format":"email","maxLength":254}`,
		"role":     `{"$ref":"#/components/schemas/Colour"}`,
		"words":    `{"type":"array","minItems":1,"maxItems":500,"items":{"type":"string","minLength":1,"maxLength":10,"pattern":"\\S"}}`,
		"count":    `{"description":"How many.","allOf":[{"type":"integer","minimum":0,"maximum":10,"default":5}]}`,
		"percent":  `{"allOf":[{"type":"number","maximum":100,"default":1.5}]}`,
		"send":     `{"allOf":[{"type":"boolean","default":false}]}`,
		"at":       `{"type":["string","null"],"format":"date-time","example":"2026-01-31T08:00:00.000000Z"}`,
		"ids":      `{"type":"array","items":{"type":"string","description":"Opaque client ID.","example":"cli_01jhz5q7rgec7t3vfd9w8x2k4m"}}`,
		"audience": `{"type":"object","additionalProperties":false,"properties":{"type":{"type":"string"}}}`,
	} {
		same(t, name, members[name], want)
	}
}

// TestLenientBodies: in the document of a version whose callers generate code from it
// already, nothing is shared that was not.
func TestLenientBodies(t *testing.T) {
	d := document(reflect.TypeFor[create](), nil, true)
	d.OpenAPI30 = true
	if got := part(t, d, "openapi"); got != "3.0.3" {
		t.Errorf("the document is one of OpenAPI %s", got)
	}
	schema := part(t, d, "components", "schemas", "Create").(map[string]any)
	if _, object := schema["additionalProperties"]; object {
		t.Error("a lenient body refuses unknown members")
	}
	members := schema["properties"].(map[string]any)
	same(t, "a required member", members["code"], `{"type":"string","minLength":2}`)
	same(t, "an optional member", members["role"], `{"type":"string","enum":["red","blue",null],"default":"red","nullable":true}`)
}

func TestOptional(t *testing.T) {
	type update struct {
		Body struct {
			Name     domain.Optional[string]  `json:"name,omitzero" validate:"omitnil,filled,max=200"`
			Industry domain.Optional[*string] `json:"industry,omitzero" validate:"omitnil,max=500"`
			Role     domain.Optional[colour]  `json:"role,omitzero" validate:"omitnil,enum"`
		}
	}
	schema := schemaOf(t, reflect.TypeFor[update](), nil, "Update")
	same(t, "update", schema, `{"type":"object","additionalProperties":false,"minProperties":1,"properties":{
		"name":{"type":"string","minLength":1,"maxLength":200,"pattern":"\\S"},
		"industry":{"type":["string","null"],"maxLength":500},
		"role":{"$ref":"#/components/schemas/Colour"}}}`)
}

func TestParameters(t *testing.T) {
	type list struct {
		Path struct {
			ID domain.ClientID `path:"id"`
		}
		Query struct {
			op.Paging
			IDs    *op.IDList[domain.ClientKind] `query:"ids"`
			Since  *domain.Time                  `query:"since" doc:"From when."`
			Sort   colour                        `query:"sort" validate:"enum" default:"blue"`
			Only   colour                        `query:"only" doc:"Which."`
			Later  colour                        `query:"later" doc:"Which." since:"2.1"`
			Needed string                        `query:"needed" validate:"filled"`
			Number number                        `query:"number"`
			Inside string
		}
	}
	d := document(reflect.TypeFor[list](), reflect.TypeFor[sheet[inner]](), false)
	d.Operations[0].Path, d.Operations[0].Idempotent = "/a/:id/b", true
	same(t, "parameters", part(t, d, "paths", "/a/{id}/b", "post", "parameters"), `[
		{"name":"id","in":"path","required":true,"description":"Opaque client ID.","schema":{"type":"string"}},
		{"name":"limit","in":"query","description":"Maximum number of items to return.","schema":{"type":"integer","minimum":1,"maximum":500,"default":100}},
		{"name":"cursor","in":"query","description":"The next_cursor of the previous page. Use the same filters and sort order for every page.","schema":{"type":"string","maxLength":8192}},
		{"name":"ids","in":"query","schema":{"type":"string"}},
		{"name":"since","in":"query","description":"From when.","schema":{"type":"string","format":"date-time"}},
		{"name":"sort","in":"query","schema":{"$ref":"#/components/schemas/Colour"}},
		{"name":"only","in":"query","description":"Which.","schema":{"type":"string","enum":["red","blue"]}},
		{"name":"later","in":"query","description":"Which.","schema":{"type":"string","enum":["red","blue"],"x-since":"2.1"}},
		{"name":"needed","in":"query","required":true,"schema":{"type":"string","minLength":1,"pattern":"\\S"}},
		{"name":"number","in":"query","schema":{"type":"integer","minimum":1,"maximum":2147483647}},
		{"$ref":"#/components/parameters/Idempotency-Key"}]`)
}
