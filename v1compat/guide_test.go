package v1compat

import (
	"bytes"
	"cmp"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"text/template"

	"partnerapi/domain"
	"partnerapi/v2/api"
	"partnerapi/v2/op"
	"partnerapi/v2/v2test"
)

// guideDir has the guide: migrating.md and, in a folder, a page for each resource.
const guideDir = "../docs/"

// TestMigrationGuide holds docs/migrating.md and docs/migrating to the table of fields,
// the routes and v2's operations. What their examples print is kept, and compared by the
// test of the guides, which also fills it in: make migrating does both.
func TestMigrationGuide(t *testing.T) {
	t.Parallel()
	text, err := template.ParseFiles("migrating.tmpl")
	if err != nil {
		t.Fatal(err)
	}
	guide := newGuide(t)
	page := func(part string, data any) string {
		var out bytes.Buffer
		if err := text.ExecuteTemplate(&out, part, data); err != nil {
			t.Fatal(err)
		}
		return out.String()
	}
	checkGuide(t, guideDir+"migrating.md", page("migrating.tmpl", guide))
	files, err := filepath.Glob(guideDir + "migrating/*.md")
	if err != nil || !*update && len(files) != len(guide.Resources) {
		t.Errorf("%v has more or less than the resources: %v", files, err)
	}
	for _, r := range guide.Resources {
		checkGuide(t, guideDir+"migrating/"+r.Page+".md", strings.ReplaceAll(page("resource", r), "](guide/", "](../guide/"))
	}
}

// checkGuide compares a page with its file, or writes it.
func checkGuide(t *testing.T, file, text string) {
	t.Helper()
	kept, err := os.ReadFile(file)
	if err != nil && !*update {
		t.Fatal(err)
	}
	want := withOutputs(text, outputsOf(string(kept)))
	if *update {
		if err := os.WriteFile(file, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if want != string(kept) {
		t.Errorf("%s is stale: run make migrating\n%s", file, v2test.Diff(string(kept), want))
	}
	if strings.Contains(want, "```json\n```") {
		t.Errorf("%s has an example that was not run: run make migrating", file)
	}
}

// shownOutput is an example of the guide with what it prints.
var shownOutput = regexp.MustCompile("(?s)```sh\n([^`]*)```\n\n```json\n(.*?)```")

// outputsOf are what the examples of a guide print, by their commands.
func outputsOf(guide string) map[string]string {
	outputs := map[string]string{}
	for _, found := range shownOutput.FindAllStringSubmatch(guide, -1) {
		outputs[found[1]] = found[2]
	}
	return outputs
}

func withOutputs(guide string, outputs map[string]string) string {
	return shownOutput.ReplaceAllStringFunc(guide, func(block string) string {
		found := shownOutput.FindStringSubmatch(block)
		return "```sh\n" + found[1] + "```\n\n```json\n" + cmp.Or(outputs[found[1]], found[2]) + "```"
	})
}

// guideText is what the guide's template shows.
type guideText struct {
	Setup, Exchange, PagingV1, PagingV2, ErrorsV1, ErrorsV2 string

	Kinds     []guideKind
	Shared    []guideError
	Resources []*guideResource
	Orders    []guideOrder
	GivenUp   []givenUp
	New       []newOperation
}

type (
	guideKind  struct{ Of, V1, V2 string }
	guideError struct {
		Code   domain.Code
		V1, V2 string
		Text   string
	}
	guideRow     struct{ V1, V2, How string }
	givenUp      struct{ Field, In, Instead string }
	guideOrder   struct{ Heading, Place, V1, V2 string }
	newOperation struct {
		Name, Summary string
		Since         op.Release
	}
)

// guideResource is a page.
type guideResource struct {
	Page, Title, Setup string
	Operations         []guideOperation
}

// guideOperation is the section of a route. Place is its page and fragment.
type guideOperation struct {
	Heading, Place, Summary, Successor string

	Since              op.Release
	Reordered, List    bool
	Request, Response  []guideRow
	StatusV1, StatusV2 int
	Errors             []guideError
	ErrorNote          string

	ExampleV1, ExampleV2 string
	ShowsV1, ShowsV2     bool
}

func newGuide(t *testing.T) guideText {
	t.Helper()
	f := Declare(Config{})
	g := guideText{
		Setup: setupOf(guideExchange), Exchange: guideExchange, PagingV1: guidePagingV1, PagingV2: guidePagingV2,
		ErrorsV1: guideErrorsV1, ErrorsV2: guideErrorsV2,
		Kinds: []guideKind{
			{"clients", "a number", domain.ClientKind{}.Prefix()}, {"collections", "a number", domain.CollectionKind{}.Prefix()},
			{"policies", "a number", domain.PolicyKind{}.Prefix()}, {"templates", "a number", domain.TemplateKind{}.Prefix()},
			{"groups", "a number", domain.GroupKind{}.Prefix()},
			{"reports", "a number, as a text in answers", domain.ReportKind{}.Prefix()},
			{"users", "a UUID", domain.UserKind{}.Prefix()}, {"admins", "a UUID", domain.AdminKind{}.Prefix()},
		},
		GivenUp: givenUpOf(f),
	}
	for _, code := range api.ListClients.Meta().Fails {
		t.Errorf("the errors of every operation are read off one that has %s of its own", code)
	}
	succeeded := map[string]bool{}
	examples := guideExamples()
	for _, r := range f.routes {
		if r.Successor == nil {
			continue
		}
		example, ok := examples[r.ID]
		if !ok {
			t.Errorf("the guide has no example of %s", r.ID)
		}
		delete(examples, r.ID)
		succeeded[r.Successor.Meta().ID] = true
		section := sectionOf(r, example)
		g.add(r.guidePage(), section)
		order, listed := orders[r.ID]
		if listed != section.List || r.Reordered != (order.V2 != alike && r.ID != "clients" && listed) {
			t.Errorf("the guide does not tell the order of %s", r.ID)
		}
		if order.Heading, order.Place = section.Heading, section.Place; listed {
			g.Orders = append(g.Orders, order)
		}
	}
	for id := range errorNotes {
		if !slices.ContainsFunc(f.routes, func(r *route) bool { return r.ID == id }) {
			t.Errorf("the guide has a note on the errors of %s, which is no route", id)
		}
	}
	for id := range examples {
		t.Errorf("the guide has an example of %s, which is no route", id)
	}
	for _, code := range op.Codes(api.ListClients) {
		status := fmt.Sprint(op.StatusOf(code))
		g.Shared = append(g.Shared, guideError{Code: code, V1: status, V2: status, Text: codeTexts[code]})
	}
	for _, o := range api.Operations {
		if m := o.Meta(); !succeeded[m.ID] {
			g.New = append(g.New, newOperation{m.Method + " /v2" + op.Braced(m.Path), m.Summary, m.Since})
		}
	}
	slices.SortStableFunc(g.New, func(a, b newOperation) int { return cmp.Compare(a.Since, b.Since) })
	return g
}

// add puts a section at the end of a page.
func (g *guideText) add(page string, section guideOperation) {
	i := slices.IndexFunc(g.Resources, func(r *guideResource) bool { return r.Page == page })
	if i < 0 {
		i = len(g.Resources)
		title := strings.ReplaceAll(strings.ToUpper(page[:1])+page[1:], "-", " ")
		g.Resources = append(g.Resources, &guideResource{Page: page, Title: title})
	}
	r := g.Resources[i]
	r.Operations = append(r.Operations, section)
	commands := ""
	for _, o := range r.Operations {
		commands += o.ExampleV1 + o.ExampleV2
	}
	r.Setup = setupOf(commands)
}

// placeOf is the page of a route, as docs/migrating.md leads to it.
func placeOf(r *route) string {
	return "migrating/" + strings.Replace(strings.TrimPrefix(r.Guide, guide+"/"), "#", ".md#", 1)
}

// codeTexts say what an error means.
var codeTexts = map[domain.Code]string{
	domain.InvalidRequest:  "a parameter or the body is wrong",
	domain.Unauthorized:    "no valid key",
	domain.Forbidden:       "the key lacks the scope, or access to all clients; in v1 also a client that is out of reach",
	domain.NotFound:        "an object of the request does not exist, or the key does not reach it",
	domain.Conflict:        "it clashes with what there is",
	domain.PayloadTooLarge: "the body is above 1 MiB",
	domain.RequestTimeout:  "the body arrived too slowly",
	domain.RateLimited:     "a rate limit is reached: wait for `Retry-After`",
	domain.Internal:        "a mistake of the service",
	domain.Unavailable:     "the database cannot be reached, or the service is too busy",
}

// none is what the guide's tables show of what a version does not have.
const none = "–"

// errorNotes say, by the route's id, where v1 and v2 answer the same mistake with
// other errors.
var errorNotes = map[string]string{
	"add-collection-member": "A user who does not exist is 404 in v1. In v2 it is 400, which names the place in `user_ids`.",
	"sendphishing":          "A user who does not exist or is out of reach is 404 in v1. In v2 it is 400, which names the place in `user_ids`.",
	"sentemails": "A user who exists and is out of reach is 403 in v1 and 404 in v2. An address that no user in reach has is 404 " +
		"in v1; in v2 no user is found by it.",
	"phishing": "A user who does not exist or is out of reach is 404 in v1. In v2 `user_id` is a filter: the list is empty, and 200. " +
		"`GET /v2/users/{user_id}` tells the two apart.",
	"exposures": "Where Dark Web Monitoring is not enabled for the client, both answer 403 `forbidden`. v1 answers that for a client " +
		"out of reach too, v2 404. `features.dark_web_monitoring` of the client says whether it is enabled.",
}

// orders are those of v1's lists and of their successors, by the route's id. The
// comparison of both versions on the demonstration goes by the same (parity's specs).
var orders = map[string]guideOrder{
	"clients":            {V1: "by creation", V2: "by name; `sort=created_at` is v1's"},
	"users":              {V1: "by creation", V2: alike},
	"training":           {V1: "by place in the user's list (`order`)", V2: alike},
	"phishing":           {V1: "by sending, the newest first", V2: "by when each was asked for, the oldest first; with `since` or `until` by sending"},
	"collections":        {V1: "by creation", V2: alike},
	"collection-members": {V1: "by joining", V2: alike},
	"policies":           {V1: "by creation", V2: alike},
	"policy-users":       {V1: "by creation of the user", V2: alike},
	"exposures":          {V1: "by creation of the user", V2: alike},
	"reports":            {V1: "by creation, the oldest first", V2: "by creation, the newest first"},
	"sentemails":         {V1: "by sending, the newest first", V2: alike},
}

// alike stands in the guide where v2 has v1's order.
const alike = "the same"

func sectionOf(r *route, example [2]string) guideOperation {
	meta := r.Successor.Meta()
	heading := r.Method + " /v1" + op.Braced(r.Path)
	out := guideOperation{
		Heading: heading, Place: placeOf(r), Summary: r.Summary,
		Successor: meta.Method + " /v2" + op.Braced(meta.Path), Since: meta.Since, Reordered: r.Reordered,
		StatusV1: r.Status, StatusV2: meta.Status, Errors: errorsOf(r), ErrorNote: errorNotes[r.ID],
		ExampleV1: example[0], ExampleV2: example[1],
		ShowsV1: strings.Contains(example[0], "jq"), ShowsV2: strings.Contains(example[1], "jq"),
	}
	for _, field := range fieldTable[r.ID].request {
		var names []string
		for _, name := range field.names() {
			names = append(names, partOf(r.Successor.Input(), name))
		}
		row := guideRow{V1: none, V2: cmp.Or(strings.Join(names, ", "), none), How: field.how}
		if field.v1 != "" {
			row.V1 = partOf(r.input, field.v1)
		}
		out.Request = append(out.Request, row)
	}
	out.List = isList(r)
	for _, field := range fieldTable[r.ID].answer {
		var names []string
		for _, name := range field.names() {
			if out.List && slices.Contains(pathNames(r.Successor), name) { // no member of its items
				names = append(names, partOf(r.Successor.Input(), name))
			} else {
				names = append(names, "`"+name+"`")
			}
		}
		v2 := cmp.Or(strings.Join(names, ", "), none)
		out.Response = append(out.Response, guideRow{"`" + field.v1 + "`", v2, field.how})
	}
	return out
}

// partOf names a parameter or a member of a body with the part of the request that it
// is in.
func partOf(in *op.Input, name string) string {
	named := func(p op.Param) bool { return p.Name == name }
	switch {
	case slices.ContainsFunc(in.Path, named):
		return "`" + name + "` in the path"
	case slices.ContainsFunc(in.Query, named):
		return "`" + name + "` in the query"
	}
	return "`" + name + "`"
}

// errorsOf are the errors that v1 or v2 documents for a route beside those of every
// operation.
func errorsOf(r *route) (list []guideError) {
	codes := op.Codes(r.Successor)
	for _, code := range []domain.Code{
		domain.NotFound, domain.Conflict, domain.PayloadTooLarge, domain.RequestTimeout,
	} {
		status := op.StatusOf(code)
		row := guideError{Code: code, V1: none, V2: none, Text: codeTexts[code]}
		if slices.Contains(r.failures(), status) {
			row.V1 = strconv.Itoa(status)
		} else if code == domain.NotFound && strings.Contains(r.Path, ":client_id") {
			row.V1 = fmt.Sprintf("%d `%s`", http.StatusForbidden, domain.Forbidden)
		}
		if slices.Contains(codes, code) {
			row.V2 = strconv.Itoa(status)
		}
		if code == domain.Conflict && row.V1 == none {
			row.Text = "its `Idempotency-Key` is in use"
		}
		if slices.Contains(codes, code) || slices.Contains(r.failures(), status) {
			list = append(list, row)
		}
	}
	return list
}

// givenUpOf are the fields that v2 does not have, those of the same kind together.
func givenUpOf(f *Facade) (list []givenUp) {
	in := map[givenUp][]string{}
	lists := 0
	for _, r := range f.routes {
		rows := fieldTable[r.ID]
		if r.Successor != nil && isList(r) {
			lists++
			rows.answer = slices.Concat(pageAnswer, rows.answer)
		}
		for part, fields := range map[string][]fieldRow{"request": rows.request, "answer": rows.answer} {
			for _, field := range fields {
				if instead, ok := strings.CutPrefix(field.how, "given up: "); ok {
					name := "`" + strings.TrimPrefix(field.v1, "items[].") + "` of the " + part
					of := givenUp{Field: name, Instead: instead}
					in[of] = append(in[of], fmt.Sprintf("[%s /v1%s](%s)", r.Method, op.Braced(r.Path), placeOf(r)))
				}
			}
		}
	}
	for row, routes := range in {
		row.In = strings.Join(routes, ", ")
		if len(routes) > lists/2 {
			row.In = fmt.Sprintf("%d lists", len(routes))
		}
		list = append(list, row)
	}
	slices.SortFunc(list, func(a, b givenUp) int {
		return cmp.Or(cmp.Compare(a.Field, b.Field), cmp.Compare(a.In, b.In), cmp.Compare(a.Instead, b.Instead))
	})
	return list
}
