package report

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestRowsOfOneGroup: a PDF says once, on every page, what rows that follow each
// other agree in.
func TestRowsOfOneGroup(t *testing.T) {
	const each = 60 // more than a page has
	d := &Document{Title: "T", Sections: []Section{{Heading: "All", Blocks: []Block{Table{
		Title: "Rows", Columns: []Column{{Title: "Who"}, {Title: "What"}}, Once: 1,
		Rows: numbered(2*each, func(i int) []any {
			return []any{[]string{"Amelie", "Bertram"}[i/each], fmt.Sprint("row", i)}
		}),
	}}}}}

	pages := pagesOf(t, d, Options{})
	if len(pages) < 3 {
		t.Fatalf("%d pages", len(pages))
	}
	all := strings.Join(pages, "")
	for i := range 2 * each {
		if !strings.Contains(all, fmt.Sprint("row", i)) {
			t.Errorf("row %d is missing", i)
		}
	}
	for i, page := range pages {
		first := strings.Index(page, "row")
		if !strings.HasSuffix(page[:first], "Amelie") && !strings.HasSuffix(page[:first], "Bertram") {
			t.Errorf("page %d does not begin with the whole row: %s", i+1, page)
		}
		for _, name := range []string{"Amelie", "Bertram"} {
			if n := strings.Count(page, name); n > 1 {
				t.Errorf("page %d says %s %d times", i+1, name, n)
			}
		}
	}
}

// TestFewLongCells: a cell that is far longer than the others does not narrow the
// other columns.
func TestFewLongCells(t *testing.T) {
	width := func(longest string) float64 {
		p := newLayout(newTypefaces(nil)).pageTable(&Table{Columns: []Column{{Title: "Name"}, {Title: "Email"}}})
		for i := range 20 {
			p.waiting = append(p.waiting, []string{"Ada Armstrong", "ada.armstrong@hollowbrook-manufacturing.example"})
			if i == 7 {
				p.waiting[i][0] = longest
			}
		}
		return p.widths()[1]
	}
	if plain, with := width("Ada"), width(strings.Repeat("A", 200)); with != plain {
		t.Errorf("the second column is %g mm wide, and %g mm beside a long cell", plain, with)
	}
}

// TestLongLabels: bars whose labels do not fit beneath them lie, and have the row to
// themselves; the first is the highest.
func TestLongLabels(t *testing.T) {
	l := newLayout(newTypefaces(nil))
	names := []string{"Passwords and multi-factor authentication", "Recognizing phishing", "Safe browsing"}
	long := Chart{Kind: Bar, Labels: names, Series: []Series{{Values: []float64{1, 2, 3}}}}
	short := Chart{Kind: Bar, Labels: []string{"A", "B", "C"}, Series: long.Series}

	look := l.chartLook(&long, 80)
	if !look.lying || l.chartLook(&short, 80).lying {
		t.Error("bars lie with short labels, or stand with long ones")
	}
	three := Chart{Kind: Bar, Series: long.Series,
		Labels: []string{"ISO/IEC 27001", "PCI DSS, Finance team", "HIPAA Security Rule, Head office"}}
	if look := l.chartLook(&three, bodyWidth); slices.Contains(look.shown, "") {
		t.Errorf("of the labels of bars only %q are shown", look.shown)
	}
	if opt := look.bar(&long); !opt.Horizontal || !slices.Equal(opt.SeriesList[0].Values, []float64{3, 2, 1}) ||
		!strings.HasPrefix(opt.CategoryAxis.Labels[0], "Safe") {
		t.Errorf("from the bottom: %v %v", opt.CategoryAxis.Labels, opt.SeriesList[0].Values)
	}
	if n := l.chartsSideBySide([]Block{short, long}); n != 1 {
		t.Errorf("%d charts in a row", n)
	}
	if n := l.chartsSideBySide([]Block{short, short, short}); n != 2 {
		t.Errorf("%d charts in a row", n)
	}
}

// TestColorsOfShares: shares have the colors of their tones, whatever shares are 0.
func TestColorsOfShares(t *testing.T) {
	c := Chart{
		Kind: Donut, Labels: []string{"A", "B", "C"}, Tones: []Tone{Good, Bad, Bad},
		Series: []Series{{Values: []float64{0, 1, 2}}},
	}
	colors := c.colors()
	if colors[0] != toneColors[Good] || colors[1] != toneColors[Bad] || colors[2] != toneColors[Bad].darker() {
		t.Errorf("colors %v", colors)
	}
	theme := newLayout(newTypefaces(nil)).chartLook(&c, 80).donut(&c).Theme
	if theme.GetSeriesColor(0) != colors[1].chart() {
		t.Error("the first share that is drawn has not its color")
	}
	if points := c.shares(); len(points) != 3 || points[0].Fill.Color[0] != "1B7F4B" {
		t.Errorf("a native chart has %v", points)
	}
}

// TestSheetColumnsInOrder: some programs repair a sheet whose columns are described
// in another order.
func TestSheetColumnsInOrder(t *testing.T) {
	var file strings.Builder
	if err := WriteXLSX(t.Context(), &file, sample()); err != nil {
		t.Fatal(err)
	}
	described := regexp.MustCompile(`<col min="(\d)"`)
	for name, part := range unzip(t, []byte(file.String())) {
		var at []string
		for _, found := range described.FindAllStringSubmatch(part, -1) {
			at = append(at, found[1])
		}
		if !slices.IsSorted(at) {
			t.Errorf("%s describes the columns %v", name, at)
		}
	}
}

func TestWordsOfNumbers(t *testing.T) {
	for _, test := range []struct{ got, want string }{
		{plural(1, "user"), "1 user"}, {plural(0, "user"), "0 users"}, {plural(1200, "policy"), "1,200 policies"},
		{rateFigure("", 1, 1, 5, 15, "simulated mail").Note, "1 of 1 simulated mail"},
		{rateFigure("", 1, 2000, 5, 15, "simulated mail").Note, "1 of 2,000 simulated mails"},
		{rateFigure("", 0, 0, 5, 15, "simulated mail").Note, "no simulated mails"},
	} {
		if test.got != test.want {
			t.Errorf("%q, want %q", test.got, test.want)
		}
	}
}
