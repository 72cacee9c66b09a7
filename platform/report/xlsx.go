package report

import (
	"archive/zip"
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

// workbook is an XLSX file while it is written.
type workbook struct {
	*excelize.File
	// sheets has the names that are taken, in lower case: Excel compares them
	// without regard to case.
	sheets map[string]bool
	styles []int // by cellFormat
	// row is the next one of the summary.
	row int
	// used are the sheets' cells in use, by their names: "A1:C7".
	used map[string]string
	// maxRows is how many rows a sheet has, its header included.
	maxRows int
}

// cellFormat is a style of cells.
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
	monthFormat
	dateFormat
	timeFormat
)

const (
	summarySheet   = "Summary"
	summaryColumns = 3
)

// WriteXLSX writes a document as a workbook: a summary, a sheet for each table with
// all of its rows, and one for each chart. Tables are streamed: what does not fit in
// memory goes through temporary files.
func WriteXLSX(ctx context.Context, w io.Writer, d *Document) error {
	return writeXLSX(ctx, w, d, excelize.TotalRows)
}

func writeXLSX(ctx context.Context, w io.Writer, d *Document, maxRows int) (err error) {
	b := &workbook{
		File: excelize.NewFile(), sheets: map[string]bool{}, row: 1, used: map[string]string{}, maxRows: maxRows,
	}
	defer func() {
		if closeErr := b.Close(); err == nil && closeErr != nil { // removes the temporary files
			err = fmt.Errorf("write an xlsx file: %w", closeErr)
		}
	}()

	if err := b.document(ctx, d); err != nil {
		return fmt.Errorf("write an xlsx file: %w", err)
	}
	// The library would make the whole file in memory first.
	b.SetZipWriter(func(io.Writer) excelize.ZipWriter { return b.parts(zip.NewWriter(w)) })
	return b.Write(io.Discard)
}

func (b *workbook) document(ctx context.Context, d *Document) error {
	if err := b.makeStyles(); err != nil {
		return err
	}
	if err := b.begin(d); err != nil {
		return err
	}
	for i := range d.Sections {
		if err := b.section(ctx, &d.Sections[i]); err != nil {
			return fmt.Errorf("section %q: %w", d.Sections[i].Heading, err)
		}
	}
	b.SetActiveSheet(0)
	return b.uses(summarySheet, summaryColumns, b.row-1)
}

// begin begins the summary.
func (b *workbook) begin(d *Document) error {
	made := d.MadeAt.UTC().Format(time.RFC3339)
	err := b.SetDocProps(&excelize.DocProperties{
		Title: d.Title, Subject: d.Client, Created: made, Modified: made, Creator: "Reports",
	})
	if err != nil {
		return err
	}
	if err := b.SetSheetName("Sheet1", b.sheetName(summarySheet)); err != nil {
		return err
	}
	if err := b.SetColWidth(summarySheet, "A", "A", 44); err != nil {
		return err
	}
	if err := b.SetColWidth(summarySheet, "B", "C", 28); err != nil {
		return err
	}

	if err := b.line(cell{titleFormat, d.Title}); err != nil {
		return err
	}
	if err := b.line(cell{plainFormat, "Client"}, cell{plainFormat, d.Client}); err != nil {
		return err
	}
	if p := d.Period; p != nil {
		err := b.line(cell{plainFormat, "Period"}, cell{dateFormat, p.Start.Time()}, cell{dateFormat, p.End.Time()})
		if err != nil {
			return err
		}
	}
	return b.line(cell{plainFormat, "Made (UTC)"}, cell{timeFormat, d.MadeAt.UTC()})
}

func (b *workbook) section(ctx context.Context, s *Section) error {
	if len(s.Blocks) == 0 {
		return nil
	}
	b.row++
	if err := b.line(cell{headingFormat, s.Heading}); err != nil {
		return err
	}
	for _, block := range s.Blocks {
		var err error
		switch v := block.(type) {
		case Text:
			err = b.paragraph(string(v))
		case Figures:
			err = b.figures(v)
		case Chart:
			err = b.chart(&v)
		case Table:
			err = b.table(ctx, &v)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// cell is a value of the summary with its format.
type cell struct {
	format cellFormat
	value  any
}

// line writes a row of the summary.
func (b *workbook) line(cells ...cell) error {
	for i, c := range cells {
		name, err := excelize.CoordinatesToCellName(i+1, b.row)
		if err != nil {
			return err
		}
		if err := b.SetCellValue(summarySheet, name, c.value); err != nil {
			return err
		}
		if err := b.SetCellStyle(summarySheet, name, name, b.styles[c.format]); err != nil {
			return err
		}
	}
	b.row++
	return nil
}

// paragraph is a text over the columns of the summary.
func (b *workbook) paragraph(text string) error {
	row := b.row
	if err := b.line(cell{wrapFormat, text}); err != nil {
		return err
	}
	if err := b.MergeCell(summarySheet, "A"+strconv.Itoa(row), "C"+strconv.Itoa(row)); err != nil {
		return err
	}
	lines := utf8.RuneCountInString(text)/95 + 1
	return b.SetRowHeight(summarySheet, row, min(float64(lines)*15, 400))
}

func (b *workbook) figures(list Figures) error {
	for _, f := range list {
		value := cell{plainFormat, f.text()}
		switch v := f.Value.(type) {
		case int:
			value = cell{integerFormat, v}
		case Percent:
			value = cell{percentFormat, v.part()}
		}
		if err := b.line(cell{plainFormat, f.Label}, value, cell{noteFormat, f.Note}); err != nil {
			return err
		}
	}
	return nil
}

// maxSheetName is how many characters a sheet's name has at the most.
const maxSheetName = 31

// sheetName makes a title a sheet's name that is not taken, and takes it.
func (b *workbook) sheetName(title string) string {
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
	case strings.EqualFold(clean, "History"): // Excel keeps that name for itself
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

// cutSheetName cuts a text to a length, as Excel counts it: in units of UTF-16. It cuts
// between words, where the text has some.
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

func (b *workbook) makeStyles() error {
	hex := func(c color) string { return fmt.Sprintf("%02X%02X%02X", c[0], c[1], c[2]) }
	number := func(format string) *excelize.Style { return &excelize.Style{CustomNumFmt: &format} }
	fill := excelize.Fill{Type: "pattern", Pattern: 1, Color: []string{hex(pale)}}
	for _, style := range []*excelize.Style{
		plainFormat:   {},
		titleFormat:   {Font: &excelize.Font{Bold: true, Size: 16, Color: hex(ink)}},
		headingFormat: {Font: &excelize.Font{Bold: true, Size: 12, Color: hex(accent)}},
		headFormat: {
			Font: &excelize.Font{Bold: true, Color: hex(ink)}, Fill: fill,
			Alignment: &excelize.Alignment{WrapText: true, Vertical: "center"},
		},
		noteFormat:    {Font: &excelize.Font{Color: hex(gray)}},
		wrapFormat:    {Alignment: &excelize.Alignment{WrapText: true, Vertical: "top"}},
		integerFormat: number("#,##0"),
		numberFormat:  number("#,##0.0"),
		percentFormat: number("0.0%"),
		monthFormat:   number("mmm yyyy"),
		dateFormat:    number("yyyy-mm-dd"),
		timeFormat:    number("yyyy-mm-dd hh:mm"),
	} {
		id, err := b.NewStyle(style)
		if err != nil {
			return err
		}
		b.styles = append(b.styles, id)
	}
	return nil
}

// exact is a number without what computing in binary adds to its decimals.
func exact(v float64) float64 { return math.Round(v*1e6) / 1e6 }

// part is the percentage as Excel holds it, a part of 1.
func (p Percent) part() float64 { return math.Round(float64(p)*1e4) / 1e6 }

// typed is a cell's value as Excel holds it, with its format.
func (c *Column) typed(value any) (any, cellFormat, error) {
	switch v := value.(type) {
	case int:
		return v, integerFormat, c.check(v)
	case Percent:
		return v.part(), percentFormat, c.check(v)
	case float64:
		if c.Kind == PercentColumn {
			return Percent(v).part(), percentFormat, nil
		}
		return exact(v), numberFormat, c.check(v)
	case domain.Date:
		return v.Time(), dateFormat, c.check(v)
	case time.Time:
		return v.UTC().Truncate(time.Second), timeFormat, c.check(v)
	}
	return value, plainFormat, c.check(value)
}
