package v1compat

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"partnerapi/domain"
	"partnerapi/idmap"
	v2 "partnerapi/v2"
	"partnerapi/v2/op/ginop"
)

// elsewhere are the paths, in the answer of a route's successor, of what the
// operation that the route itself calls has at another path; by the route's id.
var elsewhere = map[string]map[string]string{
	"sendphishing": {"send_at": "sends[].send_at"},
}

// inputElsewhere are the parameters and members of a successor that stand for those of
// the operation that the route itself calls, by their names; empty for none.
var inputElsewhere = map[string]map[string]string{
	"add-collection-member": {"user_id": "user_ids"},
	"sentemails":            {"start": "since", "email": ""},
}

// TestTable: the translators, run on marked values, do what the table of fields says, and
// nothing else; each field of v1 is in it, and what it names of v2 is there.
func TestTable(t *testing.T) {
	t.Parallel()
	seen := 0
	for _, r := range New(v2.New(nil, nil), Config{}).routes {
		if r.Successor == nil {
			continue
		}
		rows, ok := fieldTable[r.ID]
		if !ok {
			t.Errorf("%s is not in the table", r.ID)
			continue
		}
		seen++
		t.Run(r.ID+" request", func(t *testing.T) { checkRequest(t, r, rows.request) })
		t.Run(r.ID+" answer", func(t *testing.T) { checkAnswer(t, r, rows.answer) })
		if want := givenUpIn(r, rows.answer); !slices.Equal(r.GivenUp, want) {
			t.Errorf("%s: the route says that %v is given up, the table %v", r.ID, r.GivenUp, want)
		}
	}
	if seen != len(fieldTable) {
		t.Errorf("the table has %d routes, not %d", len(fieldTable), seen)
	}
	statuses := fieldRow{"", "status", "computed: `" + strings.Join(textsOf(sentStatuses), ",") + "`: v1 lists what was sent"}
	if !slices.Contains(fieldTable["phishing"].request, statuses) {
		t.Errorf("the table lacks %+v", statuses)
	}
}

func textsOf[T ~string](values []T) (texts []string) {
	for _, value := range values {
		texts = append(texts, string(value))
	}
	return texts
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

// isList reports whether v2 answers with a page too.
func isList(r *route) bool {
	_, list := r.Successor.Output().FieldByName("Data")
	return list
}

func checkRequest(t *testing.T, r *route, rows []fieldRow) {
	learned, err := learn(r.input.Type, func(in any) (map[string]string, error) { return r.publicInput(in), nil })
	if err != nil {
		t.Fatal(err)
	}
	checkNames(t, rows, inputNames(r.input), inputNames(r.Successor.Input()))
	for _, row := range rows {
		wrong := row.wrong()
		switch {
		case wrong != "" || row.v1 == "" || row.v1 == "offset" || row == theWindow(r):
		case row.v1 == "limit" && isList(r):
			wrong = "is not: " + theWindow(r).how
		default:
			wrong = row.wrongRequest(learned, defaultOf(r.input, row.v1), defaultOf(r.Successor.Input(), row.v2))
		}
		if wrong != "" {
			t.Errorf("%+v %s", row, wrong)
		}
	}
	for _, target := range learned.targets {
		text := learned.constant(target)
		if len(learned.moves[target]) > 0 || isEmpty(text) || text == "false" || plainText(text) == defaultOf(r.Successor.Input(), target) {
			continue
		}
		want := fieldRow{"", target, "computed: `" + plainText(text) + "` does what v1 does"}
		if !slices.Contains(rows, want) {
			t.Errorf("the table lacks %+v", want)
		}
	}
	for _, p := range r.Successor.Input().Path {
		if !slices.ContainsFunc(rows, func(row fieldRow) bool { return slices.Contains(row.names(), p.Name) }) {
			t.Errorf("nothing says where %s of the successor's path comes from", p.Name)
		}
	}
}

// theWindow is the row of a list's limit.
func theWindow(r *route) fieldRow {
	query := reflect.New(r.input.Type).Elem().FieldByName("Query")
	if !query.IsValid() {
		return fieldRow{}
	}
	window, ok := query.Interface().(windowed)
	if !ok || !isList(r) {
		return fieldRow{}
	}
	return limitUpTo(highest(window), defaultOf(r.input, "limit"))
}

// highest is the highest limit of a window.
func highest(window windowed) int {
	v := reflect.New(reflect.TypeOf(window)).Elem()
	for limit := v; ; limit = limit.Field(0) {
		if f := limit.FieldByName("Limit"); f.IsValid() {
			f.SetInt(1 << 30)
			return v.Interface().(windowed).asked().limit
		}
	}
}

func checkAnswer(t *testing.T, r *route, rows []fieldRow) {
	item, items, prefix := r.output, rows, "items[]."
	if f, paged := r.output.FieldByName("Items"); paged {
		item = f.Type.Elem()
	}
	if isList(r) {
		rows = slices.Clone(pageAnswer)
		for _, row := range items {
			var names []string
			for _, name := range row.names() {
				names = append(names, "data[]."+name)
			}
			rows = append(rows, newRow(prefix+row.v1, names, row.how))
		}
	}
	checkNames(t, rows, jsonPaths(r.output), jsonPaths(r.Successor.Output()))
	if !isList(r) && item != r.output {
		items = nil
		for _, row := range rows {
			name, of := strings.CutPrefix(row.v1, prefix)
			if wrong := row.wrong(); wrong != "" {
				t.Errorf("%+v %s", row, wrong)
			}
			if of {
				items = append(items, newRow(name, row.names(), row.how))
			}
		}
	}
	public := r.Successor.Output()
	if data, ok := public.FieldByName("Data"); ok {
		public = data.Type.Elem()
	}
	learned := learnAnswer(t, r.shown, item, r.fromV2)
	for _, fault := range answerFaults(items, learned, item, jsonPaths(public), elsewhere[r.ID]) {
		t.Error(fault)
	}
}

func newRow(v1 string, v2 []string, how string) fieldRow {
	return fieldRow{v1, strings.Join(v2, ", "), how}
}

// learnAnswer learns what makes an item of v1, which from makes of a pointer to what v2
// shows.
func learnAnswer(t *testing.T, shown, item reflect.Type, from func(any) any) *study {
	t.Helper()
	learned, err := learn(shown, func(v2 any) (map[string]string, error) {
		made := reflect.New(item)
		made.Elem().Set(reflect.Indirect(reflect.ValueOf(from(v2))))
		err := idmap.NumberBy(func(keys []idmap.IDKey) (map[idmap.IDKey]int64, error) {
			numbers := map[idmap.IDKey]int64{}
			for _, key := range keys {
				numbers[key] = int64(numberOf(domain.UserID(key.ID)))
			}
			return numbers, nil
		}, made.Interface())
		if err != nil {
			return nil, err
		}
		text, err := ginop.Encode(made.Interface())
		if err != nil {
			return nil, err
		}
		return flattened(text)
	})
	if err != nil {
		t.Fatal(err)
	}
	return learned
}

// answerFaults says what is wrong with the rows of an item of v1. paths are those of v2's
// public answer.
func answerFaults(
	rows []fieldRow, learned *study, item reflect.Type, paths []string, elsewhere map[string]string,
) (faults []string) {
	visible := func(source *spot) string {
		path := source.path
		if other, ok := elsewhere[path]; ok {
			path = other
		}
		if source.hidden || !slices.Contains(paths, path) {
			return ""
		}
		return path
	}
	for _, row := range rows {
		wrong := row.wrong()
		if wrong == "" {
			wrong = row.wrongAnswer(learned, visible)
		}
		if wrong != "" {
			faults = append(faults, row.v1+" "+wrong)
		}
	}
	for _, path := range append(jsonPaths(item), learned.targets...) {
		if !slices.ContainsFunc(rows, func(row fieldRow) bool { return row.v1 == path }) {
			faults = append(faults, path+" is not in the table")
		}
	}
	return faults
}

// checkNames wants each name of v1 once, and none that a version does not have.
func checkNames(t *testing.T, rows []fieldRow, v1, v2 []string) {
	t.Helper()
	var named []string
	for _, row := range rows {
		if row.v1 != "" && (!slices.Contains(v1, row.v1) || slices.Contains(named, row.v1)) {
			t.Errorf("%s is no field of v1, or is there twice", row.v1)
		}
		named = append(named, row.v1)
		for _, name := range row.names() {
			if !slices.Contains(v2, name) {
				t.Errorf("%s names %s, which v2 does not have", row.v1, name)
			}
		}
	}
	for _, name := range v1 {
		if !slices.Contains(named, name) {
			t.Errorf("%s is not in the table", name)
		}
	}
}
