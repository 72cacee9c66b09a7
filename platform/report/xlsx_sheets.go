package report

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"unicode/utf8"

	"github.com/xuri/excelize/v2"
)

// tableSheet is a sheet of a table that is being written.
type tableSheet struct {
	*excelize.StreamWriter
	rows int // written so far, with the header
}

// writeTable streams a table into a sheet, and continues in another sheet when the sheet has maxRows. For a table
// without rows it writes the text Empty below the header.
func (b *workbook) writeTable(ctx context.Context, t *Table) {
	sheet := b.beginSheet(t)
	if b.err != nil {
		return
	}
	b.writeLine(cell{plainFormat, t.Title}, cell{noteFormat, "Sheet " + sheet.Sheet})

	for row, err := range t.rows(ctx) {
		b.check(err)
		if b.err == nil && sheet.rows == b.maxRows {
			b.endSheet(t, sheet)
			sheet = b.beginSheet(t)
		}
		if b.err != nil {
			return
		}
		b.streamRow(sheet, row)
	}
	if sheet.rows == 1 && t.Empty != "" {
		b.check(sheet.SetRow("A2", []any{t.Empty}))
	}
	b.endSheet(t, sheet)
}

// streamRow writes a row of a table.
func (b *workbook) streamRow(sheet *tableSheet, row []any) {
	values := make([]any, len(row))
	for i, value := range row {
		c := cellOf(value)
		values[i] = excelize.Cell{StyleID: b.styles[c.format], Value: c.value}
	}
	sheet.rows++
	b.check(sheet.SetRow(b.cellName(1, sheet.rows), values))
}

// beginSheet adds a sheet with the table's header in a frozen row. It returns nil after an error.
func (b *workbook) beginSheet(t *Table) *tableSheet {
	name := b.newSheet(t.Title)
	w, err := b.NewStreamWriter(name)
	if b.check(err); b.err != nil {
		return nil
	}
	for i := range slices.Backward(t.Columns) { // the library writes the columns in the reverse order of calls
		b.check(w.SetColWidth(i+1, i+1, t.Columns[i].characters()))
	}
	b.check(w.SetPanes(frozenHeader))

	titles := make([]any, len(t.Columns))
	for i := range t.Columns {
		titles[i] = excelize.Cell{StyleID: b.styles[headFormat], Value: t.Columns[i].Title}
	}
	b.check(w.SetRow("A1", titles))
	return &tableSheet{StreamWriter: w, rows: 1}
}

// newSheet adds a sheet named after a title, and returns its name.
func (b *workbook) newSheet(title string) string {
	name := b.reserveSheetName(title)
	_, err := b.NewSheet(name)
	b.check(err)
	return name
}

// frozenHeader freezes a sheet's first row.
var frozenHeader = &excelize.Panes{Freeze: true, YSplit: 1, TopLeftCell: "A2", ActivePane: "bottomLeft"}

// endSheet adds a filter to the sheet of a table, and ends its stream.
func (b *workbook) endSheet(t *Table, sheet *tableSheet) {
	b.addFilter(sheet.Sheet, len(t.Columns), sheet.rows)
	b.check(sheet.Flush())
}

// addFilter records which cells of a sheet are in use, and adds a filter to the header. rows is the number of rows with
// the header. If there is only the header, the second row is in use too, by a text.
func (b *workbook) addFilter(sheet string, columns, rows int) {
	b.setUsed(sheet, columns, max(rows, 2))
	b.check(b.AutoFilter(sheet, b.used[sheet], nil))
}

// characters returns the width of a column of a sheet, in characters: that of a usual cell or of the title, at most 60.
func (c *Column) characters() float64 {
	least := map[ColumnKind]int{
		TextColumn: 18 + 4*max(c.Width-1, 0), NumberColumn: 11, DateColumn: 12, TimeColumn: 18, YesNoColumn: 9,
	}[c.Kind]
	return float64(min(max(least, utf8.RuneCountInString(c.Title)+4), 60))
}

// writeChart writes a chart's numbers and, unless it is empty, a native chart on a new sheet, which the summary names.
func (b *workbook) writeChart(c *Chart) {
	name := b.newSheet(c.Title)
	b.writeLine(cell{plainFormat, c.Title}, cell{noteFormat, "Sheet " + name})
	b.check(b.SetColWidth(name, "A", "A", 26))

	b.put(name, 1, 1, cell{headFormat, cmp.Or(c.By, "Name")})
	for i := range c.Labels {
		b.put(name, 1, i+2, c.labelCell(i))
	}
	for i, s := range c.Series {
		b.put(name, i+2, 1, cell{headFormat, cmp.Or(s.Name, c.Title)})
		for n, v := range s.Values {
			if !math.IsNaN(v) {
				b.put(name, i+2, n+2, c.cellOf(v))
			}
		}
	}
	b.check(b.SetPanes(name, frozenHeader))
	b.addFilter(name, 1+len(c.Series), 1+len(c.Labels))
	if c.empty() {
		b.put(name, 1, 2, cell{plainFormat, "No data."})
	} else {
		b.drawNative(name, c)
	}
}

// labelCell returns the cell of a chart's label: its key, which is a month, a date or an integer, or its text if the
// chart has no keys.
func (c *Chart) labelCell(i int) cell {
	if i >= len(c.Keys) {
		return cell{plainFormat, c.Labels[i]}
	}
	label := cellOf(c.Keys[i])
	if c.By == byMonth {
		label.format = monthFormat
	}
	return label
}

// cellOf returns the cell of a number: a percentage, an integer or a decimal.
func (c *Chart) cellOf(v float64) cell {
	switch {
	case c.Unit == "%":
		return cellOf(Percent(v))
	case v == math.Trunc(v):
		return cellOf(int(v))
	}
	return cellOf(v)
}

// chartTypes are Excel's names of the forms of charts.
var chartTypes = map[ChartKind]excelize.ChartType{
	Line: excelize.Line, Bar: excelize.Col, Donut: excelize.Doughnut,
}

// drawNative adds a native chart to a chart's sheet, which has labels in column 1 and a series in each further column.
func (b *workbook) drawNative(sheet string, c *Chart) {
	chart := &excelize.Chart{
		Type: chartTypes[c.Kind], Title: []excelize.RichTextRun{{Text: c.Title}},
		Dimension: excelize.ChartDimension{Width: 720, Height: 340},
		Legend:    excelize.ChartLegend{Position: "bottom"},
	}
	// cells returns a reference to the cells of a column below its header.
	cells := func(column int) string {
		return fmt.Sprintf("'%s'!%s:%s", sheet, b.cellName(column, 2, true), b.cellName(column, len(c.Labels)+1, true))
	}
	if c.Grades {
		lowest, highest, _ := c.scale()
		chart.YAxis.Minimum, chart.YAxis.Maximum = &lowest, &highest
	}
	for i := range c.Series {
		chart.Series = append(chart.Series, excelize.ChartSeries{
			Name:       fmt.Sprintf("'%s'!%s", sheet, b.cellName(i+2, 1, true)),
			Categories: cells(1), Values: cells(i + 2), DataPoint: c.shareColors(b.accents),
		})
	}
	b.check(b.AddChart(sheet, b.cellName(len(c.Series)+3, 2), chart))
}

// shareColors returns the colors of a Donut's shares in a native chart; nil for other charts.
func (c *Chart) shareColors(a accents) (points []excelize.ChartDataPoint) {
	if c.Kind != Donut {
		return nil
	}
	for i, color := range c.colors(a) {
		points = append(points, excelize.ChartDataPoint{
			Index: i, Fill: excelize.Fill{Type: "pattern", Pattern: 1, Color: []string{color.hex()}},
		})
	}
	return points
}
