package report

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/johnfercher/go-tree/node"
	"github.com/johnfercher/maroto/v2"
	"github.com/johnfercher/maroto/v2/pkg/components/col"
	"github.com/johnfercher/maroto/v2/pkg/components/page"
	"github.com/johnfercher/maroto/v2/pkg/components/row"
	"github.com/johnfercher/maroto/v2/pkg/config"
	"github.com/johnfercher/maroto/v2/pkg/consts/align"
	"github.com/johnfercher/maroto/v2/pkg/consts/extension"
	"github.com/johnfercher/maroto/v2/pkg/consts/fontstyle"
	"github.com/johnfercher/maroto/v2/pkg/consts/linestyle"
	"github.com/johnfercher/maroto/v2/pkg/core"
	"github.com/johnfercher/maroto/v2/pkg/core/entity"
	"github.com/johnfercher/maroto/v2/pkg/props"
)

// sheet is the rows of a page, and how high they are together, in millimetres.
type sheet struct {
	rows []core.Row
	used float64
}

func (s *sheet) add(height float64, parts ...component) {
	s.rows = append(s.rows, wide(height, parts...))
	s.used += height
}

// layout places rows on pages. It decides where pages end itself, so that headings
// stay with what follows and a table's header is repeated.
type layout struct {
	*typefaces
	pages []*sheet
	// head draws what begins every page after the first, and tableHead what begins
	// one within a table; nil for none.
	head, tableHead func()
	// held are rows that must stand on the page of the next row.
	held sheet
}

func newLayout(t *typefaces) *layout { return &layout{typefaces: t, pages: []*sheet{{}}} }

func (l *layout) page() *sheet { return l.pages[len(l.pages)-1] }

// begin begins a block whose first rows need a height on one page, and places the
// rows that were held back above it.
func (l *layout) begin(height float64) {
	if !l.fits(height) {
		l.breakPage()
	}
	p := l.page()
	p.rows = append(p.rows, l.held.rows...)
	p.used += l.held.used
	l.held = sheet{}
}

// fits reports whether the page has room for a height and the rows that were held.
func (l *layout) fits(height float64) bool { return l.page().used+l.held.used+height <= bodyHeight }

func (l *layout) breakPage() {
	l.pages = append(l.pages, &sheet{})
	for _, draw := range []func(){l.head, l.tableHead} {
		if draw != nil {
			draw()
		}
	}
}

// place begins a block of one row.
func (l *layout) place(height float64, parts ...component) {
	l.begin(height)
	l.page().add(height, parts...)
}

// gap leaves space, unless the page ends.
func (l *layout) gap(height float64) {
	if p := l.page(); p.used+height <= bodyHeight {
		p.add(height)
	}
}

// bytes makes the file, with a footer on every page.
func (l *layout) bytes(d *Document) ([]byte, error) {
	m := maroto.New(l.config(d))
	for i, p := range l.pages {
		p.add(max(bodyHeight-p.used, 0))
		m.AddPages(page.New().Add(p.rows...).Add(l.footer(d, i+1)))
	}
	file, err := m.Generate()
	if err != nil {
		return nil, fmt.Errorf("write a pdf: %w", err)
	}
	return file.GetBytes(), nil
}

func (l *layout) config(d *Document) *entity.Config {
	fonts := []*Font{l.regular.Font, l.bold.Font}
	if l.extraUsed {
		fonts = append(fonts, l.extra.Font)
	}
	custom := make([]*entity.CustomFont, len(fonts))
	for i, f := range fonts {
		// The library may write into the bytes.
		custom[i] = &entity.CustomFont{Family: f.family, Style: f.style(), Bytes: slices.Clone(f.data)}
	}

	return config.NewBuilder().WithDimensions(pageWidth, pageHeight).
		WithLeftMargin(sideMargin).WithRightMargin(sideMargin).WithTopMargin(topMargin).WithBottomMargin(bottomMargin).
		WithCompression(true).WithCustomFonts(custom).
		WithDefaultFont(&props.Font{Family: l.regular.family, Size: bodyStyle.size, Color: ink.page()}).
		WithTitle(cmp.Or(d.Title, "Report"), true).WithSubject(d.Client, true).WithCreationDate(d.MadeAt).Build()
}

func (f *Font) style() fontstyle.Type {
	if f.bold {
		return fontstyle.Bold
	}
	return fontstyle.Normal
}

// footer is the row that ends a page.
func (l *layout) footer(d *Document, number int) core.Row {
	pages := fmt.Sprintf("Page %d of %d", number, len(l.pages))
	width := l.width(pages, smallStyle)
	made := "Made " + d.madeAt()
	left := l.fit(d.Client, bodyWidth-width-l.width(made, smallStyle)-12, smallStyle)
	return wide(footerHeight,
		rule(3),
		l.words(left, 0, 7.5, smallStyle),
		l.words(made, bodyWidth-width-6-l.width(made, smallStyle), 7.5, smallStyle),
		l.words(pages, bodyWidth-width, 7.5, smallStyle))
}

// wide is a row of the whole width, whose parts stand where they say.
func wide(height float64, parts ...component) core.Row {
	return row.New(height).Add(col.New().Add(parts...))
}

// component is a piece of a row.
type component = core.Component

// part is what the components of this package have in common: they stand at a place
// within their cell and do not make it higher.
type part struct{}

func (part) SetConfig(*entity.Config) {}

func (part) GetStructure() *node.Node[core.Structure] { return node.New(core.Structure{Type: "part"}) }

func (part) GetHeight(core.Provider, *entity.Cell) float64 { return 0 }

// words are a text on one line.
type words struct {
	part
	runs  []run
	style style
	x, y  float64 // of the beginning of the baseline
}

// words places a clean text by the beginning of its baseline.
func (l *layout) words(text string, x, y float64, s style) *words {
	return &words{runs: l.runs(visual(text), s.bold), style: s, x: x, y: y}
}

// Render draws the text.
func (w *words) Render(p core.Provider, cell *entity.Cell) {
	// A cell without end, as the library would break the line at the cell's.
	open := entity.Cell{X: cell.X, Y: cell.Y, Width: 10 * pageWidth, Height: pageHeight}
	x := w.x
	for _, r := range w.runs {
		p.AddText(r.text, &open, &props.Text{
			Family: r.face.family, Style: r.face.style(), Size: w.style.size, Color: w.style.color.page(),
			Align: align.Left, Left: x, Top: w.y - w.style.size*millimetres,
		})
		x += r.width * w.style.size * millimetres
	}
}

// bar is a filled rectangle.
type bar struct {
	part
	x, y, width, height float64
	color               color
}

// Render draws the rectangle: as a line that is as thick as it is high.
func (b *bar) Render(p core.Provider, cell *entity.Cell) {
	line := entity.Cell{X: cell.X + b.x, Y: cell.Y + b.y + b.height/2, Width: b.width, Height: b.height}
	p.AddLine(&line, &props.Line{
		Color: b.color.page(), Thickness: b.height, Style: linestyle.Solid, SizePercent: 100,
	})
}

// rule is a thin line over the width of the page.
func rule(y float64) *bar { return &bar{y: y, width: bodyWidth, height: 0.25, color: faint} }

// picture is an image of a size in millimetres.
type picture struct {
	part
	png                 []byte
	x, y, width, height float64
}

// Render draws the image.
func (i *picture) Render(p core.Provider, cell *entity.Cell) {
	place := entity.Cell{X: cell.X + i.x, Y: cell.Y + i.y, Width: i.width, Height: i.height}
	p.AddImageFromBytes(i.png, &place, &props.Rect{Percent: 100}, extension.Png)
}
