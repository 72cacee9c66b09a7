package report

import (
	"archive/zip"
	"bytes"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/xuri/excelize/v2"

	"partnerapi/domain"
)

// workbookOf writes a document and reads it back.
func workbookOf(t *testing.T, d *Document, maxRows int) *excelize.File {
	t.Helper()
	var file bytes.Buffer
	if err := writeXLSX(t.Context(), &file, d, maxRows); err != nil {
		t.Fatal(err)
	}
	f := must(excelize.OpenReader(&file))
	t.Cleanup(func() { _ = f.Close() })
	return f
}

// checkRows compares the rows of a sheet, below its header, with those of a table.
func checkRows(t *testing.T, f *excelize.File, sheet string, from, count int, row func(int) []any) {
	t.Helper()
	shown, raw := must(f.GetRows(sheet)), must(f.GetRows(sheet, excelize.Options{RawCellValue: true}))
	if len(shown) != count+1 {
		t.Fatalf("%s has %d rows below its header, not %d", sheet, len(shown)-1, count)
	}
	for i := range count {
		for c, cell := range row(i + from - 1) {
			var is, has string
			if c < len(raw[i+1]) {
				is, has = shown[i+1][c], raw[i+1][c]
			}
			if cell == nil && has != "" || cell != nil && !sameCell(cell, is, has) {
				t.Fatalf("%s, row %d: %v is shown as %q, and is %q", sheet, i, cell, is, has)
			}
		}
	}
}

func sameCell(cell any, shown, raw string) bool {
	number := func() float64 { return must(strconv.ParseFloat(raw, 64)) }
	moment := func() time.Time { return must(excelize.ExcelDateToTime(number(), false)).Round(time.Second) }
	switch v := cell.(type) {
	case string:
		return shown == v && raw == v
	case int:
		return number() == float64(v)
	case Whole:
		return number() == exact(float64(v)) && shown == textOf(v)
	case float64:
		return number() == exact(v)
	case domain.Date:
		return shown == v.String() && moment().Equal(v.Time())
	case time.Time:
		return shown == v.Format("2006-01-02 15:04") && moment().Sub(v).Abs() < time.Second
	case Percent:
		return number() == v.fraction() && strings.HasSuffix(shown, "%")
	case WholePercent:
		return number() == Percent(v).fraction() && shown == wholeRateText(float64(v))
	case Word:
		return shown == string(v) && raw == string(v)
	case bool:
		return shown == strings.ToUpper(strconv.FormatBool(v))
	}
	return false
}

func TestXLSXNothingIsAFormula(t *testing.T) {
	danger := []string{"=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "=HYPERLINK(\"http://x\")", "<v>&amp;", "\x00\x0b"}
	d := &Document{Title: "=title", Client: "=client", MadeAt: madeAt}
	for _, text := range danger {
		d.Sections = append(d.Sections, Section{Heading: text, Blocks: []Block{
			Text(text), Figures{{Label: text, Value: text, Note: text}},
			Chart{Title: text, Labels: []string{text}, Series: []Series{{Name: text, Values: []float64{1}}}},
			Table{Title: text, Columns: []Column{{Title: text}}, Rows: rowsOf([]any{text})},
		}})
	}
	f := workbookOf(t, d, excelize.TotalRows)
	found := 0
	for _, sheet := range f.GetSheetList() {
		rows := must(f.GetRows(sheet))
		for r, row := range rows {
			for c, text := range row {
				name := must(excelize.CoordinatesToCellName(c+1, r+1))
				if formula, err := f.GetCellFormula(sheet, name); err != nil || formula != "" {
					t.Errorf("%s %s is the formula %q (%v)", sheet, name, formula, err)
				}
				if text == "=1+1" {
					found++
				}
			}
		}
	}
	if found < 8 {
		t.Errorf("%d cells hold the text, not 8", found)
	}
}

func TestXLSXGoesOnInAnotherSheet(t *testing.T) {
	d := &Document{MadeAt: madeAt, Sections: []Section{{Blocks: []Block{
		Table{Title: "Users", Columns: userColumns, Rows: numbered(25, userRow)},
	}}}}
	f := workbookOf(t, d, 11)
	if sheets := f.GetSheetList(); !slices.Equal(sheets, []string{"Summary", "Users", "Users (2)", "Users (3)"}) {
		t.Fatalf("sheets %q", sheets)
	}
	checkRows(t, f, "Users", 1, 10, userRow)
	checkRows(t, f, "Users (2)", 11, 10, userRow)
	checkRows(t, f, "Users (3)", 21, 5, userRow)
}

// TestXLSXSheets: each table and chart has a sheet, which says how large it is, describes its
// columns in order, and has its header in sight and filtering, and numbers without noise.
func TestXLSXSheets(t *testing.T) {
	d := sample()
	var file bytes.Buffer
	if err := WriteXLSX(t.Context(), &file, d); err != nil {
		t.Fatal(err)
	}
	parts := unzip(file.Bytes())
	f := workbookOf(t, sample(), excelize.TotalRows)
	names := []string{
		"Summary", "Average score by week", "Click rate by month", "Users by grade", "Mails by month", "Nothing yet",
		"Users with awkward names", "Nobody", "All users",
	}
	if sheets := f.GetSheetList(); !slices.Equal(sheets, names) {
		t.Errorf("sheets %q", sheets)
	}
	checkRows(t, f, "All users", 1, 1500, userRow)
	filters := map[string]string{}
	for _, name := range f.GetDefinedName() {
		if name.Name == "_xlnm._FilterDatabase" {
			filters[name.Scope] = name.RefersTo
		}
	}
	for id, sheet := range f.GetSheetMap() {
		text := parts[fmt.Sprintf("xl/worksheets/sheet%d.xml", id)]
		var described []string // in another order some programs repair the sheet
		for _, column := range regexp.MustCompile(`<col min="(\d)"`).FindAllStringSubmatch(text, -1) {
			described = append(described, column[1])
		}
		if !slices.IsSorted(described) {
			t.Errorf("%s describes the columns %v", sheet, described)
		}
		columns, rows := 0, 0
		for _, cell := range regexp.MustCompile(`<c r="([A-Z]+[0-9]+)"`).FindAllStringSubmatch(text, -1) {
			column, row, err := excelize.CellNameToCoordinates(cell[1])
			if err != nil {
				t.Fatal(err)
			}
			columns, rows = max(columns, column), max(rows, row)
		}
		last, err := excelize.CoordinatesToCellName(columns, rows)
		if err != nil || !strings.Contains(text, `<dimension ref="A1:`+last+`"/>`) {
			t.Errorf("%s, to %s, begins with %.300s", sheet, last, text)
		}
		if noise := regexp.MustCompile(`<v>[0-9]*\.[0-9]*(0000000|9999999)[0-9]*</v>`).FindString(text); noise != "" {
			t.Errorf("%s has %s", sheet, noise)
		}
		if frozen := strings.Contains(text, `state="frozen"`); frozen != (sheet != "Summary") {
			t.Errorf("%s has a header in sight: %v", sheet, frozen)
		}
		all, err := excelize.CoordinatesToCellName(columns, rows, true)
		filtered := strings.Contains(text, `<autoFilter ref="$A$1:`+all+`"`) && filters[sheet] == "'"+sheet+"'!$A$1:"+all
		if err != nil || filtered != (sheet != "Summary") {
			t.Errorf("%s, to %s, has a filter of %q", sheet, all, filters[sheet])
		}
	}
	raw := excelize.Options{RawCellValue: true}
	for _, want := range [][3]string{
		{"Summary", "Average score", "712"}, {"Summary", "Training on track", "0.915"}, {"Summary", "Click rate", "0.082"},
		{"Click rate by month", "Sep", "0.082"}, {"Mails by month", "Jun", "20"},
	} {
		rows, err := f.GetRows(want[0], raw)
		found := func(row []string) bool { return len(row) > 1 && row[0] == want[1] && row[1] == want[2] }
		if err != nil || !slices.ContainsFunc(rows, found) {
			t.Errorf("%v is not in %q (%v)", want, rows, err)
		}
	}
	if rows, err := f.GetRows("Nobody"); err != nil || !strings.Contains(fmt.Sprint(rows), "No user clicked in this period.") {
		t.Errorf("an empty table says %q (%v)", rows, err)
	}
	if rows, err := f.GetRows("Average score by week"); err != nil || rows[0][0] != "Day" || rows[1][0] != "2026-08-24" {
		t.Errorf("days are %v (%v)", rows, err)
	}
}

func TestSheetNames(t *testing.T) {
	b := &workbook{sheets: map[string]bool{}}
	long := strings.Repeat("Ä", 40)
	for _, test := range [][2]string{
		{"Summary", "Summary"}, {"summary", "summary (2)"}, {"a/b: [c]*?\\", "a b c"}, {"'quoted'", "quoted"},
		{"history", "history list"}, {"", "Table"}, {"???", "Table (2)"}, {long, long[:62]},
		{"NIST Cybersecurity Framework, Sales", "NIST Cybersecurity Framework"},
		{"NIST Cybersecurity Framework, Service", "NIST Cybersecurity (2)"}, {"O'Brien's", "O’Brien’s"},
		{"Requirements met, the first 12 of 13", "Requirements met, the first 12"}, {long, long[:54] + " (2)"},
		{strings.Repeat("\U0001F600", 20), strings.Repeat("\U0001F600", 15)},
	} {
		if got := b.reserveSheetName(test[0]); got != test[1] {
			t.Errorf("%q is named %q, not %q", test[0], got, test[1])
		}
	}
}

func unzip(file []byte) map[string]string {
	archive := must(zip.NewReader(bytes.NewReader(file), int64(len(file))))
	parts := map[string]string{}
	for _, f := range archive.File {
		parts[f.Name] = string(must(io.ReadAll(must(f.Open()))))
	}
	return parts
}
