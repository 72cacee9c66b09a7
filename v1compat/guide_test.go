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

// TestMigrationGuide holds docs/migrating.md and docs/migrating to the routes and v2's
// operations. What is written of the routes is kept, and so is what examples print: the test
// of the guides compares that, and fills it in: make migrating does both.
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
	// Subject is what the operations are called, such as client.
	Subject    string
	Operations []guideOperation
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
	table, setups := writtenPages(t)
	orders := writtenOrders(t)
	g := guideText{
		Kinds: []guideKind{
			{"clients", "a number", domain.ClientID{}.Prefix()}, {"collections", "a number", domain.CollectionID{}.Prefix()},
			{"policies", "a number", domain.PolicyID{}.Prefix()}, {"templates", "a number", domain.TemplateID{}.Prefix()},
			{"groups", "a number", domain.GroupID{}.Prefix()},
			{"reports", "a number, as a string in responses", domain.ReportID{}.Prefix()},
			{"users", "a UUID", domain.UserID{}.Prefix()}, {"admins", "a UUID", domain.AdminID{}.Prefix()},
		},
		GivenUp: givenUpOf(f, table),
	}
	for _, code := range api.ListClients.Meta().Fails {
		t.Errorf("the errors of every operation are read off one that has %s of its own", code)
	}
	succeeded := map[string]bool{}
	for _, r := range f.routes {
		if r.Successor == nil {
			continue
		}
		succeeded[r.Successor.Meta().ID] = true
		section := sectionOf(t, r, table[headingOf(r)])
		g.add(r.guidePage(), setups, section)
		order, listed := orders[section.Heading]
		if listed != section.List || r.Reordered != (order.V2 != alike && r.ID != "clients" && listed) {
			t.Errorf("the guide does not tell the order of %s", r.ID)
		}
		if order.Heading, order.Place = section.Heading, section.Place; listed {
			g.Orders = append(g.Orders, order)
		}
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
func (g *guideText) add(page string, setups map[string]string, section guideOperation) {
	i := slices.IndexFunc(g.Resources, func(r *guideResource) bool { return r.Page == page })
	if i < 0 {
		i = len(g.Resources)
		title := strings.ReplaceAll(strings.ToUpper(page[:1])+page[1:], "-", " ")
		if page == "mails" { // the path of a page that released services link to
			title = "Emails"
		}
		subject := strings.TrimSuffix(strings.ToLower(title), "s")
		if page == "policies" {
			subject = "policy"
		}
		g.Resources = append(g.Resources, &guideResource{Page: page, Title: title, Setup: setups[page], Subject: subject})
	}
	g.Resources[i].Operations = append(g.Resources[i].Operations, section)
}

// placeOf is the page of a route, as docs/migrating.md leads to it.
func placeOf(r *route) string {
	return "migrating/" + strings.Replace(strings.TrimPrefix(r.Guide, guide+"/"), "#", ".md#", 1)
}

// codeTexts say what an error means.
var codeTexts = map[domain.Code]string{
	domain.InvalidRequest:  "a parameter or the request body is invalid",
	domain.Unauthorized:    "the API key is missing or invalid",
	domain.Forbidden:       "the key lacks the required scope, access to all clients or, in v1, access to the client",
	domain.NotFound:        "a requested object does not exist, or the key has no access to it",
	domain.Conflict:        "the request conflicts with an existing object or its state",
	domain.PayloadTooLarge: "the request body is larger than 1 MiB",
	domain.RequestTimeout:  "the request body arrived too slowly",
	domain.RateLimited:     "a rate limit was reached; wait for the time in `Retry-After`",
	domain.Internal:        "an internal error occurred",
	domain.Unavailable:     "the database is unavailable, or the service is too busy",
}

// none is what the guide's tables show of what a version does not have.
const none = "–"

// alike stands in the guide where v2 has v1's order.
const alike = "same as v1"

var orderRow = regexp.MustCompile(`(?m)^\| \[(.+)\]\(\S+\) \| (.+) \| (.+) \|$`)

// writtenOrders are those of v1's lists and of their successors, by the headings, as people
// write them in migrating.md. The comparison of both versions on the demonstration goes by the
// same (parity's specs).
func writtenOrders(t *testing.T) map[string]guideOrder {
	t.Helper()
	text, err := os.ReadFile(guideDir + "migrating.md")
	if err != nil {
		t.Fatal(err)
	}
	orders := map[string]guideOrder{}
	for _, row := range orderRow.FindAllStringSubmatch(string(text), -1) {
		orders[row[1]] = guideOrder{V1: row[2], V2: row[3]}
	}
	return orders
}

func sectionOf(t *testing.T, r *route, w written) guideOperation {
	meta := r.Successor.Meta()
	if len(w.examples) != 2 || !calls(w.examples[0], r.Method, "/v1"+r.Path) || !calls(w.examples[1], meta.Method, "/v2"+meta.Path) {
		t.Fatalf("the guide has no example of %s in both versions", headingOf(r))
	}
	v1, v2 := w.examples[0], w.examples[1]
	out := guideOperation{
		Heading: headingOf(r), Place: placeOf(r), Summary: r.Summary,
		Successor: meta.Method + " /v2" + op.Braced(meta.Path), Since: meta.Since, Reordered: r.Reordered,
		StatusV1: r.Status, StatusV2: meta.Status, Errors: errorsOf(r), ErrorNote: w.note,
		ExampleV1: v1, ExampleV2: v2, ShowsV1: strings.Contains(v1, "jq"), ShowsV2: strings.Contains(v2, "jq"),
	}
	for _, field := range w.request {
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
	for _, field := range w.answer {
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

// calls reports whether a command sends a request of an operation.
func calls(command, method, path string) bool {
	command = strings.ReplaceAll(command, "\\\n", "") // in one line
	sends := "GET"
	if strings.Contains(command, " -d ") {
		sends = "POST"
	}
	if _, named, ok := strings.Cut(command, " -X "); ok {
		sends, _, _ = strings.Cut(named, " ")
	}
	address := regexp.MustCompile(`:\w+`).ReplaceAllString(path, `[^/?"]+`) + `["?]`
	return sends == method && regexp.MustCompile(`"http://[^/]+`+address).MatchString(command)
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
			row.Text = "the `Idempotency-Key` was used for a different request, or the first request is still running"
		}
		if slices.Contains(codes, code) || slices.Contains(r.failures(), status) {
			list = append(list, row)
		}
	}
	return list
}

// givenUpOf are the fields that v2 does not have, those of the same kind together.
func givenUpOf(f *Facade, table map[string]written) (list []givenUp) {
	in := map[givenUp][]string{}
	lists := 0
	for _, r := range f.routes {
		rows := table[headingOf(r)]
		if r.Successor != nil && isList(r) {
			lists++
			rows.answer = slices.Concat(pageAnswer, rows.answer)
		}
		for part, fields := range map[string][]fieldRow{"request": rows.request, "response": rows.answer} {
			for _, field := range fields {
				if instead, ok := strings.CutPrefix(field.how, "given up: "); ok {
					name := "`" + strings.TrimPrefix(field.v1, "items[].") + "` in the " + part
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
