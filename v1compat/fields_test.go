package v1compat

import (
	"encoding"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"partnerapi/domain/rule"
	"partnerapi/v2/op"
)

// guideDir has the guide: migrating.md and, in a folder, a page for each resource.
const guideDir = "../docs/"

// written is what people write of a route in the page of its resource: a row for each of its
// parameters, members of the body and members of the answer, a note where both versions answer
// the same mistake with other errors, and a request in both. The rest of the page is generated
// around it.
type written struct {
	// The rows of an answer are relative to its items, in both versions.
	request, answer []fieldRow
	note            string
	examples        []string
}

// fieldRow is a field of v1, what it is made of in v2 or becomes there, separated by commas,
// and how (decisions 11.7): same, different default, renamed, converted, computed or given up, and
// after a colon what that leaves open. v1 is empty for a parameter of v2 that v1 does without.
type fieldRow struct{ v1, v2, how string }

// writtenPages reads the pages: what is written of each route, by its heading, and the
// commands that a page begins with, by its name.
func writtenPages(t *testing.T) (routes map[string]written, setups map[string]string) {
	t.Helper()
	routes, setups = map[string]written{}, map[string]string{}
	files, err := filepath.Glob(guideDir + "migrating/*.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		sections := strings.Split(string(text), "\n## ")
		setups[strings.TrimSuffix(filepath.Base(file), ".md")] = strings.Join(commandsIn(sections[0]), "")
		for _, section := range sections[1:] {
			heading, body, _ := strings.Cut(section, "\n")
			routes[heading] = writtenIn(body)
		}
	}
	return routes, setups
}

func writtenIn(section string) written {
	w := written{examples: commandsIn(section)}
	if note := errorNote.FindStringSubmatch(section); note != nil && !strings.HasPrefix(note[1], "On success, ") {
		w.note = note[1]
	}
	var rows *[]fieldRow
	for line := range strings.Lines(section) {
		cells := strings.Split(strings.Trim(line, "| \n"), " | ")
		switch {
		case !strings.HasPrefix(line, "| "), len(cells) != 3: // of no table of fields
		case cells[0] == "request in v1":
			rows = &w.request
		case cells[0] == "response in v1":
			rows = &w.answer
		default:
			*rows = append(*rows, fieldRow{namesIn(cells[0]), namesIn(cells[1]), cells[2]})
		}
	}
	return w
}

var (
	commandBlock = regexp.MustCompile("(?s)```sh\n(.*?)```")
	errorNote    = regexp.MustCompile(`\n\n([^|].*)\n\nIn v1:\n`)
	quotedName   = regexp.MustCompile("`([^`]*)`")
)

func commandsIn(text string) (commands []string) {
	for _, block := range commandBlock.FindAllStringSubmatch(text, -1) {
		commands = append(commands, block[1])
	}
	return commands
}

// namesIn are the names in a cell, without what it says of their place.
func namesIn(cell string) string {
	var names []string
	for _, name := range quotedName.FindAllStringSubmatch(cell, -1) {
		names = append(names, name[1])
	}
	return strings.Join(names, ", ")
}

// headingOf is the heading of a route's section in the guide.
func headingOf(r *route) string { return r.Method + " /v1" + op.Braced(r.Path) }

// limitUpTo is the row of a list's limit.
func limitUpTo(most int, usual string) fieldRow {
	kind := "different default"
	if usual == strconv.Itoa(defaultLimit) {
		kind = "same"
	}
	return fieldRow{"limit", "limit", fmt.Sprintf("%s: v1 accepts 1 to %d (default %s) and adjusts other values to the nearest bound; "+
		"v2 accepts 1 to %d (default %d) and returns 400 for other values", kind, most, usual, maxLimit, defaultLimit)}
}

// offset is the row of a list's offset.
var offset = fieldRow{"offset", "", "given up: send `page.next_cursor` as `cursor`"}

// pageAnswer is the page that all lists are in.
var pageAnswer = []fieldRow{
	{"items", "data", "renamed"},
	{"limit", "", "given up: you already know the value"},
	{"offset", "", "given up: v2 pages have no offset; `page.has_more` shows whether another page follows"},
	{"total", "", "given up: v2 does not count list items; a client's `users` contains its user counts"},
}

// TestTable: the guide's tables of fields name each parameter and member of v1 once, and of
// v2 only what there is.
func TestTable(t *testing.T) {
	t.Parallel()
	table, _ := writtenPages(t)
	seen := 0
	for _, r := range Declare(Config{}).routes {
		if r.Successor == nil {
			continue
		}
		rows, ok := table[headingOf(r)]
		if !ok {
			t.Errorf("the guide has no section %q", "## "+headingOf(r))
			continue
		}
		seen++
		for _, row := range slices.Concat(rows.request, rows.answer) {
			if !row.fits() {
				t.Errorf("%s: %+v: the how does not fit the names", r.ID, row)
			}
		}
		t.Run(r.ID+" request", func(t *testing.T) {
			checkRows(t, rows.request, inputNames(r.input), inputNames(r.Successor.Input()))
			checkInputs(t, r, rows.request)
			checkRules(t, r, rows.request)
			checkDefaults(t, r, rows.request)
		})
		t.Run(r.ID+" answer", func(t *testing.T) {
			checkRows(t, answerRows(r, rows.answer), jsonPaths(r.output),
				slices.Concat(jsonPaths(r.Successor.Output()), pathNames(r.Successor)))
		})
		if want := givenUpIn(r, rows.answer); !slices.Equal(r.GivenUp, want) {
			t.Errorf("%s: the route says that %v is given up, the table %v", r.ID, r.GivenUp, want)
		}
	}
	if seen != len(table) {
		t.Errorf("the guide has %d routes, not %d", len(table), seen)
	}
	var sent []string
	for _, status := range sentStatuses {
		sent = append(sent, string(status))
	}
	row := fieldRow{"", "status", "computed: `" + strings.Join(sent, ",") + "`, because v1 lists only sent emails"}
	if !slices.Contains(table["GET /v1/users/{user_id}/phishing"].request, row) {
		t.Errorf("the table lacks %+v", row)
	}
}

// checkRows wants each name of v1 once, and names of v2 that exist.
func checkRows(t *testing.T, rows []fieldRow, v1, v2 []string) {
	t.Helper()
	named := map[string]int{}
	for _, row := range rows {
		named[row.v1]++
		if row.v1 != "" && !slices.Contains(v1, row.v1) {
			t.Errorf("%s is no field of v1", row.v1)
		}
		for _, name := range row.names() {
			if !slices.Contains(v2, name) {
				t.Errorf("%s names %s, which v2 does not have", row.v1, name)
			}
		}
	}
	for _, name := range v1 {
		if named[name] != 1 {
			t.Errorf("%s is in the table %d times", name, named[name])
		}
	}
}

// fits reports whether a row's how is possible of its names.
func (r fieldRow) fits() bool {
	switch kind, text, _ := strings.Cut(r.how, ": "); kind {
	case "same":
		return r.v1 == r.v2
	case "different default":
		return r.v1 == r.v2 && text != ""
	case "renamed":
		return r.v1 != r.v2 && r.v2 != ""
	case "converted", "computed":
		return text != "" && (r.v2 != "" || r.v1 == "items")
	case "given up":
		return text != "" && r.v2 == ""
	}
	return false
}

// names are the paths of v2 that a row names.
func (r fieldRow) names() []string {
	if r.v2 == "" {
		return nil
	}
	return strings.Split(r.v2, ", ")
}

// checkInputs wants a source of each path parameter of the successor, and a list's own
// bounds in its row of limit.
func checkInputs(t *testing.T, r *route, rows []fieldRow) {
	t.Helper()
	for _, p := range r.Successor.Input().Path {
		if !slices.ContainsFunc(rows, func(row fieldRow) bool { return slices.Contains(row.names(), p.Name) }) {
			t.Errorf("nothing says where %s of the successor's path comes from", p.Name)
		}
	}
	if want, ok := limitOf(r); ok && !slices.Contains(rows, want) {
		t.Errorf("the table lacks %+v", want)
	}
}

// checkRules wants the rules in the tags of v1's bodies, which are for the document alone,
// to be those that v2 enforces.
func checkRules(t *testing.T, r *route, rows []fieldRow) {
	t.Helper()
	enforced := rulesIn(r.operation.Input().Body)
	for name, rules := range rulesIn(r.input.Body) {
		row := rows[slices.IndexFunc(rows, func(row fieldRow) bool { return row.v1 == name })]
		how, _, _ := strings.Cut(row.how, ":")
		if want := enforced[row.v2]; (how == "same" || how == "different default" || how == "renamed") && rules != want {
			t.Errorf("%s has the rules %q in v1's document, and %q in v2", name, rules, want)
		}
	}
}

// checkDefaults verifies that the rows of parameters with another default in v2, and no other rows, say so. That of limit
// is checkInputs'.
func checkDefaults(t *testing.T, r *route, rows []fieldRow) {
	t.Helper()
	for _, row := range rows {
		v1, inV1 := defaultOf(r.input, row.v1)
		v2, inV2 := defaultOf(r.Successor.Input(), row.v2)
		if row.v1 == "limit" || !inV1 || !inV2 {
			continue
		}
		want := fmt.Sprintf("different default: `%s` in v1, `%s` in v2", v1, v2)
		if v1 != v2 && row.how != want || v1 == v2 && strings.HasPrefix(row.how, "different default") {
			t.Errorf("%s: got the row %q; the defaults are %q in v1 and %q in v2", row.v1, row.how, v1, v2)
		}
	}
}

// defaultOf returns the default of a parameter in the query, empty if it has none, and whether the parameter exists.
func defaultOf(in *op.Input, name string) (value string, ok bool) {
	i := slices.IndexFunc(in.Query, func(p op.Param) bool { return p.Name == name })
	if i < 0 {
		return "", false
	}
	return in.Query[i].Tag.Get("default"), true
}

// rulesIn are the rules of a body's members: their length and form. Whether one may be left
// out, and which words an enum has, are of its type.
func rulesIn(body reflect.Type) map[string]string {
	all := map[string]string{}
	if body == nil {
		return all
	}
	for _, f := range reflect.VisibleFields(body) {
		rules := slices.DeleteFunc(strings.Split(f.Tag.Get("validate"), ","), func(name string) bool {
			return slices.Contains([]string{"omitnil", "omitempty", "required", "enum"}, name)
		})
		all[rule.WireName(f)] = strings.Join(rules, ",")
	}
	return all
}

// limitOf is the row of a list's limit.
func limitOf(r *route) (fieldRow, bool) {
	query := reflect.New(r.input.Type).Elem().FieldByName("Query")
	if !query.IsValid() || !isList(r) {
		return fieldRow{}, false
	}
	i := slices.IndexFunc(r.input.Query, func(p op.Param) bool { return p.Name == "limit" })
	if i < 0 {
		return fieldRow{}, false
	}
	query.FieldByName("Limit").SetInt(1 << 30)
	return limitUpTo(query.Interface().(windowed).page().limit, r.input.Query[i].Tag.Get("default")), true
}

// answerRows are the rows of a route's whole answer, with the page that lists are in.
func answerRows(r *route, items []fieldRow) []fieldRow {
	if !isList(r) {
		return items
	}
	rows := slices.Clone(pageAnswer)
	for _, row := range items {
		names := row.names()
		for i, name := range names {
			if !slices.Contains(pathNames(r.Successor), name) {
				names[i] = "data[]." + name
			}
		}
		rows = append(rows, fieldRow{"items[]." + row.v1, strings.Join(names, ", "), row.how})
	}
	return rows
}

// givenUpIn are the members of a page's items that v2 does not have.
func givenUpIn(r *route, rows []fieldRow) (names []string) {
	_, paged := r.output.FieldByName("Items")
	for _, row := range rows {
		name, item := strings.CutPrefix(row.v1, "items[].")
		if paged && strings.HasPrefix(row.how, "given up") && (item || isList(r)) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// pathNames are the parameters of an operation's path.
func pathNames(d op.Declaration) (names []string) {
	for _, p := range d.Input().Path {
		names = append(names, p.Name)
	}
	return names
}

// isList reports whether v2 answers with a page too.
func isList(r *route) bool {
	_, list := r.Successor.Output().FieldByName("Data")
	return list
}

// inputNames are the names of the parameters and of the members of the body.
func inputNames(in *op.Input) (names []string) {
	for _, p := range slices.Concat(in.Path, in.Query) {
		names = append(names, p.Name)
	}
	if in.Body != nil {
		names = append(names, jsonPaths(in.Body)...)
	}
	return names
}

// jsonPaths are the paths of a type's members in JSON, in order; [] stands for the items
// of an array of objects.
func jsonPaths(t reflect.Type) (paths []string) {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	for i := range t.NumField() {
		f := t.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		inner := f.Type
		for inner.Kind() == reflect.Pointer || inner.Kind() == reflect.Slice {
			inner = inner.Elem()
		}
		switch {
		case name == "" && f.Anonymous:
			paths = append(paths, jsonPaths(f.Type)...)
		case name == "" || name == "-":
		case !isObject(inner):
			paths = append(paths, name)
		default:
			prefix := name + "."
			if f.Type.Kind() == reflect.Slice {
				paths = append(paths, name)
				prefix = name + "[]."
			}
			for _, path := range jsonPaths(inner) {
				paths = append(paths, prefix+path)
			}
		}
	}
	return paths
}

// isObject reports whether a type is an object of JSON with members of its own.
func isObject(t reflect.Type) bool {
	if t.Kind() != reflect.Struct {
		return false
	}
	switch reflect.New(t).Interface().(type) {
	case encoding.TextMarshaler, encoding.TextUnmarshaler, json.Marshaler:
		return false
	}
	element, _ := rule.OptionalElement(t)
	return element == nil
}
