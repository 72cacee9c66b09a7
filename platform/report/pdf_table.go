package report

import (
	"context"
	"fmt"
	"slices"
	"strings"
)

const (
	// maxPageRows is how many rows of a table are shown on pages (decisions 8.11).
	maxPageRows = 1000
	// maxCellLines is how many lines a cell has at most; the rest is cut.
	maxCellLines = 3
	// cellInset is left free at both sides of a cell, in millimetres.
	cellInset = 1.5
	// headLines is how many lines the title of a column has at most.
	headLines = 3
)

// measuredRows is how many of a table's first rows determine the widths of its
// columns.
const measuredRows = 100

// pageTable is a table while it is laid out.
type pageTable struct {
	*layout
	*Table
	cell, head style
	lineHeight float64
	// waiting are the first rows, until they have determined the columns.
	waiting [][]string
	// places are the left edges of the columns, and the right edge of the last one;
	// nil until then.
	places []float64
	shown  int
	// group holds the last row's cells of the columns that are shown once, and striped
	// says whether that row is shaded.
	group   []string
	striped bool
}

// table lays a table out, row by row, and reads all of its rows: those beyond
// maxPageRows are only counted. It omits the title below a heading that says the
// same.
func (l *layout) table(ctx context.Context, t *Table, heading string) error {
	if t.Title != "" && t.Title != heading {
		l.hold(1)
		l.hold(6, l.words(l.fit(t.Title, bodyWidth, captionStyle), 0, 4, captionStyle))
	}

	p := l.pageTable(t)
	rows := 0
	for row, err := range t.Rows {
		if err == nil && rows%1000 == 0 {
			err = ctx.Err()
		}
		if err != nil {
			return err
		}
		if rows++; rows <= maxPageRows {
			if err := p.add(row); err != nil {
				return fmt.Errorf("table %q: %w", t.Title, err)
			}
		}
	}
	p.placeColumns()

	l.tableHead = nil
	switch {
	case rows == 0:
		l.text(Text(t.Empty))
	case rows > maxPageRows:
		l.place(7, l.words(fmt.Sprintf("%s more rows are left out here. The XLSX format of this report has all %s rows.",
			countText(rows-maxPageRows), countText(rows)), 0, 5, smallStyle))
	}
	l.gap(3)
	return nil
}

// paragraph lays a table out as a paragraph: its rows, of which there are few, in line.
func (l *layout) paragraph(_ context.Context, t *Table, _ string) error {
	var said []string
	for row, err := range t.Rows {
		if err != nil {
			return err
		}
		said = append(said, t.Line(row))
	}
	l.text(Text(t.Title + ": " + strings.Join(said, ", ") + "."))
	return nil
}

func (l *layout) pageTable(t *Table) *pageTable {
	size := 8.5
	if len(t.Columns) > 7 {
		size = 7.5
	}
	return &pageTable{
		layout: l, Table: t, cell: style{size: size, color: ink}, head: style{size: size - 0.5, bold: true, color: gray},
		lineHeight: size * millimetres * 1.3,
	}
}

// add draws a row, or keeps it until the columns are placed.
func (p *pageTable) add(cells []any) error {
	if len(cells) != len(p.Columns) {
		return fmt.Errorf("a row of %d cells under %d columns", len(cells), len(p.Columns))
	}
	texts := make([]string, len(cells))
	for i := range cells {
		text, err := p.Columns[i].text(cells[i])
		if err != nil {
			return err
		}
		texts[i] = text
	}

	if p.places != nil {
		p.row(texts)
	} else if p.waiting = append(p.waiting, texts); len(p.waiting) == measuredRows {
		p.placeColumns()
	}
	return nil
}

// placeColumns places the columns, and then the rows that wait for that.
func (p *pageTable) placeColumns() {
	if p.places != nil {
		return
	}
	p.places = make([]float64, len(p.Columns)+1)
	for i, width := range p.widths() {
		p.places[i+1] = p.places[i] + width
	}
	for _, texts := range p.waiting {
		p.row(texts)
	}
	p.waiting = nil
}

// widths gives every column the width of its title's words and of its cells: numbers
// and times in full, texts in part. The rest of the page's width goes to the columns
// that want more, those of texts first, and then to those of texts by their share.
func (p *pageTable) widths() []float64 {
	widths, wants := make([]float64, len(p.Columns)), make([]float64, len(p.Columns))
	sum, shares := 0.0, 0
	usual := p.width("Administration", p.cell)
	for i, c := range p.Columns {
		need := 0.0
		for _, word := range strings.Fields(p.clean(c.Title)) {
			need = max(need, min(p.width(word, p.head), bodyWidth/6))
		}
		want := max(need, p.width(p.clean(c.Title), p.head))
		cells := p.cellWidths(i)
		if c.Kind == TextColumn {
			want = max(want, min(mostFit(cells), bodyWidth/2))
			need = max(need, min(want, usual))
		} else if len(cells) > 0 {
			need = max(need, slices.Max(cells))
		}

		widths[i] = need + 2*cellInset + 0.1
		wants[i] = max(want-need, 0)
		sum += widths[i]
		shares += c.share()
	}
	for _, texts := range []bool{true, false} { // a title is broken rather than an address
		sum += p.grant(widths, wants, bodyWidth-sum, texts)
	}
	for i, c := range p.Columns {
		if sum < bodyWidth && shares > 0 {
			widths[i] += (bodyWidth - sum) * float64(c.share()) / float64(shares)
		} else { // no texts, or too many columns
			widths[i] *= bodyWidth / sum
		}
	}
	return widths
}

// grant gives the columns of texts, or the others, what they want, or all of them the
// same part of that if rest is too small. It returns how much it gave.
func (p *pageTable) grant(widths, wants []float64, rest float64, texts bool) (given float64) {
	wanted := 0.0
	for i, c := range p.Columns {
		if (c.Kind == TextColumn) == texts {
			wanted += wants[i]
		}
	}
	if rest <= 0 || wanted == 0 {
		return 0
	}
	for i, c := range p.Columns {
		if (c.Kind == TextColumn) == texts {
			widths[i] += wants[i] * min(rest/wanted, 1)
		}
	}
	return min(rest, wanted)
}

// cellWidths are how wide the cells of a column are.
func (p *pageTable) cellWidths(column int) []float64 {
	widths := make([]float64, len(p.waiting))
	for i, texts := range p.waiting {
		widths[i] = p.width(p.clean(texts[column]), p.cell)
	}
	return widths
}

// mostFit is a width that is enough for nine cells of ten, so that few long ones do
// not narrow all other columns.
func mostFit(widths []float64) float64 {
	if len(widths) == 0 {
		return 0
	}
	slices.Sort(widths)
	return widths[(9*len(widths)+9)/10-1]
}

// row places a row, with the header above the first one.
func (p *pageTable) row(texts []string) {
	group := texts[:p.Once]
	again := p.shown > 0 && p.Once > 0 && slices.Equal(group, p.group)
	p.group = group
	p.striped = p.striped == again && p.shown > 0 // each row, or group, in turn

	shown := slices.Clone(texts)
	if again {
		clear(shown[:p.Once])
	}
	row := p.cells(shown, p.cell, maxCellLines)
	if again && !p.fits(row.height) { // the next page begins with the whole row
		row = p.cells(texts, p.cell, maxCellLines)
	}
	if p.shown == 0 {
		header := p.header()
		p.begin(header.height + row.height)
		p.tableHead = func() { p.layout.add(header.height, header.marks...) }
		p.tableHead()
	}
	if p.striped {
		row.marks = slices.Insert(row.marks, 0, p.bar(0, 0, bodyWidth, row.height, pale))
	}
	p.place(row.height, row.marks...)
	p.shown++
}

// cells lays the cells of a row out.
func (p *pageTable) cells(texts []string, s style, most int) (row strip) {
	lineCount := 1
	for i, text := range texts {
		width := p.places[i+1] - p.places[i] - 2*cellInset
		lines := p.lines(text, width, s, most)
		lineCount = max(lineCount, len(lines))
		for n, line := range lines {
			x := p.places[i] + cellInset
			if p.Columns[i].numeric() {
				x += width - p.width(line, s)
			}
			row.marks = append(row.marks, p.words(line, x, 1+(float64(n)+0.78)*p.lineHeight, s))
		}
	}
	row.height = 2 + float64(lineCount)*p.lineHeight
	return row
}

// header lays the header out.
func (p *pageTable) header() strip {
	titles := make([]string, len(p.Columns))
	for i := range p.Columns {
		titles[i] = p.Columns[i].Title
	}
	row := p.cells(titles, p.head, headLines)
	row.marks = append(row.marks, p.bar(0, row.height, bodyWidth, 0.5, accent))
	row.height += 0.6
	return row
}
