package openapi_test

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"testing/fstest"

	"partnerapi/v2/op"
	"partnerapi/v2/op/openapi"
	"partnerapi/v2/op/openapi/openapitest"
)

// paint is an input with parameters and a body, and paintwork its output.
type paint struct {
	Query struct {
		Coats int `query:"coats" doc:"How many."`
	}
	Body struct {
		Zone   string `json:"zone" doc:"Where."`
		Colour colour `json:"colour" validate:"enum" doc:"Which."`
	}
}

type paintwork struct {
	Zone string `json:"zone" doc:"Where."`
	Done *coat  `json:"done" doc:"How much; null for nothing."`
}

// spoiled is the body of errors.
type spoiled struct {
	Message string `json:"message" doc:"What went wrong."`
}

// described is a document that has all that it should.
func described(example string) openapi.Document {
	d := document(reflect.TypeFor[paint](), reflect.TypeFor[paintwork](), false)
	d.Tags = []op.Tag{{Name: "a", Title: "A", Description: "Walls."}, {Name: "unused", Description: "Doors."}}
	d.Error = reflect.TypeFor[spoiled]()
	d.Operations[0].Description, d.Operations[0].Starred = "Paints it.", true
	d.Failure = func(f openapi.Failure) any { return map[string]any{"message": f.Message} }
	d.Failures = map[int]string{404: "No such wall."}
	d.Examples = fstest.MapFS{"a.b.json": {Data: []byte(example)}}
	return d
}

const painted = `{"query": {"coats": "2"}, "body": {"zone": "hall", "colour": "red"}, "status": 201,
	"response": {"zone": "hall", "done": null}}`

func TestExamplesAreShown(t *testing.T) {
	d := described(painted)
	at := []string{"paths", "/a", "post"}
	if got := fmt.Sprint(part(t, d, append(at, "description")...)); got != "Paints it." {
		t.Errorf("the description is %s", got)
	}
	if got := fmt.Sprint(part(t, d, append(at, "x-badges")...)); !strings.Contains(got, "Addition") {
		t.Errorf("the badges are %s", got)
	}
	body := []string{"requestBody", "content", "application/json", "example", "colour"}
	if got := part(t, d, append(at, body...)...); got != "red" {
		t.Errorf("the body's example has the colour %v", got)
	}
	if got := part(t, d, "components", "responses", "NotFound", "description"); got != "No such wall." {
		t.Errorf("404 is %s", got)
	}
	same(t, "the tags", part(t, d, "tags"), `[{"name":"a","x-displayName":"A","description":"Walls."}]`)
	parameters, _ := json.Marshal(part(t, d, append(at, "parameters")...))
	if !strings.Contains(string(parameters), `"example":2`) {
		t.Errorf("the parameters are %s", parameters)
	}
	schemas := part(t, d, "components", "schemas").(map[string]any)
	if schemas["Coat"] == nil || schemas["Failure"] != nil {
		t.Errorf("the components are %v", schemas)
	}
}

// TestExampleKeepsItsOrder: members of examples are written in their own order.
func TestExampleKeepsItsOrder(t *testing.T) {
	text := encoded(t, built(t, described(painted)), openapi.JSON)
	if got := strings.Join(strings.Fields(text), ""); !strings.Contains(got, `"example":{"zone":"hall","done":null}`) {
		t.Errorf("the document is\n%s", text)
	}
}

func TestBrokenExamples(t *testing.T) {
	for _, text := range []string{`{`, `{"body": 1}}`} {
		if _, err := openapi.Build(described(text)); err == nil || !strings.Contains(err.Error(), "a.b: the example") {
			t.Errorf("%s: error is %v", text, err)
		}
	}
}

type coat struct {
	Amount int `json:"amount" doc:"How much."`
}

// TestCheckDescribed takes one thing at a time from a document that has all.
func TestCheckDescribed(t *testing.T) {
	type undescribed struct {
		Zone string `json:"zone"`
		Done *coat  `json:"done" doc:"How much."`
	}
	check := func(d openapi.Document) string {
		told := &openapitest.Witness{TB: t}
		openapitest.CheckDescribed(told, built(t, d))
		return strings.Join(told.Errors, "\n")
	}
	if failed := check(described(painted)); failed != "" {
		t.Errorf("of a document that has all it misses %s", failed)
	}
	for want, change := range map[string]func(*openapi.Document){
		"the tag a has":               func(d *openapi.Document) { d.Tags = nil },
		"no summary":                  func(d *openapi.Document) { d.Operations[0].Description, d.Operations[0].Starred = "", false },
		"Undescribed.zone has":        func(d *openapi.Document) { d.Operations[0].Output = reflect.TypeFor[undescribed]() },
		"the response has no example": func(d *openapi.Document) { d.Examples = nil },
		"NotFound has no example":     func(d *openapi.Document) { d.Failure = nil },
		"its examples":                func(d *openapi.Document) { *d = described(strings.Replace(painted, "red", "green", 1)) },
	} {
		d := described(painted)
		change(&d)
		if failed := check(d); !strings.Contains(failed, want) {
			t.Errorf("%s is not missed: %s", want, failed)
		}
	}
}
