package report

import (
	"context"
	"fmt"
	"slices"
	"strings"
)

const (
	// maxPageRows is the maximum number of a table's rows on pages (decisions 8.11).
	maxPageRows = 1000
	// maxCellLines is the maximum number of lines of a cell; the rest is cut.
	maxCellLines = 3
	// cellInset is the space at each side of a cell, in millimeters.
	cellInset = 1.5
	// headLines is the maximum number of lines of a column's title.
	headLines = 3
)

// measuredRows is the number of a table's first rows that determine the widths of its columns.
const measuredRows = 100

// pageTable is a table that is laid out on pages.
type pageTable struct {
	*layout
	*Table
	cell, head style
	lineHeight float64
	// firstRows are the rows that are kept until placeColumns, at most measuredRows.
	firstRows [][]string
	// edges are the left edges of the columns, and the right edge of the last column; nil before placeColumns.
	edges []float64
	drawn int // the number of rows drawn
	// group holds the last row's cells in the first GroupBy columns. striped is true if that row is shaded.
	group   []string
	striped bool
}

// drawTable draws a table, with its title unless the title is the heading. It reads all of its rows, but draws only
// maxPageRows, and then writes how many more there are. For a table without rows it writes the text Empty.
func (l *layout) drawTable(ctx context.Context, t *Table, heading string) error {
	if title := onPage(t.Title); title != "" && title != heading {
		l.hold(1)
		l.hold(6, l.words(l.fit(title, bodyWidth, captionStyle), 0, 4, captionStyle))
	}

	p := l.newPageTable(t)
	rows := 0
	for row, err := range t.rows(ctx) {
		if err != nil {
			return err
		}
		if rows++; rows <= maxPageRows {
			p.addRow(row)
		}
	}
	p.placeColumns() // draws the rows of a short table, which addRow has kept

	l.tableHead = nil // set by drawRow
	switch {
	case rows == 0:
		l.drawText(Text(t.Empty))
	case rows > maxPageRows:
		l.place(7, l.words(fmt.Sprintf("Rows omitted here: %s. The XLSX version of this report contains all %s rows.",
			countText(rows-maxPageRows), countText(rows)), 0, 5, smallStyle))
	}
	l.addGap(3)
	return nil
}

// drawParagraph draws a table of few rows as a paragraph: its title, a colon, and the rows as Line formats them, with
// commas between them. It has the parameters of drawTable.
func (l *layout) drawParagraph(ctx context.Context, t *Table, _ string) error {
	var rows []string
	for row, err := range t.rows(ctx) {
		if err != nil {
			return err
		}
		rows = append(rows, t.Line(row))
	}
	const height = 4.0
	for _, line := range l.wrap(onPage(t.Title)+": "+strings.Join(rows, ", ")+".", bodyWidth, paragraphStyle, 0) {
		l.place(height, l.words(line, 0, 3, paragraphStyle))
	}
	l.addGap(1.8)
	return nil
}

// newPageTable returns the layout of a table, whose rows addRow adds. A table of over 7 columns has a smaller font.
func (l *layout) newPageTable(t *Table) *pageTable {
	size := 8.5
	if len(t.Columns) > 7 {
		size = 7.5
	}
	return &pageTable{
		layout: l, Table: t, cell: style{size: size, color: ink}, head: style{size: size - 0.5, bold: true, color: gray},
		lineHeight: size * millimeters * 1.3,
	}
}

// addRow draws a row or, before placeColumns, keeps it. With measuredRows kept, it calls placeColumns to draw them.
func (p *pageTable) addRow(cells []any) {
	texts := make([]string, len(cells))
	for i, cell := range cells {
		texts[i] = textOf(cell)
	}

	if p.edges != nil {
		p.drawRow(texts)
	} else if p.firstRows = append(p.firstRows, texts); len(p.firstRows) == measuredRows {
		p.placeColumns()
	}
}

// placeColumns sets the edges of the columns, and draws the rows that addRow has kept. Later calls do nothing.
func (p *pageTable) placeColumns() {
	if p.edges != nil {
		return
	}
	p.edges = make([]float64, len(p.Columns)+1)
	for i, width := range p.widths() {
		p.edges[i+1] = p.edges[i] + width
	}
	for _, texts := range p.firstRows {
		p.drawRow(texts)
	}
	p.firstRows = nil
}

// widths returns the widths of the columns, which fill the page. The least width of a column is that of the longest
// word of its title, up to a sixth of the page, and that of its widest cell or, in a text column, of a usual word. The
// rest of the page goes to columns whose title or cells need more, to text columns first. What is then left goes to the
// text columns by their shares. If there are no text columns, or if the least widths exceed the page, all widths are
// scaled.
func (p *pageTable) widths() []float64 {
	widths, extras := make([]float64, len(p.Columns)), make([]float64, len(p.Columns))
	sum, shares := 0.0, 0
	usual := p.width("Administration", p.cell)
	for i, c := range p.Columns {
		least := 0.0
		for _, word := range strings.Fields(p.clean(onPage(c.Title))) {
			least = max(least, min(p.width(word, p.head), bodyWidth/6))
		}
		ideal := max(least, p.width(p.clean(onPage(c.Title)), p.head))
		cells := p.cellWidths(i)
		if c.Kind == TextColumn {
			ideal = max(ideal, min(usualWidth(cells), bodyWidth/2))
			least = max(least, min(ideal, usual))
		} else if len(cells) > 0 {
			least = max(least, slices.Max(cells))
		}

		widths[i] = least + 2*cellInset + 0.1 // 0.1 against rounding errors
		extras[i] = max(ideal-least, 0)
		sum += widths[i]
		shares += c.share()
	}
	for _, texts := range []bool{true, false} { // text columns first: it is better to break a title than an address
		sum += p.grant(widths, extras, bodyWidth-sum, texts)
	}
	for i, c := range p.Columns {
		if sum < bodyWidth && shares > 0 {
			widths[i] += (bodyWidth - sum) * float64(c.share()) / float64(shares)
		} else { // no text columns, or no width left
			widths[i] *= bodyWidth / sum
		}
	}
	return widths
}

// grant adds the extras to the widths of the text columns, if texts is true, or of the other columns. If the sum of
// these extras is more than rest, it adds the same fraction of each. It returns the sum of the added widths.
func (p *pageTable) grant(widths, extras []float64, rest float64, texts bool) (added float64) {
	total := 0.0
	for i, c := range p.Columns {
		if (c.Kind == TextColumn) == texts {
			total += extras[i]
		}
	}
	if rest <= 0 || total == 0 {
		return 0
	}
	for i, c := range p.Columns {
		if (c.Kind == TextColumn) == texts {
			widths[i] += extras[i] * min(rest/total, 1)
		}
	}
	return min(rest, total)
}

// cellWidths returns the widths of the cells of a column in the first rows.
func (p *pageTable) cellWidths(column int) []float64 {
	widths := make([]float64, len(p.firstRows))
	for i, texts := range p.firstRows {
		widths[i] = p.width(p.clean(texts[column]), p.cell)
	}
	return widths
}

// usualWidth returns the width in which nine of ten cells fit, so that a few long cells do not narrow the other
// columns. It returns 0 for no cells. It sorts widths.
func usualWidth(widths []float64) float64 {
	if len(widths) == 0 {
		return 0
	}
	slices.Sort(widths)
	return widths[(9*len(widths)+9)/10-1]
}

// drawRow draws a row, with the header above the first row and, by tableHead, on each page that follows. A row with the
// same cells in the first GroupBy columns as the last row, its group, is drawn without these cells, unless it begins a
// page. Every second row or group is shaded.
func (p *pageTable) drawRow(texts []string) {
	group := texts[:p.GroupBy]
	sameGroup := p.drawn > 0 && p.GroupBy > 0 && slices.Equal(group, p.group)
	p.group = group
	if !sameGroup {
		p.striped = p.drawn > 0 && !p.striped
	}

	visible := slices.Clone(texts)
	if sameGroup {
		clear(visible[:p.GroupBy])
	}
	row := p.cells(visible, p.cell, maxCellLines)
	if sameGroup && !p.fits(row.height) { // the row begins a page
		row = p.cells(texts, p.cell, maxCellLines)
	}
	if p.drawn == 0 {
		header := p.header()
		p.begin(header.height + row.height)
		p.tableHead = func() { p.add(header.height, header.marks...) }
		p.tableHead()
	}
	if p.striped {
		row.marks = slices.Insert(row.marks, 0, p.bar(0, 0, bodyWidth, row.height, pale))
	}
	p.place(row.height, row.marks...)
	p.drawn++
}

// cells returns a row of cells with at most maxLines lines each. Numbers are aligned to the right.
func (p *pageTable) cells(texts []string, s style, maxLines int) (row strip) {
	lineCount := 1
	for i, text := range texts {
		width := p.edges[i+1] - p.edges[i] - 2*cellInset
		lines := p.wrap(text, width, s, maxLines)
		lineCount = max(lineCount, len(lines))
		for n, line := range lines {
			x := p.edges[i] + cellInset
			if p.Columns[i].Kind == NumberColumn {
				x += width - p.width(line, s)
			}
			row.marks = append(row.marks, p.words(line, x, 1+(float64(n)+0.78)*p.lineHeight, s))
		}
	}
	row.height = 2 + float64(lineCount)*p.lineHeight
	return row
}

// header returns the row of the columns' titles, above a line.
func (p *pageTable) header() strip {
	titles := make([]string, len(p.Columns))
	for i := range p.Columns {
		titles[i] = onPage(p.Columns[i].Title)
	}
	row := p.cells(titles, p.head, headLines)
	row.marks = append(row.marks, p.bar(0, row.height, bodyWidth, 0.5, p.accents.text))
	row.height += 0.6
	return row
}
