package report

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"unicode/utf8"

	"github.com/xuri/excelize/v2"

	"partnerapi/domain"
)

// streamed is the sheet of a table while it is written.
type streamed struct {
	*excelize.StreamWriter
	rows int // that were written, the header included
}

// table streams a table into a sheet, and goes on in another one where a sheet is
// full.
func (b *workbook) table(ctx context.Context, t *Table) error {
	sheet, err := b.beginSheet(t)
	if err != nil {
		return err
	}
	if err := b.line(cell{plainFormat, t.Title}, cell{noteFormat, "Sheet " + sheet.Sheet}); err != nil {
		return err
	}

	values := make([]any, len(t.Columns))
	total := 0
	for row, err := range t.Rows {
		if err == nil && total%1000 == 0 {
			err = ctx.Err()
		}
		if err == nil && sheet.rows == b.maxRows {
			if err = b.endSheet(t, sheet); err == nil {
				sheet, err = b.beginSheet(t)
			}
		}
		if err == nil {
			err = b.streamRow(t, sheet, row, values)
		}
		if err != nil {
			return fmt.Errorf("table %q: %w", t.Title, err)
		}
		total++
	}
	if total == 0 && t.Empty != "" {
		if err := sheet.SetRow("A2", []any{t.Empty}); err != nil {
			return err
		}
	}
	return b.endSheet(t, sheet)
}

func (b *workbook) streamRow(t *Table, sheet *streamed, row, values []any) error {
	if len(row) != len(t.Columns) {
		return fmt.Errorf("a row of %d cells under %d columns", len(row), len(t.Columns))
	}
	for i := range row {
		value, format, err := t.Columns[i].typed(row[i])
		if err != nil {
			return err
		}
		values[i] = excelize.Cell{StyleID: b.styles[format], Value: value}
	}
	sheet.rows++
	name, err := excelize.CoordinatesToCellName(1, sheet.rows)
	if err != nil {
		return err
	}
	return sheet.SetRow(name, values)
}

// beginSheet makes a sheet with the table's header, which stays in sight.
func (b *workbook) beginSheet(t *Table) (*streamed, error) {
	name := b.sheetName(t.Title)
	if _, err := b.NewSheet(name); err != nil {
		return nil, err
	}
	w, err := b.NewStreamWriter(name)
	if err != nil {
		return nil, err
	}
	for i := range slices.Backward(t.Columns) { // the library writes the last one first
		if err := w.SetColWidth(i+1, i+1, t.Columns[i].characters()); err != nil {
			return nil, err
		}
	}
	if err := w.SetPanes(headerInSight); err != nil {
		return nil, err
	}

	titles := make([]any, len(t.Columns))
	for i := range t.Columns {
		titles[i] = excelize.Cell{StyleID: b.styles[headFormat], Value: t.Columns[i].Title}
	}
	return &streamed{StreamWriter: w, rows: 1}, w.SetRow("A1", titles)
}

// headerInSight freezes a sheet's first row.
var headerInSight = &excelize.Panes{Freeze: true, YSplit: 1, TopLeftCell: "A2", ActivePane: "bottomLeft"}

// endSheet makes a sheet's header filter its rows.
func (b *workbook) endSheet(t *Table, sheet *streamed) error {
	if err := b.filtered(sheet.Sheet, len(t.Columns), max(sheet.rows, 2)); err != nil {
		return err
	}
	return sheet.Flush()
}

// filtered says which cells of a sheet are in use, and makes its header filter them.
func (b *workbook) filtered(sheet string, columns, rows int) error {
	if columns == 0 {
		return nil
	}
	if err := b.uses(sheet, columns, rows); err != nil {
		return err
	}
	return b.AutoFilter(sheet, b.used[sheet], nil)
}

// characters is how wide a column of a sheet is.
func (c *Column) characters() float64 {
	least := map[ColumnKind]int{
		TextColumn: 18 + 4*max(c.Width-1, 0), IntegerColumn: 11, NumberColumn: 11, PercentColumn: 11, DateColumn: 12,
		TimeColumn: 18, YesNoColumn: 9, MixedColumn: 11,
	}[c.Kind]
	return float64(min(max(least, utf8.RuneCountInString(c.Title)+4), 60))
}

// chart writes a chart's numbers on a sheet with a native chart beside them.
func (b *workbook) chart(c *Chart) error {
	name := b.sheetName(c.Title)
	if _, err := b.NewSheet(name); err != nil {
		return err
	}
	if err := b.line(cell{plainFormat, c.Title}, cell{noteFormat, "Sheet " + name}); err != nil {
		return err
	}
	if err := b.SetColWidth(name, "A", "A", 26); err != nil {
		return err
	}

	if err := b.labels(name, c); err != nil {
		return err
	}
	for i, s := range c.Series {
		if err := b.numbers(name, c, i+2, s); err != nil {
			return err
		}
	}
	if err := b.SetPanes(name, headerInSight); err != nil {
		return err
	}
	if err := b.filtered(name, 1+len(c.Series), max(1+len(c.Labels), 2)); err != nil {
		return err
	}
	if c.empty() {
		return b.put(name, 1, 2, plainFormat, "No data.")
	}
	return b.drawNative(name, c)
}

// labels writes a chart's labels in the first column: days as such.
func (b *workbook) labels(sheet string, c *Chart) error {
	if err := b.put(sheet, 1, 1, headFormat, cmp.Or(c.By, "Name")); err != nil {
		return err
	}
	for i, label := range c.Labels {
		format, value := plainFormat, any(label)
		if i < len(c.Keys) {
			format, value = integerFormat, c.Keys[i]
		}
		if date, ok := value.(domain.Date); ok {
			if format, value = dateFormat, date.Time(); c.By == byMonth {
				format = monthFormat
			}
		}
		if err := b.put(sheet, 1, i+2, format, value); err != nil {
			return err
		}
	}
	return nil
}

// numbers writes a series in a column.
func (b *workbook) numbers(sheet string, c *Chart, column int, s Series) error {
	if err := b.put(sheet, column, 1, headFormat, cmp.Or(s.Name, c.Title)); err != nil {
		return err
	}
	for i, v := range s.Values {
		if math.IsNaN(v) || i >= len(c.Labels) {
			continue
		}
		format, value := numberFormat, exact(v)
		switch {
		case c.Unit == "%":
			format, value = percentFormat, Percent(v).part()
		case v == math.Trunc(v):
			format = integerFormat
		}
		if err := b.put(sheet, column, i+2, format, value); err != nil {
			return err
		}
	}
	return nil
}

func (b *workbook) put(sheet string, column, row int, format cellFormat, value any) error {
	name, err := excelize.CoordinatesToCellName(column, row)
	if err != nil {
		return err
	}
	if err := b.SetCellValue(sheet, name, value); err != nil {
		return err
	}
	return b.SetCellStyle(sheet, name, name, b.styles[format])
}

// chartTypes are Excel's names of the forms of charts.
var chartTypes = map[ChartKind]excelize.ChartType{
	Line: excelize.Line, Bar: excelize.Col, Donut: excelize.Doughnut,
}

func (b *workbook) drawNative(sheet string, c *Chart) error {
	last := len(c.Labels) + 1
	chart := &excelize.Chart{
		Type: chartTypes[c.Kind], Title: []excelize.RichTextRun{{Text: c.Title}},
		Dimension: excelize.ChartDimension{Width: 720, Height: 340},
		Legend:    excelize.ChartLegend{Position: "bottom"},
	}
	for i := range c.Series {
		column, err := excelize.ColumnNumberToName(i + 2)
		if err != nil {
			return err
		}
		at := func(column string, from, to int) string {
			return fmt.Sprintf("'%s'!$%s$%d:$%s$%d", sheet, column, from, column, to)
		}
		chart.Series = append(chart.Series, excelize.ChartSeries{
			Name:       fmt.Sprintf("'%s'!$%s$1", sheet, column),
			Categories: at("A", 2, last), Values: at(column, 2, last), DataPoint: c.shares(),
		})
	}

	place, err := excelize.CoordinatesToCellName(len(c.Series)+3, 2)
	if err != nil {
		return err
	}
	return b.AddChart(sheet, place, chart)
}

// shares are the colors of the parts of a Donut in a native chart; nil of others.
func (c *Chart) shares() (points []excelize.ChartDataPoint) {
	if c.Kind != Donut {
		return nil
	}
	for i, color := range c.colors() {
		fill := fmt.Sprintf("%02X%02X%02X", color[0], color[1], color[2])
		points = append(points, excelize.ChartDataPoint{
			Index: i, Fill: excelize.Fill{Type: "pattern", Pattern: 1, Color: []string{fill}},
		})
	}
	return points
}
