package report

import (
	"cmp"
	"fmt"
	"io"
	"strings"

	"codeberg.org/go-pdf/fpdf"

	"partnerapi/domain"
)

// mark draws a part of a row whose top is at y on the page. It does not change the row's height.
type mark func(y float64)

// strip is a row of the whole width, with its height in millimeters.
type strip struct {
	height float64
	marks  []mark
}

// layout draws rows on pages. It breaks the pages itself, not the PDF library, so that
// headings stay with the next row and a table's header is repeated.
type layout struct {
	*typefaces
	pdf  *fpdf.Fpdf
	used float64 // the height of the rows of the page, in millimeters
	// head draws the header of every page after the first, and tableHead the header of a
	// table that continues on the page; nil for none.
	head, tableHead func()
	held            []strip // rows not drawn yet, for the page of the next block
	accents         accents
}

// newLayout returns a layout with an empty first page.
func newLayout(t *typefaces) *layout {
	pdf := fpdf.New("P", "mm", "A4", "")
	pdf.SetAutoPageBreak(false, 0)
	pdf.SetLineCapStyle("round")
	pdf.SetLineJoinStyle("round")
	pdf.AddPage()
	return &layout{typefaces: t, pdf: pdf, accents: accentsOf(domain.Brand{})}
}

// add draws a row below the last one.
func (l *layout) add(height float64, marks ...mark) {
	for _, draw := range marks {
		draw(topMargin + l.used)
	}
	l.used += height
}

// hold keeps a row, such as a heading, until begin draws it on the same page as the next block.
func (l *layout) hold(height float64, marks ...mark) { l.held = append(l.held, strip{height, marks}) }

// begin begins a block whose first rows, of this height together, must be on one page with the held rows, such as its
// heading. If the page has no room for them, it begins a new page. Then it draws the held rows.
func (l *layout) begin(height float64) {
	if !l.fits(height) {
		l.breakPage()
	}
	for _, row := range l.held {
		l.add(row.height, row.marks...)
	}
	l.held = nil
}

// fits reports whether the page has room for a height and the held rows.
func (l *layout) fits(height float64) bool {
	for _, row := range l.held {
		height += row.height
	}
	return l.used+height <= bodyHeight
}

// breakPage begins a page, and draws its headers.
func (l *layout) breakPage() {
	l.pdf.AddPage()
	l.used = 0
	for _, draw := range []func(){l.head, l.tableHead} {
		if draw != nil {
			draw()
		}
	}
}

// place draws a block of one row, on one page with the held rows.
func (l *layout) place(height float64, marks ...mark) {
	l.begin(height)
	l.add(height, marks...)
}

// addGap adds a space below the last row, unless the page has no room for it.
func (l *layout) addGap(height float64) {
	if l.used+height <= bodyHeight {
		l.add(height)
	}
}

// lackingNote is the last text of a file whose fonts lack characters of the report.
const lackingNote = "This file’s fonts lack some characters in the report, such as letters in names. These characters appear as “\uFFFD” " +
	"or without their accents. The XLSX version of this report contains all characters."

// finish draws the note that characters are missing, if any are, and the footer of every page, and writes the file. The
// same document gives the same bytes.
func (l *layout) finish(w io.Writer, d *Document) error {
	if l.lacking {
		l.tableHead = nil
		l.drawText(lackingNote)
	}
	pages := l.pdf.PageCount()
	for number := 1; number <= pages; number++ {
		l.pdf.SetPage(number)
		l.drawFooter(d, fmt.Sprintf("Page %d of %d", number, pages))
	}

	l.pdf.SetTitle(cmp.Or(d.Title, "Report"), true /* UTF-8 */)
	l.pdf.SetSubject(d.Client, true /* UTF-8 */)
	l.pdf.SetAuthor(strings.Join(d.makers(), ", "), true /* UTF-8 */)
	l.pdf.SetCreationDate(d.MadeAt)
	l.pdf.SetModificationDate(d.MadeAt)
	l.pdf.SetCatalogSort(true)
	if err := l.pdf.Output(w); err != nil {
		return fmt.Errorf("write a pdf: %w", err)
	}
	return nil
}

// drawFooter draws the last row of a page: the client, the names of the brand and the partner, when the report was created, and pages,
// which is the number of the page, such as "Page 1 of 2".
func (l *layout) drawFooter(d *Document, pages string) {
	width := l.width(pages, smallStyle)
	made := d.created()
	names := strings.Join(append([]string{d.Client}, d.makers()...), "  ·  ")
	left := l.fit(names, bodyWidth-width-l.width(made, smallStyle)-12, smallStyle)

	l.used = bodyHeight
	l.add(footerHeight,
		l.rule(3),
		l.words(left, 0, 7.5, smallStyle),
		l.words(made, bodyWidth-width-6-l.width(made, smallStyle), 7.5, smallStyle),
		l.words(pages, bodyWidth-width, 7.5, smallStyle))
}

// words returns a mark that writes a clean text on one line, whose baseline begins at (x, y) in the row.
func (l *layout) words(text string, x, y float64, s style) mark {
	return func(top float64) { l.write(text, sideMargin+x, top+y, s) }
}

// bar returns a mark that fills a rectangle in the row.
func (l *layout) bar(x, y, width, height float64, c color) mark {
	return func(top float64) { l.fill(sideMargin+x, top+y, width, height, c) }
}

// rule returns a mark that draws a thin line over the width of the page.
func (l *layout) rule(y float64) mark { return l.bar(0, y, bodyWidth, 0.25, faint) }

// write draws a text, as clean returns it, on one line. Its baseline begins at (x, y) on the page, in millimeters.
func (l *layout) write(text string, x, y float64, s style) {
	l.pdf.SetTextColor(s.color.rgb())
	for _, r := range l.runs(visualOrder(text), s.bold) {
		r.face.embed(l.pdf)
		l.pdf.SetFont(r.face.family, "", s.size)
		l.pdf.Text(x, y, r.text)
		x += l.width(r.text, s)
	}
}

// fill draws a filled rectangle by its upper left corner on the page.
func (l *layout) fill(x, y, width, height float64, c color) {
	l.pdf.SetFillColor(c.rgb())
	l.pdf.Rect(x, y, width, height, "F")
}
