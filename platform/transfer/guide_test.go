package transfer_test

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"partnerapi/domain"
	"partnerapi/platform/transfer"
)

const guides = "../../docs/operate/"

var (
	heading = regexp.MustCompile(`(?m)^## ([a-z_]+)$`)
	tabled  = regexp.MustCompile("(?m)^\\| `([a-z_]+)` \\| [a-z]+ \\| ([a-z, ]*)\\|")
)

// TestGuide: the guide has a table of each kind's fields, in their order and with
// their marks, and the kinds are in the order in which they are applied.
func TestGuide(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(guides + "import.md")
	if err != nil {
		t.Fatal(err)
	}
	want := transfer.Fields()
	places := heading.FindAllSubmatchIndex(text, -1)
	if len(places) != len(want) {
		t.Errorf("the guide has %d kinds of objects, and not %d", len(places), len(want))
	}
	for i, place := range places {
		object, end := string(text[place[2]:place[3]]), len(text)
		if i+1 < len(places) {
			end = places[i+1][0]
		}
		var names []string
		for _, row := range tabled.FindAllStringSubmatch(string(text[place[1]:end]), -1) {
			names = append(names, row[1])
			marks := strings.Fields(strings.ReplaceAll(row[2], ",", " "))
			wanted := transfer.Marks(object, row[1])
			slices.Sort(marks)
			slices.Sort(wanted)
			if !slices.Equal(marks, wanted) {
				t.Errorf("%s.%s is marked %v, and not %v", object, row[1], marks, wanted)
			}
		}
		if !slices.Equal(names, want[object]) {
			t.Errorf("%s has the fields\n%v and not\n%v", object, names, want[object])
		}
	}
}

// TestGuideExample: the examples have a line of each kind, and are imported as they are.
func TestGuideExample(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	if err := w.LoadTemplates(t.Context()); err != nil { // as the command migrate does
		t.Fatal(err)
	}
	_, _, err := w.ImportBreaches(t.Context(), []domain.Breach{{
		Name: "ForumExample", Title: "Forum", Severity: domain.SeverityCritical, DataClasses: []string{"Passwords"},
	}})
	if err != nil {
		t.Fatal(err)
	}
	var texts []string
	for _, name := range []string{"import-example.ndjson", "import-example-exposures.ndjson"} {
		text, err := os.ReadFile(guides + name)
		if err != nil {
			t.Fatal(err)
		}
		texts = append(texts, string(text))
	}
	all := strings.Join(texts, "")
	for object := range transfer.Fields() {
		if !strings.Contains(all, `"object": "`+object+`"`) {
			t.Errorf("no line of a %s", object)
		}
	}
	w.want("14 created, 0 updated, 0 unchanged", texts[0])
	w.want("1 created, 0 updated, 0 unchanged", texts[1])
	w.want("0 created, 0 updated, 15 unchanged", all)
}
