package report

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode/utf16"

	"github.com/ledongthuc/pdf"
	"golang.org/x/image/font/gofont/gomono"

	"partnerapi/domain"
)

// pagesOf writes a document and reads the texts of its pages back, without spaces.
func pagesOf(t testing.TB, d *Document, extra *Font) []string {
	t.Helper()
	var file bytes.Buffer
	if err := WritePDF(t.Context(), &file, d, extra); err != nil {
		t.Fatal(err)
	}
	if dir := os.Getenv("REPORT_PREVIEW"); dir != "" { // to look at the pages
		name := strings.ReplaceAll(t.Name(), "/", "_") + "-" + string(d.Type) + ".pdf"
		if err := os.WriteFile(filepath.Join(dir, name), file.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	r := must(pdf.NewReader(bytes.NewReader(file.Bytes()), int64(file.Len())))
	pages := make([]string, r.NumPage())
	for i := range pages {
		content := must(io.ReadAll(r.Page(i + 1).V.Key("Contents").Reader()))
		pages[i] = squeeze(shownText(content))
	}
	return pages
}

// shown are the operators of a page that show a text, which is in UTF-16.
var shown = regexp.MustCompile(`(?s)\(((?:\\.|[^\\)])*)\) Tj`)

// shownText is the text of a page. The reader does not know the encoding.
func shownText(content []byte) string {
	var text strings.Builder
	for _, match := range shown.FindAllSubmatch(content, -1) {
		bytes := regexp.MustCompile(`(?s)\\(.)`).ReplaceAllFunc(match[1], func(pair []byte) []byte {
			if pair[1] == 'r' {
				return []byte{'\r'}
			}
			return pair[1:]
		})
		units := make([]uint16, len(bytes)/2)
		for i := range units {
			units[i] = binary.BigEndian.Uint16(bytes[2*i:])
		}
		text.WriteString(string(utf16.Decode(units)) + " ")
	}
	return text.String()
}

// squeeze removes spaces: lines are broken at them.
func squeeze(text string) string { return strings.Join(strings.Fields(text), "") }

// TestPages: pages have what a document says in scripts that a font has, charts and the first rows of
// tables, and each its number and the headers.
func TestPages(t *testing.T) {
	d := sample()
	pages := pagesOf(t, d, nil)
	all := strings.Join(pages, "\n")
	for _, text := range []string{
		"25 August to 22 November 2026", "Created 22 November 2026, 03:04 UTC", "Nothing yet", "No data.",
		"Ελένη Παπαδοπούλου", "Алексей Щербаков", "1,234,567", "2024-02-29", "2026-11-22 01:34",
		"Nguyen Thi Ánh", lackingNote, // the letters that the font does not have lose their marks
		"=HYPERLINK(\"http://example.com\")", `-2+3 (\escaped\)`,
		"No user clicked in this period.",
		"Rows omitted here: 500. The XLSX version of this report contains all 1,500 rows.", userRow(maxPageRows - 1)[0].(string),
		"A: 310", "B: 602", "9.5%", "4.2%", "Jun", "Clicked", // charts are text, too
	} {
		if !strings.Contains(all, squeeze(text)) {
			t.Errorf("no page says %q", text)
		}
	}
	if strings.Contains(all, squeeze(userRow(maxPageRows)[0].(string))) {
		t.Error("more rows are shown than are said")
	}
	for i, text := range pages {
		if want := squeeze(fmt.Sprintf("Page %d of %d", i+1, len(pages))); !strings.Contains(text, want) || !strings.Contains(text, squeeze(d.Title)) {
			t.Errorf("page %d does not say %q and its title", i+1, want)
		}
		if i > 2 && !strings.Contains(text, squeeze("Name Email Score")) && !strings.Contains(text, squeeze(lackingNote)) {
			t.Errorf("page %d does not repeat the table's header", i+1)
		}
	}
	if pages := pagesOf(t, &Document{}, nil); len(pages) != 1 || !strings.Contains(pages[0], "Page1of1") {
		t.Errorf("an empty document is %q", pages)
	}
}

// TestMissingCharacters verifies that a file whose fonts lack characters says so at the end of its last page, and no other
// file does.
func TestMissingCharacters(t *testing.T) {
	document := func(name string) *Document {
		rows := make([][]any, 100) // of several pages
		for i := range rows {
			rows[i] = []any{fmt.Sprint("Row ", i)}
		}
		rows[0] = []any{name}
		return &Document{Title: "T", Client: "C", MadeAt: madeAt, Sections: []Section{{Heading: "Users", Blocks: []Block{
			Table{Title: "Users", Columns: []Column{{Title: "Name"}}, Rows: rowsOf(rows...)},
		}}}}
	}
	note := squeeze(lackingNote)
	for name, want := range map[string]bool{"Ana Núñez": false, "Ελένη": false, "漢字": true, "Ngọc": true, "\u200bAna": false, "👩": true} {
		pages := pagesOf(t, document(name), nil)
		if last := pages[len(pages)-1]; strings.Contains(last, note) != want || strings.Count(strings.Join(pages, ""), note) > 1 {
			t.Errorf("%s: the last page is %q", name, last)
		}
	}
}

func TestHeadingsStayWithWhatFollows(t *testing.T) {
	for lines := range 60 {
		d := &Document{Title: "T", Client: "C", MadeAt: madeAt}
		filler := make([]Block, lines)
		for i := range filler {
			filler[i] = Text("filler")
		}
		d.Sections = []Section{{Heading: "First", Blocks: filler}, {Heading: "Last heading", Blocks: []Block{
			Table{Title: "Caption", Columns: []Column{{Title: "Column"}}, Rows: rowsOf([]any{"Row 1"}, []any{"Row 2"})},
		}}}
		for _, page := range pagesOf(t, d, nil) {
			if strings.Contains(page, "Lastheading") != strings.Contains(page, "CaptionColumnRow1") {
				t.Fatalf("after %d lines: a heading stands alone", lines)
			}
		}
	}
}

// TestSameBytes: a document is the same file each time.
func TestSameBytes(t *testing.T) {
	var files [2]string
	var parts [2]map[string]string
	for i := range files {
		var page, book bytes.Buffer
		if err := errors.Join(WritePDF(t.Context(), &page, sample(), nil), WriteXLSX(t.Context(), &book, sample())); err != nil {
			t.Fatal(err)
		}
		files[i], parts[i] = page.String(), unzip(book.Bytes())
		delete(parts[i], "[Content_Types].xml") // the library lists the parts in any order
	}
	if files[0] != files[1] || !maps.Equal(parts[0], parts[1]) {
		t.Error("the same document gave two different files")
	}
}

func TestOtherScripts(t *testing.T) {
	d := &Document{Title: "漢字", Client: "山田 \U0001F600 عربى", MadeAt: madeAt}
	if text := pagesOf(t, d, nil)[0]; !strings.Contains(text, "\uFFFD\uFFFD") {
		t.Errorf("characters that no font has are not replaced: %q", text)
	}

	// U+2713 is in none of the built-in fonts but in this one, with the letter a.
	extra := filepath.Join(t.TempDir(), "extra.ttf")
	if err := os.WriteFile(extra, gomono.TTF, 0o600); err != nil {
		t.Fatal(err)
	}
	f := must(LoadFont(extra))
	faces := newTypefaces(f)
	faces.regular.widths['a'] = -1 // as if the built-in font did not have it
	if runs := faces.runs("bad", false); len(runs) != 3 || runs[1].face != faces.extra || runs[1].text != "a" {
		t.Errorf("runs %+v: the extra font is not used for what the other lacks", runs)
	}

	// The file has the fonts that its texts are in, and no others.
	for text, want := range map[string]bool{"Hello": false, "quiet": true} {
		faces := newTypefaces(f)
		faces.regular.widths['q'] = -1
		l := newLayout(faces)
		l.drawText(Text(text))
		var file bytes.Buffer
		if err := l.finish(&file, &Document{}); err != nil {
			t.Fatal(err)
		}
		if got := bytes.Contains(file.Bytes(), []byte("/BaseFont /utf8extra")); got != want {
			t.Errorf("%q: the file has the extra font: %t", text, got)
		}
	}
}

func TestRightToLeft(t *testing.T) {
	for text, want := range map[string]string{
		"": "", "abc 12": "abc 12", "שלום": "םולש", "abc שלום def": "abc םולש def", "שלום 12 abc": "abc 12 םולש",
	} {
		if got := visualOrder(text); got != want {
			t.Errorf("%q is written as %q, not %q", text, got, want)
		}
	}
}

func TestLoadFontRefuses(t *testing.T) {
	dir := t.TempDir()
	for name, data := range map[string][]byte{
		"empty": {}, "text": []byte("no font"), "cut": gomono.TTF[:len(gomono.TTF)/3], "opentype": []byte("OTTO\x00\x01"),
	} {
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, data, 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := LoadFont(file); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: error %v", name, err)
		}
	}
	if _, err := LoadFont(filepath.Join(dir, "missing")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a missing font: %v", err)
	}
}

func TestLinesFitTheirWidth(t *testing.T) {
	faces := newTypefaces(nil)
	texts := []string{
		"", " ", "a", strings.Repeat("W", 300), strings.Repeat("word ", 80), "a.b@c-d_e/f" + strings.Repeat("x", 99),
	}
	for row := range awkwardRows() {
		texts = append(texts, row[0].(string))
	}
	for _, text := range texts {
		for _, width := range []float64{8, 20, 60} {
			for _, most := range []int{0, 1, 3} {
				lines := faces.wrap(text, width, bodyStyle, most)
				if most > 0 && len(lines) > most {
					t.Errorf("%.20q has %d lines, at most %d", text, len(lines), most)
				}
				for _, line := range lines {
					if faces.width(line, bodyStyle) > width+1e-9 {
						t.Errorf("the line %q is wider than %g", line, width)
					}
				}
				if all := squeeze(strings.Join(lines, "")); most == 0 && all != squeeze(faces.clean(text)) {
					t.Errorf("%q became %q", text, all)
				}
			}
		}
	}
}

func TestChartsOfAnything(t *testing.T) {
	nan := math.NaN()
	for name, values := range map[string][]float64{
		"none": {}, "one": {7}, "zeros": {0, 0}, "missing": {nan, nan}, "some missing": {1, nan, 3},
		"negative": {-5, 3}, "flat": {700, 700, 700}, "large": {1e9, 5e8}, "small": {0.1, 0.2}, "many": {1, 2, 3, 4, 5},
	} {
		labels := []string{"A", "Β", "漢", "D", "E"}[:max(len(values), 1)]
		for kind := Line; kind <= Donut; kind++ {
			for _, unit := range []string{"", "%"} {
				c := Chart{Kind: kind, Title: name, Unit: unit, Labels: labels, Series: []Series{{"S", values}, {"T", values}}}
				if c.empty() { // is not drawn
					continue
				}
				l := newLayout(newTypefaces(nil))
				l.pdf.SetCompression(false)
				l.drawChart(&c, box{10, 10, 40, 25})
				var file bytes.Buffer
				if err := l.finish(&file, &Document{}); err != nil {
					t.Errorf("%s, kind %d: %v", name, kind, err)
				}
				if drawn := notNumber.Find(file.Bytes()); drawn != nil {
					t.Errorf("%s, kind %d: %s is drawn", name, kind, drawn)
				}
			}
		}
	}
}

// notNumber are operands of a page that are no numbers.
var notNumber = regexp.MustCompile(`(?m)^.*\b(NaN|[+-]Inf)\b.*$`)

func TestScaleIsRound(t *testing.T) {
	for _, test := range []struct {
		kind            ChartKind
		unit            string
		values          []float64
		lowest, highest float64
	}{
		{Bar, "%", []float64{12, 4}, 0, 15},
		{Bar, "%", []float64{100}, 0, 100},
		{Bar, "", []float64{3}, 0, 3},
		{Line, "", []float64{640, 760}, 0, 800},
		{Line, "", []float64{0, 0}, 0, 1},
		{Bar, "", []float64{-3, 5}, -4, 6},
	} {
		c := Chart{Kind: test.kind, Unit: test.unit, Series: []Series{{Values: test.values}}}
		if lowest, highest, _ := c.scale(); lowest != test.lowest || highest != test.highest {
			t.Errorf("%v: from %g to %g, not %g to %g", test.values, lowest, highest, test.lowest, test.highest)
		}
	}
}

func TestErrorsOfRows(t *testing.T) {
	failed := errors.New("the database is gone")
	broken := func(yield func([]any, error) bool) { yield(nil, failed) }
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	for name, test := range map[string]struct {
		ctx   context.Context
		table Table
		want  string
	}{
		"reading fails": {t.Context(), Table{Title: "T", Rows: broken}, failed.Error()},
		"wrong type": {t.Context(), Table{Title: "T", Columns: []Column{{Title: "Due", Kind: DateColumn}},
			Rows: rowsOf([]any{"today"})}, `column "Due"`},
		"wrong length": {t.Context(), Table{Title: "T", Columns: []Column{{Title: "A"}},
			Rows: rowsOf([]any{"a", "b"})}, "2 cells under 1 columns"},
		"canceled": {canceled, Table{Title: "T", Columns: []Column{{Title: "A"}}, Rows: rowsOf([]any{"a"})},
			context.Canceled.Error()},
	} {
		d := &Document{
			Type: domain.RiskOverview, MadeAt: madeAt, Sections: []Section{{Heading: "H", Blocks: []Block{test.table}}},
		}
		for format, err := range map[string]error{
			"pdf": WritePDF(test.ctx, &bytes.Buffer{}, d, nil), "xlsx": WriteXLSX(test.ctx, &bytes.Buffer{}, d),
		} {
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("%s, %s: error %v, want %q", name, format, err, test.want)
			}
		}
	}
}
