package report

import (
	"bytes"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/xuri/excelize/v2"

	"partnerapi/domain"
)

// TestPeriodText verifies that a period is written as people write it.
func TestPeriodText(t *testing.T) {
	for _, c := range []struct {
		start, end domain.Date
		want       string
	}{
		{day(2026, 8, 31), day(2026, 11, 28), "31 August to 28 November 2026"},
		{day(2025, 12, 5), day(2026, 3, 4), "5 December 2025 to 4 March 2026"},
		{day(2026, 11, 1), day(2026, 11, 28), "1 to 28 November 2026"},
		{day(2026, 11, 1), day(2026, 11, 30), "November 2026"},
		{day(2024, 2, 1), day(2024, 2, 28), "1 to 28 February 2024"},
		{day(2026, 11, 28), day(2026, 11, 28), "28 November 2026"},
		{day(2026, 1, 1), day(2026, 12, 31), "1 January to 31 December 2026"},
	} {
		if got := periodText(domain.ReportPeriod{Start: c.start, End: c.end}); got != c.want {
			t.Errorf("got %q, want %q", got, c.want)
		}
	}
}

// TestChanges verifies what a figure says of the period before: by how much it got better or worse, as both values are
// shown, with a sign that does not rest on color; nothing if either has no value.
func TestChanges(t *testing.T) {
	for _, c := range []struct {
		value, earlier any
		better         direction
		want           string
	}{
		{Percent(10.6), Percent(13.9), lowerIsBetter, "▲ Better by 3.3 points"},
		{Percent(10.6), Percent(9.6), lowerIsBetter, "▼ Worse by 1 point"},
		{Percent(20.14), Percent(20.06), higherIsBetter, "Same as before"},
		{WholePercent(66.7), Percent(60.2), higherIsBetter, "▲ Better by 7 points"},
		{762, 748, higherIsBetter, "▲ Better by 14"},
		{3, 1203, lowerIsBetter, "▲ Better by 1,200"},
		{130, 87, neither, "43 more than before"},
		{26, 40, neither, "14 fewer than before"},
		{26, 26, neither, "Same as before"},
		{26, nil, higherIsBetter, ""},
		{nil, 26, higherIsBetter, ""},
	} {
		if got := (Figure{Value: c.value}).against(c.earlier, c.better).Change.text(); got != c.want {
			t.Errorf("%v after %v: got %q, want %q", c.value, c.earlier, got, c.want)
		}
	}
}

// TestChangesInFiles verifies that both formats have the changes of figures, and a PDF the period that they compare with.
func TestChangesInFiles(t *testing.T) {
	d := &Document{
		Title: "T", Client: "C", MadeAt: madeAt, Period: &domain.ReportPeriod{Start: day(2026, 11, 1), End: day(2026, 11, 30)},
		Before: &domain.ReportPeriod{Start: day(2026, 10, 1), End: day(2026, 10, 31)},
		Sections: []Section{{Heading: "S", Blocks: []Block{Figures{
			Figure{Label: "Click rate", Value: Percent(4.5), Note: "9 of 200"}.against(Percent(6), lowerIsBetter),
			{Label: "Without", Value: WholePercent(33.3)},
		}}}},
	}
	page := pagesOf(t, d, nil)[0]
	for _, text := range []string{"November 2026, compared with October 2026", "▲ Better by 1.5 points", "33%"} {
		if !strings.Contains(page, squeeze(text)) {
			t.Errorf("the page does not say %q: %s", text, page)
		}
	}
	var file bytes.Buffer
	must(0, WriteXLSX(t.Context(), &file, d))
	rows := must(must(excelize.OpenReader(&file)).GetRows(summarySheet))
	for _, want := range [][]string{
		{"Click rate", "4.5%", "9 of 200", "▲ Better by 1.5 points"}, {"Without", "33%"},
	} {
		if !slices.ContainsFunc(rows, func(row []string) bool { return slices.Equal(row, want) }) {
			t.Errorf("got the rows %q, want %q among them", rows, want)
		}
	}
}

// TestPageWords verifies that pages have other words than an XLSX file for the report's own words alone.
func TestPageWords(t *testing.T) {
	table := func() Table {
		return Table{Title: "Phishing by user", Columns: []Column{{Title: "What"}, {Title: "Course"}},
			Rows: rowsOf([]any{Word("Simulated mails sent"), "All users"}, []any{worseWord, "Better"})}
	}
	d := &Document{Title: "T", Client: "C", MadeAt: madeAt, Sections: []Section{{Heading: "S", Blocks: []Block{table()}}}}
	if page := pagesOf(t, d, nil)[0]; !strings.Contains(page, "PhishingbyemployeeCountCourseSimulatedemailssentAllusers▼WorseBetter") {
		t.Errorf("the page says %s", page)
	}
	d.Sections[0].Blocks[0] = table()
	var file bytes.Buffer
	must(0, WriteXLSX(t.Context(), &file, d))
	rows := must(must(excelize.OpenReader(&file)).GetRows("Phishing by user"))
	for i, want := range [][]string{{"What", "Course"}, {"Simulated mails sent", "All users"}, {"Worse", "Better"}} {
		if !slices.Equal(rows[i], want) {
			t.Errorf("got the row %q, want %q", rows[i], want)
		}
	}
}

// TestScoreScale verifies that a change of 2% of the scores takes at most 8% of the axis, that the axis contains all scores, and
// that the page names the grades of its bands.
func TestScoreScale(t *testing.T) {
	for lowest := 0.0; lowest <= mostScore; lowest += 7 {
		highest := min(lowest*1.02, mostScore)
		from, to, steps := scoreScale(lowest, highest)
		if from > lowest || to < highest || from < 0 || to > mostScore || (highest-lowest)/(to-from) > 0.08 ||
			math.Abs((to-from)/float64(steps)-100) > 1e-9 {
			t.Errorf("%g to %g: got an axis from %g to %g in %d steps", lowest, highest, from, to, steps)
		}
	}
	c := Chart{Kind: Line, Grades: true, Labels: []string{"1", "2"}, Series: []Series{{Values: []float64{745, 760}}}}
	texts := chartTexts(t, &c, bodyWidth)
	for _, text := range []string{"A", "B", "C", "600", "900"} {
		if len(texts[text]) != 1 {
			t.Errorf("the chart does not say %q: %v", text, texts)
		}
	}
	if len(texts["D"]) != 0 || !(texts["A"][0] > texts["B"][0] && texts["B"][0] > texts["C"][0]) {
		t.Errorf("the grades are at %v", texts)
	}
}

// TestAccents verifies that texts, lines and bars have the accent color of the brand only if it can be read on white.
func TestAccents(t *testing.T) {
	for accent, readable := range map[domain.AccentColor]bool{"": true, "#0b6b4f": true, "#ffd400": false, "#ffffff": false} {
		a := accentsOf(domain.Brand{AccentColor: accent})
		if (a.text == a.bar) != readable || !readable && a.text != ink || a.series(0) != a.text {
			t.Errorf("%q: got %v", accent, a)
		}
	}
	if a := accentsOf(domain.Brand{}); a.bar.hex() != strings.ToUpper(strings.TrimPrefix(domain.Accent, "#")) {
		t.Errorf("without a brand, got %v", a)
	}
}

// TestComparedChange verifies that the change in a table is the difference of the values that it shows, as in the
// figure of the same values.
func TestComparedChange(t *testing.T) {
	for _, c := range []struct {
		current, earlier any
		want, figure     string
	}{
		{WholePercent(5.6), WholePercent(15.1), "-9", "Better by 9 points"},
		{WholePercent(5.6), Percent(15.4), "-9", "Better by 9 points"},
		{Percent(8.04), Percent(15.44), "-7.4", "Better by 7.4 points"},
		{WholePercent(5.6), WholePercent(6.4), "0", "Same as before"},
		{3, 5, "-2", "Better by 2"},
		{nil, WholePercent(3), noValue, ""},
	} {
		n := numberPair{"Click rate", c.current, c.earlier, lowerIsBetter}
		if got := textOf(n.change()); got != c.want {
			t.Errorf("from %v to %v: got %s, want %s", c.earlier, c.current, got, c.want)
		}
		if got := (Figure{Value: c.current}).against(c.earlier, lowerIsBetter).Change.Text; got != c.figure {
			t.Errorf("from %v to %v: the figure says %q, want %q", c.earlier, c.current, got, c.figure)
		}
	}
}

// TestComparedHealth verifies that percentages of fewer than 100 things, and the averages next to them, have no
// decimals.
func TestComparedHealth(t *testing.T) {
	own := ownHealth{users: 27, sent: 100}
	own.OnTrack, own.ClickRate, own.AverageScore = new(77.8), new(4.5), new(700.0)
	others := domain.Health{OnTrack: new(78.4), ClickRate: new(9.24), AverageScore: new(612.4)}
	got := map[Word][]any{}
	for row, err := range healthTable(&own, &others).Rows {
		must(0, err)
		got[row[0].(Word)] = row[2:]
	}
	for name, want := range map[Word][3]string{
		"Users on track with training":   {"78", "78", "Same"},
		"Click rate of the last 90 days": {"4.5", "9.2", "▲ Better"},
		"Average risk score":             {"700.0", "612.4", "▲ Better"},
	} {
		for i, cell := range got[name] {
			if textOf(cell) != want[i] {
				t.Errorf("%s: got %q, want %q", name, textOf(cell), want[i])
			}
		}
	}
}
