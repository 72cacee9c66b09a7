package report

// What tests of the contents read files with.
var (
	PagesOf  = pagesOf
	Squeeze  = squeeze
	SameCell = sameCell
)

// PageText is a cell as a page shows it.
func (c *Column) PageText(cell any) (string, error) { return c.text(cell) }
