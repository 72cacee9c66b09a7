package report

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"partnerapi/domain"
)

// TestRowsOfOneGroup: a PDF says once, on every page, what rows that follow each
// other agree in.
func TestRowsOfOneGroup(t *testing.T) {
	const each = 60 // more than a page has
	d := &Document{Title: "T", Sections: []Section{{Heading: "All", Blocks: []Block{Table{
		Title: "Rows", Columns: []Column{{Title: "Who"}, {Title: "What"}}, GroupBy: 1,
		Rows: numbered(2*each, func(i int) []any {
			return []any{[]string{"Amelie", "Bertram"}[i/each], fmt.Sprint("row", i)}
		}),
	}}}}}

	pages := pagesOf(t, d, nil)
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
		p := newLayout(newTypefaces(nil)).newPageTable(&Table{Columns: []Column{{Title: "Name"}, {Title: "Email"}}})
		for i := range 20 {
			p.firstRows = append(p.firstRows, []string{"Ada Armstrong", "ada.armstrong@hollowbrook-manufacturing.example"})
			if i == 7 {
				p.firstRows[i][0] = longest
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
	long := Chart{Kind: Bar, Labels: names, Series: []Series{{Values: []float64{11, 12, 13}}}}
	short := Chart{Kind: Bar, Labels: []string{"A", "B", "C"}, Series: long.Series}

	half := box{width: 80, height: chartHeight}
	if !l.newPlot(&long, half).horizontal || l.newPlot(&short, half).horizontal {
		t.Error("bars lie with short labels, or stand with long ones")
	}
	three := Chart{Kind: Bar, Series: long.Series,
		Labels: []string{"ISO/IEC 27001", "PCI DSS, Finance team", "HIPAA Security Rule, Head office"}}
	texts := chartTexts(t, &three, bodyWidth)
	for _, label := range three.Labels {
		if len(texts[label]) != 1 {
			t.Errorf("the label %q is not among the texts %v", label, texts)
		}
	}
	heights := map[string]float64{}
	for text, at := range chartTexts(t, &long, 80) {
		heights[strings.Fields(text)[0]] = at[0]
	}
	if !(heights["Passwords"] > heights["Recognizing"] && heights["Recognizing"] > heights["Safe"]) ||
		heights["Passwords"] != heights["11"] || heights["Safe"] != heights["13"] {
		t.Errorf("labels and numbers are at the heights %v", heights)
	}
	if n := l.chartsSideBySide([]Block{short, long}); n != 1 {
		t.Errorf("%d charts in a row", n)
	}
	if n := l.chartsSideBySide([]Block{short, short, short}); n != 2 {
		t.Errorf("%d charts in a row", n)
	}
}

// chartOperators draws a chart in a width, and returns what the file says.
func chartOperators(t *testing.T, c *Chart, width float64) string {
	t.Helper()
	l := newLayout(newTypefaces(nil))
	l.pdf.SetCompression(false)
	l.drawChart(c, box{sideMargin, topMargin, width, chartHeight})
	var file strings.Builder
	if err := l.finish(&file, &Document{}); err != nil {
		t.Fatal(err)
	}
	return file.String()
}

// chartTexts are the heights from the bottom of the page, in points, at which a chart
// writes its texts.
func chartTexts(t *testing.T, c *Chart, width float64) map[string][]float64 {
	t.Helper()
	texts := map[string][]float64{}
	drawn, _, _ := strings.Cut(chartOperators(t, c, width), "endstream")
	for _, found := range regexp.MustCompile(`(?s)BT \S+ (\S+) Td .*?\) Tj ET`).FindAllStringSubmatch(drawn, -1) {
		height := must(strconv.ParseFloat(found[1], 64))
		text := strings.TrimSpace(shownText([]byte(found[0])))
		texts[text] = append(texts[text], height)
	}
	return texts
}

// TestColorsOfShares: shares have the colors of their tones, whatever shares are 0.
func TestColorsOfShares(t *testing.T) {
	c := Chart{
		Kind: Donut, Labels: []string{"A", "B", "C"}, Tones: []Tone{Good, Bad, Bad},
		Series: []Series{{Values: []float64{0, 1, 2}}},
	}
	colors := c.colors(accentsOf(domain.Brand{}))
	if colors[0] != toneColors[Good] || colors[1] != toneColors[Bad] || colors[2] != toneColors[Bad].darker() {
		t.Errorf("colors %v", colors)
	}
	red, green, blue := colors[1].rgb()
	first := regexp.MustCompile(`(\S+ \S+ \S+) rg\n\S+ \S+ m`).FindStringSubmatch(chartOperators(t, &c, 80))
	if want := fmt.Sprintf("%.3f %.3f %.3f", float64(red)/255, float64(green)/255, float64(blue)/255); first[1] != want {
		t.Errorf("the first share that is drawn has the color %s, not %s", first[1], want)
	}
	if points := c.shareColors(accentsOf(domain.Brand{})); len(points) != 3 || points[0].Fill.Color[0] != "1B7F4B" {
		t.Errorf("a native chart has %v", points)
	}
}

func TestWordsOfNumbers(t *testing.T) {
	for _, test := range []struct{ got, want string }{
		{quantity(1, "user"), "1 user"}, {quantity(0, "user"), "0 users"}, {quantity(1200, "policy"), "1,200 policies"},
		{rateFigure("", 1, 1, 5, 15, "simulated email").Note, "1 of 1 simulated email"},
		{rateFigure("", 1, 2000, 5, 15, "simulated email").Note, "1 of 2,000 simulated emails"},
		{rateFigure("", 0, 0, 5, 15, "simulated email").Note, "no simulated emails"},
	} {
		if test.got != test.want {
			t.Errorf("%q, want %q", test.got, test.want)
		}
	}
}
