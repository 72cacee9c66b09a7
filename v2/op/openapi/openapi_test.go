package openapi_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"

	"partnerapi/domain"
	"partnerapi/v2/api"
	"partnerapi/v2/op"
	"partnerapi/v2/op/openapi"
)

func TestComponentNames(t *testing.T) {
	type pair[A, B any] struct {
		A A `json:"a"`
		B B `json:"b"`
	}
	type whole struct {
		One sheet[inner]                       `json:"one"`
		Two pair[sheet[inner], op.Page[inner]] `json:"two"`
	}
	schemas := part(t, document(reflect.TypeFor[emptyInput](), reflect.TypeFor[whole](), false), "components", "schemas").(map[string]any)
	got := slices.Sorted(maps.Keys(schemas))
	want := []string{"Failure", "Inner", "InnerPage", "InnerSheet", "InnerSheetInnerPagePair", "PageInfo", "Whole"}
	if !slices.Equal(got, want) {
		t.Errorf("components are %v, want %v", got, want)
	}
}

func TestReadAndWritten(t *testing.T) {
	type add struct{ Body inner }
	schemas := part(t, document(reflect.TypeFor[add](), reflect.TypeFor[inner](), false), "components", "schemas").(map[string]any)
	same(t, "what is written", schemas["Inner"], `{"type":"object","properties":{"a":{"type":"integer"}},"required":["a"]}`)
	same(t, "what is read", schemas["InnerInput"], `{"type":"object","additionalProperties":false,"properties":{"a":{"type":"integer"}}}`)
}

func TestOperation(t *testing.T) {
	d := document(reflect.TypeFor[emptyInput](), reflect.TypeFor[op.NoContent](), false)
	o := &d.Operations[0]
	o.Status, o.Since, o.PerClient, o.Errors = 204, "2.1", 20, []int{429, 409, 404, 404}
	always := `"X-Request-Id":{"$ref":"#/components/headers/X-Request-Id"},"X-RateLimit-Limit":{"$ref":"#/components/headers/X-RateLimit-Limit"},
		"X-RateLimit-Remaining":{"$ref":"#/components/headers/X-RateLimit-Remaining"},"X-RateLimit-Reset":{"$ref":"#/components/headers/X-RateLimit-Reset"},
		"X-API-Key-Expires":{"$ref":"#/components/headers/X-API-Key-Expires"}`
	same(t, "operation", part(t, d, "paths", "/a", "post"), `{"operationId":"a.b","summary":"Do it","tags":["a"],
		"description":"Each key may make 20 of these requests a minute for one client.","x-scope":"write","x-since":"2.1","x-badges":[{"name":"Scope write"},{"name":"Since 2.1"}],"x-per-client-per-minute":20,
		"responses":{"204":{"description":"No Content","headers":{`+always+`}},"404":{"$ref":"#/components/responses/NotFound"},
			"409":{"$ref":"#/components/responses/Conflict"},"429":{"$ref":"#/components/responses/TooManyRequests"}}}`)
	responses := part(t, d, "components", "responses")
	body := `"content":{"application/json":{"schema":{"$ref":"#/components/schemas/Failure"}}}`
	wait := `"description":"After how many seconds to try again."`
	same(t, "responses", responses, `{
		"NotFound":{"description":"Not Found",`+body+`,"headers":{`+always+`}},
		"Conflict":{"description":"Conflict",`+body+`,"headers":{`+always+`,"Retry-After":{`+wait+`,"schema":{"type":"integer","minimum":1}}}},
		"TooManyRequests":{"description":"Too Many Requests",`+body+`,"headers":{`+always+`,"Retry-After":{"$ref":"#/components/headers/Retry-After"}}}}`)
	same(t, "Retry-After", part(t, d, "components", "headers", "Retry-After"), `{`+wait+`,"required":true,"schema":{"type":"integer","minimum":1}}`)
	key := part(t, d, "components", "securitySchemes", "ApiKey").(map[string]any)
	if key["type"] != "apiKey" || key["in"] != "header" || key["name"] != "X-API-Key" || key["description"] == "" {
		t.Errorf("the key is %v", key)
	}
}

type opaque struct{}

func (opaque) MarshalJSON() ([]byte, error) { return []byte(`{}`), nil }

func TestMistakesAreErrors(t *testing.T) {
	type rule struct {
		Body struct {
			Name string `json:"name" validate:"hexcolor"`
		}
	}
	type enumless struct {
		Body struct {
			Name string `json:"name" validate:"enum"`
		}
	}
	type badDefault struct {
		Query struct {
			Sort colour `query:"sort" default:"green"`
		}
	}
	type inPath struct {
		Path struct {
			ID string `path:"id"`
		}
	}
	type option struct {
		N int `json:"n,string"`
	}
	type untyped struct {
		Any any `json:"any"`
	}
	type twins struct {
		A inner `json:"a"`
		B Inner `json:"b"`
	}
	none := reflect.TypeFor[emptyInput]()
	for want, d := range map[string]openapi.Document{
		"name: rule hexcolor has no schema": document(reflect.TypeFor[rule](), nil, false),
		"name: rule enum":                   document(reflect.TypeFor[enumless](), nil, false),
		"green":                             document(reflect.TypeFor[badDefault](), nil, false),
		"path parameter":                    document(reflect.TypeFor[inPath](), nil, false),
		"json option string":                document(none, reflect.TypeFor[option](), false),
		"any: a interface {} has no schema": document(none, reflect.TypeFor[untyped](), false),
		"needs a method JSONSchema":         document(none, reflect.TypeFor[sheet[opaque]](), false),
		"two types are named Inner":         document(none, reflect.TypeFor[twins](), false),
		"the error body: there is no type":  {Title: "x", Version: "1", Prefix: "/v0"},
	} {
		if _, err := openapi.Build(d); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error is %v, want %s", err, want)
		}
	}
	twice := document(none, nil, false)
	twice.Operations = append(twice.Operations, twice.Operations[0])
	if _, err := openapi.Build(twice); err == nil {
		t.Error("one operation twice is no error")
	}
}

// Inner differs from inner in its case only.
type Inner struct{}

func v2Document(t *testing.T, release op.Release) *openapi3.T {
	t.Helper()
	doc, err := openapi.ForRelease(api.Interface, release)
	if err != nil {
		t.Fatalf("release %s: %v", release, err)
	}
	return doc
}

// operations lists the document's operations as GET /clients.
func operations(doc *openapi3.T) (list []string) {
	for path, item := range doc.Paths.Map() {
		for method := range item.Operations() {
			list = append(list, method+" "+path)
		}
	}
	slices.Sort(list)
	return list
}

func TestReleases(t *testing.T) {
	live := []string{"GET /clients", "GET /clients/{client_id}", "GET /clients/{client_id}/admins"}
	if got := operations(v2Document(t, op.V2_0)); !slices.Equal(got, live) {
		t.Errorf("2.0 has %v, want %v", got, live)
	}
	var below []string
	for release := op.V2_0; release <= op.Latest; release++ {
		doc := v2Document(t, release)
		got := operations(doc)
		for _, o := range below {
			if !slices.Contains(got, o) {
				t.Errorf("%s lacks %s", release, o)
			}
		}
		if doc.OpenAPI != "3.1.0" || doc.Info.Version != release.String() {
			t.Errorf("%s is an OpenAPI %s document of %s", release, doc.OpenAPI, doc.Info.Version)
		}
		below = got
	}
	if all := api.Operations; len(below) != len(all) {
		t.Errorf("the latest release has %d operations of %d", len(below), len(all))
	}
}

func TestEveryOperationSaysWhatItNeeds(t *testing.T) {
	doc := v2Document(t, op.Latest)
	for path, item := range doc.Paths.Map() {
		for method, o := range item.Operations() {
			if o.Extensions["x-scope"] == nil || o.Extensions["x-since"] == nil || len(o.Tags) != 1 || o.Summary == "" {
				t.Errorf("%s %s lacks scope, release, tag or summary", method, path)
			}
			for _, status := range []int{400, 401, 429, 500, 503} {
				if o.Responses.Status(status) == nil {
					t.Errorf("%s %s does not document %d", method, path, status)
				}
			}
			if may := o.Responses.Status(403) == nil; may != (o.Extensions["x-scope"] == "any") {
				t.Errorf("%s %s leaves 403 out: %t", method, path, may)
			}
			if lost := o.Responses.Status(404) != nil; lost != strings.Contains(path, "{") {
				t.Errorf("%s %s documents 404: %t", method, path, lost)
			}
			if body := o.Responses.Status(408) != nil; body != (o.RequestBody != nil) {
				t.Errorf("%s %s documents 408: %t", method, path, body)
			}
			success := successOf(o)
			if located := success.Headers["Location"] != nil; located != (o.Responses.Status(201) != nil) {
				t.Errorf("%s %s documents Location: %t", method, path, located)
			}
			if replayed := success.Headers["Idempotent-Replayed"] != nil; replayed != (method == "POST") {
				t.Errorf("%s %s documents Idempotent-Replayed: %t", method, path, replayed)
			}
			if keyed := o.Parameters.GetByInAndName("header", "Idempotency-Key") != nil; keyed != (method == "POST") {
				t.Errorf("%s %s takes an Idempotency-Key: %t", method, path, keyed)
			}
		}
	}
}

// successOf is the response of an operation's success.
func successOf(o *openapi3.Operation) *openapi3.Response {
	for status, response := range o.Responses.Map() {
		if status < "300" {
			return response.Value
		}
	}
	return &openapi3.Response{}
}

// TestOrder: properties are written as they are declared, in both forms.
func TestOrder(t *testing.T) {
	type outer struct {
		Zeta  int  `json:"zeta"`
		Alpha int  `json:"alpha"`
		Mid   *int `json:"mid"`
		Child *struct {
			Second bool `json:"second"`
			First  bool `json:"first"`
		} `json:"child"`
	}
	doc, err := openapi.Build(document(reflect.TypeFor[emptyInput](), reflect.TypeFor[outer](), false))
	if err != nil {
		t.Fatal(err)
	}
	asJSON, err := openapi.JSON(doc)
	if err != nil {
		t.Fatal(err)
	}
	asYAML, err := openapi.YAML(doc)
	if err != nil {
		t.Fatal(err)
	}
	for form, text := range map[string]string{"JSON": string(asJSON), "YAML": string(asYAML)} {
		_, text, _ = strings.Cut(text, "Outer")
		from := 0
		for _, name := range []string{"properties", "zeta", "alpha", "mid", "child", "second", "first"} {
			at := strings.Index(text[from:], name)
			if at < 0 {
				t.Fatalf("%s: %s is not where it is declared:\n%s", form, name, text)
			}
			from += at
		}
		if strings.Contains(text, "x-declared-order") {
			t.Errorf("%s tells of the order", form)
		}
	}
}

// TestNames: oapi-codegen is told another name than the one that it needs for itself,
// and values have one name each.
func TestNames(t *testing.T) {
	named := map[string]string{}
	for name, schema := range v2Document(t, op.Latest).Components.Schemas {
		if other := schema.Value.Extensions["x-go-name"]; (other != nil) != (name == "Client") {
			t.Errorf("in Go, %s is named %v", name, other)
		}
		if values := fmt.Sprint(schema.Value.Enum); len(schema.Value.Enum) > 0 {
			if named[values] != "" {
				t.Errorf("%s and %s are the same values", name, named[values])
			}
			named[values] = name
		}
	}
	text, err := openapi.JSON(v2Document(t, op.Latest))
	if err != nil {
		t.Fatal(err)
	}
	var document map[string]any
	if err := json.Unmarshal(text, &document); err != nil {
		t.Fatal(err)
	}
	delete(document["components"].(map[string]any), "schemas")
	if at := enumIn(document, ""); at != "" {
		t.Errorf("there are values without a name at %s", at)
	}
	if strings.Contains(string(text), `"nullable"`) {
		t.Error("the document has a keyword of OpenAPI 3.0")
	}
}

// enumIn is where a part of a document has several values of its own; "" for nowhere.
func enumIn(part any, at string) string {
	switch part := part.(type) {
	case map[string]any:
		if values, _ := part["enum"].([]any); len(values) > 1 {
			return at
		}
		for name, inner := range part {
			if found := enumIn(inner, at+"/"+name); found != "" {
				return found
			}
		}
	case []any:
		for _, inner := range part {
			if found := enumIn(inner, at+"/*"); found != "" {
				return found
			}
		}
	}
	return ""
}

// TestEvents: the release with events, and no other, has a form of each type of event,
// and the request that a webhook gets with it.
func TestEvents(t *testing.T) {
	doc := v2Document(t, op.Latest)
	event := doc.Components.Schemas["Event"].Value
	types := append(domain.EventType("").Values(), "ping")
	if len(event.OneOf) != len(types) || len(event.Discriminator.Mapping) != len(types) || len(doc.Webhooks) != len(types) {
		t.Errorf("there are %d forms, %d webhooks", len(event.OneOf), len(doc.Webhooks))
	}
	for i, want := range types {
		form := event.OneOf[i]
		is := form.Value.Properties["type"].Value.Enum
		if len(is) != 1 || is[0] != want || event.Discriminator.Mapping[want].Ref != form.Ref {
			t.Errorf("%s: the form %s is of %v", want, form.Ref, is)
		}
		hook := doc.Webhooks[want].Post
		if hook.Description == "" || hook.RequestBody.Value.Content.Get("application/json").Schema.Ref != form.Ref {
			t.Errorf("%s: the webhook is %v", want, hook)
		}
		for _, header := range []string{"webhook-id", "webhook-timestamp", "webhook-signature", "X-Service-Signature"} {
			if hook.Parameters.GetByInAndName("header", header) == nil {
				t.Errorf("%s: the webhook has no header %s", want, header)
			}
		}
		for _, status := range []string{"2XX", "410", "default"} {
			if hook.Responses.Value(status) == nil {
				t.Errorf("%s: no receiver answers %s", want, status)
			}
		}
	}
	text, err := openapi.JSONSchema(doc.Components.Schemas["Event"])
	if want := `"enum":["client.created","user.created",`; err != nil || !strings.Contains(string(text), want) ||
		strings.Contains(string(text), "oneOf") || len(text) > 2000 {
		t.Errorf("the outline of an event is %s, %v", text, err)
	}
	ping := doc.Components.Schemas["PingEvent"].Value.Properties["client_id"].Value
	if text, err := ping.MarshalJSON(); err != nil || string(text) != `{"description":"Always null.","examples":[null],"type":["string","null"]}` {
		t.Errorf("the client of a ping is %s, %v", text, err)
	}
	if before := v2Document(t, op.V2_2); len(before.Webhooks) != 0 || before.Components.Schemas["PingEvent"] != nil {
		t.Error("a release without webhooks describes them")
	}
}

func TestEncodingsAreStableAndTheSame(t *testing.T) {
	asJSON, err := openapi.JSON(v2Document(t, op.Latest))
	if err != nil {
		t.Fatal(err)
	}
	asYAML, err := openapi.YAML(v2Document(t, op.Latest))
	if err != nil {
		t.Fatal(err)
	}
	for range 5 {
		again, _ := openapi.JSON(v2Document(t, op.Latest))
		yamlAgain, _ := openapi.YAML(v2Document(t, op.Latest))
		if !bytes.Equal(again, asJSON) || !bytes.Equal(yamlAgain, asYAML) {
			t.Fatal("the same document has other bytes")
		}
	}
	if !bytes.HasPrefix(asYAML, []byte("openapi: 3.1.0\n")) {
		t.Errorf("the YAML begins with %.40s", asYAML)
	}
	var loaded [2]any
	for i, text := range [][]byte{asJSON, asYAML} {
		doc, err := openapi3.NewLoader().LoadFromData(text)
		if err != nil {
			t.Fatal(err)
		}
		if err := doc.Validate(t.Context()); err != nil {
			t.Fatal(err)
		}
		plain, _ := doc.MarshalJSON()
		if err := json.Unmarshal(plain, &loaded[i]); err != nil {
			t.Fatal(err)
		}
	}
	if !reflect.DeepEqual(loaded[0], loaded[1]) {
		t.Error("YAML and JSON say different things")
	}
}
