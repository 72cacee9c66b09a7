package report

import (
	"archive/zip"
	"cmp"
	"context"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"time"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/xuri/excelize/v2"

	"partnerapi/domain"
)

// workbook writes an XLSX file.
type workbook struct {
	*excelize.File
	// sheets holds the names of sheets in lower case, because Excel compares them without regard to case.
	sheets  map[string]bool
	styles  []int // by cellFormat
	row     int   // the next row of the summary, from 1
	columns int   // of the summary, in use
	accents accents
	used    map[string]string // the ranges of cells in use, such as "A1:C7", by the sheet's name
	maxRows int               // of a sheet, with its header
	err     error             // the first error
}

// check sets b.err to err, unless b.err has an earlier error.
func (b *workbook) check(err error) {
	if b.err == nil {
		b.err = err
	}
}

// cellFormat is a style of cells (see makeStyles).
type cellFormat int

const (
	plainFormat cellFormat = iota
	titleFormat
	headingFormat
	headFormat // the header of a table
	noteFormat
	wrapFormat
	integerFormat
	numberFormat
	percentFormat
	wholePercentFormat
	monthFormat
	dateFormat
	timeFormat
)

const (
	summarySheet   = "Summary"
	summaryColumns = 3 // without the column of changes
)

// WriteXLSX writes a document as a workbook: a summary sheet, a sheet for each table with all of its rows, and a sheet
// for each chart. Large tables are buffered in temporary files, not in memory.
func WriteXLSX(ctx context.Context, w io.Writer, d *Document) error {
	return writeXLSX(ctx, w, d, excelize.TotalRows)
}

// writeXLSX implements WriteXLSX. maxRows is the maximum number of rows of a sheet.
func writeXLSX(ctx context.Context, w io.Writer, d *Document, maxRows int) (err error) {
	b := &workbook{
		File: excelize.NewFile(), sheets: map[string]bool{}, row: 1, columns: summaryColumns, accents: accentsOf(d.Brand),
		used: map[string]string{}, maxRows: maxRows,
	}
	defer func() {
		if closeErr := b.Close(); err == nil && closeErr != nil { // removes the temporary files
			err = fmt.Errorf("write an xlsx file: %w", closeErr)
		}
	}()

	if b.writeDocument(ctx, d); b.err != nil {
		return fmt.Errorf("write an xlsx file: %w", b.err)
	}
	// The library's own ZIP writer would hold the whole file in memory. This one writes to w, not to its argument.
	b.SetZipWriter(func(io.Writer) excelize.ZipWriter { return b.newArchive(zip.NewWriter(w)) })
	return b.Write(io.Discard)
}

// writeDocument writes the sheets of a document. It stops at the first error, and sets b.err to it.
func (b *workbook) writeDocument(ctx context.Context, d *Document) {
	b.makeStyles()
	b.beginSummary(d)
	for i := range d.Sections {
		if b.writeSection(ctx, &d.Sections[i]); b.err != nil {
			b.err = fmt.Errorf("section %q: %w", d.Sections[i].Heading, b.err)
			return
		}
	}
	b.SetActiveSheet(0)
	b.setUsed(summarySheet, b.columns, b.row-1)
}

// beginSummary sets the properties of the file, and writes the first rows of the summary.
func (b *workbook) beginSummary(d *Document) {
	made := d.MadeAt.UTC().Format(time.RFC3339)
	b.check(b.SetDocProps(&excelize.DocProperties{
		Title: d.Title, Subject: d.Client, Created: made, Modified: made, Creator: cmp.Or(strings.Join(d.makers(), ", "), "Reports"),
	}))
	b.check(b.SetSheetName("Sheet1", b.reserveSheetName(summarySheet))) // a new file has the sheet Sheet1
	b.check(b.SetColWidth(summarySheet, "A", "A", 44))
	b.check(b.SetColWidth(summarySheet, "B", "D", 28))

	b.writeLine(cell{titleFormat, d.Title})
	b.writeLine(cell{plainFormat, "Client"}, cell{plainFormat, d.Client})
	if p := d.Period; p != nil {
		b.writeLine(cell{plainFormat, "Period"}, cellOf(p.Start), cellOf(p.End))
	}
	b.writeLine(cell{plainFormat, "Made (UTC)"}, cellOf(d.MadeAt))
}

// writeSection writes a section, unless it is empty: its heading, texts and figures on the summary, and its charts and
// tables on their own sheets.
func (b *workbook) writeSection(ctx context.Context, s *Section) {
	if len(s.Blocks) == 0 {
		return
	}
	b.row++
	b.writeLine(cell{headingFormat, s.Heading})
	for _, block := range s.Blocks {
		switch v := block.(type) {
		case Text:
			b.writeParagraph(string(v))
		case Figures:
			b.writeFigures(v)
		case Chart:
			b.writeChart(&v)
		case Table:
			b.writeTable(ctx, &v)
		}
		if b.err != nil {
			return
		}
	}
}

// cell is a value with its format.
type cell struct {
	format cellFormat
	value  any
}

// put writes a cell of a sheet.
func (b *workbook) put(sheet string, column, row int, c cell) {
	name := b.cellName(column, row)
	b.check(b.SetCellValue(sheet, name, c.value))
	b.check(b.SetCellStyle(sheet, name, name, b.styles[c.format]))
}

// cellName returns the name of a cell: B3, or $B$3 if absolute is true. Columns and rows count from 1.
func (b *workbook) cellName(column, row int, absolute ...bool) string {
	name, err := excelize.CoordinatesToCellName(column, row, absolute...)
	b.check(err)
	return name
}

// writeLine writes the next row of the summary.
func (b *workbook) writeLine(cells ...cell) {
	for i, c := range cells {
		b.put(summarySheet, i+1, b.row, c)
	}
	b.columns = max(b.columns, len(cells))
	b.row++
}

// writeParagraph writes a text over all columns of the summary. Its row has 15 points for each 95 characters, at most
// 400.
func (b *workbook) writeParagraph(text string) {
	row := b.row
	b.writeLine(cell{wrapFormat, text})
	b.check(b.MergeCell(summarySheet, "A"+strconv.Itoa(row), "C"+strconv.Itoa(row)))
	lines := utf8.RuneCountInString(text)/95 + 1
	b.check(b.SetRowHeight(summarySheet, row, min(float64(lines)*15, 400)))
}

// writeFigures writes a row of the summary for each figure: label, value, note and, if there is one, change.
func (b *workbook) writeFigures(list Figures) {
	for _, f := range list {
		value := cmp.Or(f.Value, any(noValue))
		line := []cell{{plainFormat, f.Label}, cellOf(value), {noteFormat, f.Note}}
		if f.Change.Text != "" {
			line = append(line, cell{noteFormat, f.Change.text()})
		}
		b.writeLine(line...)
	}
}

// maxSheetName is the maximum length of a sheet's name, in units of UTF-16.
const maxSheetName = 31

// reserveSheetName converts a title to a valid name that no sheet has yet, with a number if needed, and reserves it.
func (b *workbook) reserveSheetName(title string) string {
	clean := strings.Map(func(r rune) rune {
		switch {
		case r == '\'': // would have to be escaped in references
			return '’'
		case r < ' ' || strings.ContainsRune(`[]:*?/\`, r):
			return ' '
		}
		return r
	}, title)
	clean = strings.Trim(strings.Join(strings.Fields(clean), " "), "’")
	switch {
	case clean == "":
		clean = "Table"
	case strings.EqualFold(clean, "History"): // Excel reserves that name
		clean += " list"
	}

	name := cutSheetName(clean, maxSheetName)
	for n := 2; b.sheets[strings.ToLower(name)]; n++ {
		suffix := " (" + strconv.Itoa(n) + ")"
		name = cutSheetName(clean, maxSheetName-len(suffix)) + suffix
	}
	b.sheets[strings.ToLower(name)] = true
	return name
}

// cutSheetName cuts a text to a length in units of UTF-16, as Excel counts it. It cuts a longer text at the last space
// within the length, if there is one.
func cutSheetName(text string, length int) string {
	for i, r := range text {
		if length -= utf16.RuneLen(r); length >= 0 {
			continue
		}
		if space := strings.LastIndexByte(text[:i+1], ' '); space > 0 {
			i = space
		}
		return strings.TrimRight(text[:i], " ,;’")
	}
	return text
}

// makeStyles sets b.styles to the ids of a style for each cellFormat.
func (b *workbook) makeStyles() {
	number := func(format string) *excelize.Style { return &excelize.Style{CustomNumFmt: &format} }
	fill := excelize.Fill{Type: "pattern", Pattern: 1, Color: []string{pale.hex()}}
	for _, style := range []*excelize.Style{
		plainFormat:   {},
		titleFormat:   {Font: &excelize.Font{Bold: true, Size: 16, Color: ink.hex()}},
		headingFormat: {Font: &excelize.Font{Bold: true, Size: 12, Color: b.accents.text.hex()}},
		headFormat: {
			Font: &excelize.Font{Bold: true, Color: ink.hex()}, Fill: fill,
			Alignment: &excelize.Alignment{WrapText: true, Vertical: "center"},
		},
		noteFormat:    {Font: &excelize.Font{Color: gray.hex()}},
		wrapFormat:    {Alignment: &excelize.Alignment{WrapText: true, Vertical: "top"}},
		integerFormat: number("#,##0"),
		numberFormat:  number("#,##0.0"),
		percentFormat: number("0.0%"), wholePercentFormat: number("0%"),
		monthFormat: number("mmm yyyy"),
		dateFormat:  number("yyyy-mm-dd"),
		timeFormat:  number("yyyy-mm-dd hh:mm"),
	} {
		id, err := b.NewStyle(style)
		b.check(err)
		b.styles = append(b.styles, id)
	}
}

// exact rounds a number to six decimals, which removes errors of binary fractions such as 0.1+0.2.
func exact(v float64) float64 { return math.Round(v*1e6) / 1e6 }

// fraction returns the percentage as a fraction of 1, as Excel stores it, rounded to six decimals.
func (p Percent) fraction() float64 { return math.Round(float64(p)*1e4) / 1e6 }

// cellOf returns a value of a table, a figure or a chart as Excel stores it, with the format of its type.
func cellOf(value any) cell {
	switch v := value.(type) {
	case int:
		return cell{integerFormat, v}
	case Whole:
		return cell{integerFormat, exact(float64(v))}
	case Percent:
		return cell{percentFormat, v.fraction()}
	case WholePercent:
		return cell{wholePercentFormat, Percent(v).fraction()}
	case Word:
		return cell{plainFormat, string(v)}
	case float64:
		return cell{numberFormat, exact(v)}
	case domain.Date:
		return cell{dateFormat, v.Time()}
	case time.Time:
		return cell{timeFormat, v.UTC().Truncate(time.Second)}
	}
	return cell{plainFormat, value}
}
