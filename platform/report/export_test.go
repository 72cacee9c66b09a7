package report

// What tests of the contents read files with.
var (
	PagesOf  = pagesOf
	Squeeze  = squeeze
	SameCell = sameCell
	// FigureText is a figure as a page shows it.
	FigureText = (*Figure).text
)

// PageText is a cell as a page shows it.
func (c *Column) PageText(cell any) (string, error) { return c.text(cell) }
