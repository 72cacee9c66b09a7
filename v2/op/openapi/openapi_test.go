package openapi_test

import (
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
	"partnerapi/v2/op/openapi/openapitest"
)

func TestComponentNames(t *testing.T) {
	type whole struct {
		One sheet[inner]          `json:"one"`
		Two op.Page[sheet[inner]] `json:"two"`
	}
	d := document(reflect.TypeFor[emptyInput](), reflect.TypeFor[whole](), false)
	got := slices.Sorted(maps.Keys(part(t, d, "components", "schemas").(map[string]any)))
	want := []string{"Failure", "Inner", "InnerSheet", "InnerSheetPage", "PageInfo", "Whole"}
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
	o.Status, o.Since, o.PerClient, o.Errors = 204, op.V2_1, 20, []int{429, 409, 404, 404}
	always := `"X-Request-Id":{"$ref":"#/components/headers/X-Request-Id"},"X-RateLimit-Limit":{"$ref":"#/components/headers/X-RateLimit-Limit"},
		"X-RateLimit-Remaining":{"$ref":"#/components/headers/X-RateLimit-Remaining"},"X-RateLimit-Reset":{"$ref":"#/components/headers/X-RateLimit-Reset"},
		"X-API-Key-Expires":{"$ref":"#/components/headers/X-API-Key-Expires"}`
	same(t, "operation", part(t, d, "paths", "/a", "post"), `{"operationId":"a.b","summary":"Do it","tags":["a"],
		"description":"Each API key can send 20 of these requests per minute for each client.","x-scope":"write","x-since":"2.1","x-badges":[{"name":"Scope write"},{"name":"Since 2.1"}],"x-per-client-per-minute":20,
		"responses":{"204":{"description":"No Content","headers":{`+always+`}},"404":{"$ref":"#/components/responses/NotFound"},
			"409":{"$ref":"#/components/responses/Conflict"},"429":{"$ref":"#/components/responses/TooManyRequests"}}}`)
	same(t, "a response", part(t, d, "components", "responses", "NotFound"), `{"description":"Not Found","headers":{`+always+`},
		"content":{"application/json":{"schema":{"$ref":"#/components/schemas/Failure"}}}}`)
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

// TestReleases: the document of a release has the operations of the release.
func TestReleases(t *testing.T) {
	for release := op.V2_0; release <= op.Latest; release++ {
		var want []string
		for _, o := range api.Operations {
			if o.Meta().Since <= release {
				want = append(want, o.Meta().Method+" "+op.Braced(o.Meta().Path))
			}
		}
		slices.Sort(want)
		doc := v2Document(t, release)
		if got := operations(doc); !slices.Equal(got, want) || doc.OpenAPI != "3.1.0" || doc.Info.Version != release.String() {
			t.Errorf("%s is an OpenAPI %s document of %s with %v, want %v", release, doc.OpenAPI, doc.Info.Version, got, want)
		}
	}
}

// TestEveryOperationSaysWhatItNeeds: which errors and headers are documented follows from what the
// operation is.
func TestEveryOperationSaysWhatItNeeds(t *testing.T) {
	doc := v2Document(t, op.Latest)
	for path, item := range doc.Paths.Map() {
		for method, o := range item.Operations() {
			if o.Extensions["x-scope"] == nil || o.Extensions["x-since"] == nil || len(o.Tags) != 1 || o.Summary == "" {
				t.Errorf("%s %s lacks scope, release, tag or summary", method, path)
			}
			scoped, body, post := o.Extensions["x-scope"] != "any", o.RequestBody != nil, method == "POST"
			for status, want := range map[int]bool{
				400: true, 401: true, 403: scoped, 404: strings.Contains(path, "{"), 408: body,
				409: post || o.Responses.Status(409) != nil, 413: body, 429: true, 500: true, 503: true,
			} {
				if (o.Responses.Status(status) != nil) != want {
					t.Errorf("%s %s documents %d: %t", method, path, status, !want)
				}
			}
			headers := successOf(o).Headers
			for name, is := range map[string][2]bool{
				"Location":            {headers["Location"] != nil, o.Responses.Status(201) != nil},
				"Idempotent-Replayed": {headers["Idempotent-Replayed"] != nil, post},
				"Idempotency-Key":     {o.Parameters.GetByInAndName("header", "Idempotency-Key") != nil, post},
			} {
				if is[0] != is[1] {
					t.Errorf("%s %s documents %s: %t", method, path, name, is[0])
				}
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

// TestDescribed holds every release to its descriptions and examples.
func TestDescribed(t *testing.T) {
	for release := op.V2_0; release <= op.Latest; release++ {
		openapitest.CheckDescribed(t, v2Document(t, release))
	}
	schemas := v2Document(t, op.Latest).Components.Schemas
	for name, about := range api.Objects {
		if schemas[name] == nil || schemas[name].Value.Description != about {
			t.Errorf("the document does not say what %s is", name)
		}
	}
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
	doc := built(t, document(reflect.TypeFor[emptyInput](), reflect.TypeFor[outer](), false))
	for form, text := range map[string]string{"JSON": encoded(t, doc, openapi.JSON), "YAML": encoded(t, doc, openapi.YAML)} {
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
	text := encoded(t, v2Document(t, op.Latest), openapi.JSON)
	var document map[string]any
	if err := json.Unmarshal([]byte(text), &document); err != nil {
		t.Fatal(err)
	}
	delete(document["components"].(map[string]any), "schemas")
	if at := enumIn(document, ""); at != "" {
		t.Errorf("there are values without a name at %s", at)
	}
	if strings.Contains(text, `"nullable"`) {
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
	if len(doc.Webhooks) != len(types) {
		t.Errorf("there are %d webhooks", len(doc.Webhooks))
	}
	if text, err := event.Properties["data"].Value.MarshalJSON(); err != nil || !strings.Contains(string(text), `"additionalProperties":true`) {
		t.Errorf("the data of any event is %s, %v", text, err)
	}
	if of := event.Properties["type"].Value; len(of.Enum) > 0 || !strings.Contains(of.Description, "Known values: client.created, ") {
		t.Errorf("the type of any event is %v", of)
	}
	for _, want := range types {
		hook := doc.Webhooks[want].Post
		content := hook.RequestBody.Value.Content.Get("application/json")
		is := content.Schema.Value.Properties["type"].Value.Enum
		if len(is) != 1 || is[0] != want || hook.Description == "" || content.Example == nil {
			t.Errorf("%s: the webhook is %v, of the types %v, with the example %v", want, hook, is, content.Example)
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
	text, err := openapi.JSONSchema(doc.Components.Schemas["Event"], nil)
	if err != nil || strings.Contains(string(text), "oneOf") || len(text) > 2000 {
		t.Errorf("the outline of an event is %s, %v", text, err)
	}
	ping := doc.Webhooks["ping"].Post.RequestBody.Value.Content.Get("application/json").Schema.Value.Properties["client_id"].Value
	if text, err := ping.MarshalJSON(); err != nil || string(text) != `{"description":"Always null.","examples":[null],"type":["string","null"]}` {
		t.Errorf("the client of a ping is %s, %v", text, err)
	}
	for name := range doc.Components.Schemas { // oapi-codegen lacks what only webhooks refer to
		if strings.HasSuffix(name, "Event") && name != "Event" {
			t.Errorf("%s is a component that only a webhook refers to", name)
		}
	}
	if before := v2Document(t, op.V2_2); len(before.Webhooks) != 0 || before.Components.Schemas["Event"] != nil {
		t.Error("a release without webhooks describes them")
	}
}

func TestEncodingsAreStableAndTheSame(t *testing.T) {
	asJSON, asYAML := encoded(t, v2Document(t, op.Latest), openapi.JSON), encoded(t, v2Document(t, op.Latest), openapi.YAML)
	for range 5 {
		again := v2Document(t, op.Latest)
		if encoded(t, again, openapi.JSON) != asJSON || encoded(t, again, openapi.YAML) != asYAML {
			t.Fatal("the same document has other bytes")
		}
	}
	if !strings.HasPrefix(asYAML, "openapi: 3.1.0\n") {
		t.Errorf("the YAML begins with %.40s", asYAML)
	}
	var loaded [2]any
	for i, text := range []string{asJSON, asYAML} {
		doc, err := openapi3.NewLoader().LoadFromData([]byte(text))
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

// TestFollowBy verifies that the document of each release recommends positions that the release shows: page.as_of, or
// the time of a response in the releases before it.
func TestFollowBy(t *testing.T) {
	for _, release := range []op.Release{op.V2_4, op.V2_5} {
		doc, err := openapi.ForRelease(api.Interface, release)
		if err != nil {
			t.Fatal(err)
		}
		texts := map[string]string{"the document": doc.Info.Description}
		for path, item := range doc.Paths.Map() {
			for method, o := range item.Operations() {
				if p := o.Parameters.GetByInAndName("query", "updated_since"); p != nil {
					texts[method+" "+path] = p.Description
				}
			}
		}
		for place, text := range texts {
			if asOf, date := strings.Contains(text, "`page.as_of`"), strings.Contains(text, "`Date`"); asOf != (release == op.V2_5) || date == asOf {
				t.Errorf("release %s, %s: got %q", release, place, text)
			}
		}
	}
}

// posted is a union whose later form is of release 2.4.
type posted struct {
	Kind string `json:"kind"`
}

func (posted) Forms() (string, []op.Form) {
	t := reflect.TypeFor[struct {
		Kind string `json:"kind"`
	}]()
	return "kind", []op.Form{{Value: "early", About: "Early.", Type: t}, {Value: "later", About: "Later.", Type: t, Since: op.V2_4}}
}

// TestFormSince verifies that documents of releases before that of a form lack it.
func TestFormSince(t *testing.T) {
	for release, want := range map[op.Release]int{op.V2_3: 1, op.V2_4: 2, 0: 2} {
		d := document(reflect.TypeFor[emptyInput](), reflect.TypeFor[posted](), false)
		d.Release = release
		if doc := built(t, d); len(doc.Webhooks) != want {
			t.Errorf("release %s: got %d webhooks, want %d", release, len(doc.Webhooks), want)
		}
	}
}
