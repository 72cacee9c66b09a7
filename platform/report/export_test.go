package report

import "context"

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

// What tests of leases hold against each other.
const (
	LeaseFor      = leaseFor
	MaintainEvery = maintainEvery
)

// Turn maintains reports if it is time.
func (m *Maintainer) Turn(ctx context.Context) error {
	_, err := m.turn(ctx)
	return err
}
