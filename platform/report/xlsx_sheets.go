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

// tableSheet writes a sheet of a table.
type tableSheet struct {
	*excelize.StreamWriter
	rows int // written so far, with the header
}

// table streams a table into a sheet, and continues in another sheet when the sheet is
// full. A table without rows has the text Empty below its header.
func (b *workbook) table(ctx context.Context, t *Table) {
	sheet, err := b.beginSheet(t)
	if err != nil {
		b.check(err)
		return
	}
	b.line(cell{plainFormat, t.Title}, cell{noteFormat, "Sheet " + sheet.Sheet})

	values := make([]any, len(t.Columns))
	total := 0
	for row, err := range t.Rows {
		if err == nil && total%1000 == 0 {
			err = ctx.Err()
		}
		if err == nil && sheet.rows == b.maxRows {
			b.endSheet(t, sheet)
			sheet, err = b.beginSheet(t)
		}
		if err == nil {
			err = b.streamRow(t, sheet, row, values)
		}
		if err != nil {
			b.check(fmt.Errorf("table %q: %w", t.Title, err))
			return
		}
		total++
	}
	if total == 0 && t.Empty != "" {
		b.check(sheet.SetRow("A2", []any{t.Empty}))
	}
	b.endSheet(t, sheet)
}

// streamRow writes a row of a table. values is a buffer for the row's cells.
func (b *workbook) streamRow(t *Table, sheet *tableSheet, row, values []any) error {
	if len(row) != len(t.Columns) {
		return fmt.Errorf("a row of %d cells under %d columns", len(row), len(t.Columns))
	}
	for i := range row {
		c, err := t.Columns[i].typed(row[i])
		if err != nil {
			return err
		}
		values[i] = excelize.Cell{StyleID: b.styles[c.format], Value: c.value}
	}
	sheet.rows++
	name, err := excelize.CoordinatesToCellName(1, sheet.rows)
	if err != nil {
		return err
	}
	return sheet.SetRow(name, values)
}

// beginSheet adds a sheet with the table's header in a frozen row.
func (b *workbook) beginSheet(t *Table) (*tableSheet, error) {
	name := b.newSheet(t.Title)
	w, err := b.NewStreamWriter(name)
	if err != nil {
		return nil, err
	}
	for i := range slices.Backward(t.Columns) { // the library writes the columns in reverse order
		b.check(w.SetColWidth(i+1, i+1, t.Columns[i].characters()))
	}
	b.check(w.SetPanes(frozenHeader))

	titles := make([]any, len(t.Columns))
	for i := range t.Columns {
		titles[i] = excelize.Cell{StyleID: b.styles[headFormat], Value: t.Columns[i].Title}
	}
	b.check(w.SetRow("A1", titles))
	return &tableSheet{StreamWriter: w, rows: 1}, b.err
}

// newSheet adds a sheet named after a title, and returns its name.
func (b *workbook) newSheet(title string) string {
	name := b.sheetName(title)
	_, err := b.NewSheet(name)
	b.check(err)
	return name
}

// frozenHeader freezes a sheet's first row.
var frozenHeader = &excelize.Panes{Freeze: true, YSplit: 1, TopLeftCell: "A2", ActivePane: "bottomLeft"}

// endSheet adds a filter to a sheet, and writes its remaining rows.
func (b *workbook) endSheet(t *Table, sheet *tableSheet) {
	b.addFilter(sheet.Sheet, len(t.Columns), max(sheet.rows, 2))
	b.check(sheet.Flush())
}

// addFilter records which cells of a sheet are in use, and adds a filter to its header.
func (b *workbook) addFilter(sheet string, columns, rows int) {
	if columns > 0 {
		b.uses(sheet, columns, rows)
		b.check(b.AutoFilter(sheet, b.used[sheet], nil))
	}
}

// characters returns the width of a column of a sheet, in characters.
func (c *Column) characters() float64 {
	least := map[ColumnKind]int{
		TextColumn: 18 + 4*max(c.Width-1, 0), IntegerColumn: 11, NumberColumn: 11, PercentColumn: 11, DateColumn: 12,
		TimeColumn: 18, YesNoColumn: 9, MixedColumn: 11,
	}[c.Kind]
	return float64(min(max(least, utf8.RuneCountInString(c.Title)+4), 60))
}

// chart writes a chart's numbers on a sheet with a native chart beside them.
func (b *workbook) chart(c *Chart) {
	name := b.newSheet(c.Title)
	b.line(cell{plainFormat, c.Title}, cell{noteFormat, "Sheet " + name})
	b.check(b.SetColWidth(name, "A", "A", 26))

	b.put(name, 1, 1, cell{headFormat, cmp.Or(c.By, "Name")})
	for i := range c.Labels {
		b.put(name, 1, i+2, c.label(i))
	}
	for i, s := range c.Series {
		b.put(name, i+2, 1, cell{headFormat, cmp.Or(s.Name, c.Title)})
		for n, v := range s.Values[:min(len(s.Values), len(c.Labels))] {
			if !math.IsNaN(v) {
				b.put(name, i+2, n+2, c.typed(v))
			}
		}
	}
	b.check(b.SetPanes(name, frozenHeader))
	b.addFilter(name, 1+len(c.Series), max(1+len(c.Labels), 2))
	if c.empty() {
		b.put(name, 1, 2, cell{plainFormat, "No data."})
	} else {
		b.check(b.drawNative(name, c))
	}
}

// label returns the cell of a chart's label: its key, a month, a date or an integer, or else the text.
func (c *Chart) label(i int) cell {
	if i >= len(c.Keys) {
		return cell{plainFormat, c.Labels[i]}
	}
	date, ok := c.Keys[i].(domain.Date)
	switch {
	case !ok:
		return cell{integerFormat, c.Keys[i]}
	case c.By == byMonth:
		return cell{monthFormat, date.Time()}
	}
	return cell{dateFormat, date.Time()}
}

// typed returns the cell of a number: a percentage, an integer or a decimal.
func (c *Chart) typed(v float64) cell {
	switch {
	case c.Unit == "%":
		return cell{percentFormat, Percent(v).part()}
	case v == math.Trunc(v):
		return cell{integerFormat, exact(v)}
	}
	return cell{numberFormat, exact(v)}
}

// chartTypes are Excel's names of the forms of charts.
var chartTypes = map[ChartKind]excelize.ChartType{
	Line: excelize.Line, Bar: excelize.Col, Donut: excelize.Doughnut,
}

// drawNative adds a native chart of the numbers on a sheet, as chart has written them.
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
		cells := func(column string, from, to int) string {
			return fmt.Sprintf("'%s'!$%s$%d:$%s$%d", sheet, column, from, column, to)
		}
		chart.Series = append(chart.Series, excelize.ChartSeries{
			Name:       fmt.Sprintf("'%s'!$%s$1", sheet, column),
			Categories: cells("A", 2, last), Values: cells(column, 2, last), DataPoint: c.shares(),
		})
	}

	position, err := excelize.CoordinatesToCellName(len(c.Series)+3, 2)
	if err != nil {
		return err
	}
	return b.AddChart(sheet, position, chart)
}

// shares returns the colors of the parts of a Donut in a native chart; nil for other charts.
func (c *Chart) shares() (points []excelize.ChartDataPoint) {
	if c.Kind != Donut {
		return nil
	}
	for i, color := range c.colors() {
		points = append(points, excelize.ChartDataPoint{
			Index: i, Fill: excelize.Fill{Type: "pattern", Pattern: 1, Color: []string{color.hex()}},
		})
	}
	return points
}
