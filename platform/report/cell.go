package report

import (
	"fmt"
	"strconv"
	"time"

	"partnerapi/domain"
)

// noValue is the text of a cell that is nil.
const noValue = "–"

// check returns an error if a cell's type is not that of its column's kind.
func (c *Column) check(cell any) error {
	ok := cell == nil
	switch cell.(type) {
	case string:
		ok = c.Kind == TextColumn
	case int:
		ok = c.Kind == IntegerColumn || c.Kind == MixedColumn
	case Percent:
		ok = c.Kind == MixedColumn
	case float64:
		ok = c.Kind == NumberColumn || c.Kind == PercentColumn
	case domain.Date:
		ok = c.Kind == DateColumn
	case time.Time:
		ok = c.Kind == TimeColumn
	case bool:
		ok = c.Kind == YesNoColumn
	}
	if !ok {
		return fmt.Errorf("column %q: a cell of the kind %d cannot be a %T", c.Title, c.Kind, cell)
	}
	return nil
}

// text returns a cell as a page shows it. The error is that of check.
func (c *Column) text(cell any) (string, error) {
	text := textOf(cell)
	if c.Kind == PercentColumn && cell != nil {
		text += "%"
	}
	return text, c.check(cell)
}

// text returns the figure's value as a page shows it.
func (f *Figure) text() string { return textOf(f.Value) }

// textOf returns the value of a cell or a figure as a page shows it; noValue for nil.
func textOf(value any) string {
	switch v := value.(type) {
	case string:
		return v
	case int:
		return countText(v)
	case Percent:
		return rateText(float64(v))
	case float64:
		return strconv.FormatFloat(v, 'f', 1, 64)
	case domain.Date:
		return v.String()
	case time.Time:
		return v.UTC().Format("2006-01-02 15:04")
	case bool:
		if v {
			return "Yes"
		}
		return "No"
	}
	return noValue
}

// numeric reports whether cells are aligned to the right.
func (c *Column) numeric() bool {
	switch c.Kind {
	case IntegerColumn, NumberColumn, PercentColumn, MixedColumn:
		return true
	}
	return false
}

// share returns the column's share of the width for texts; 0 for a column of another kind.
func (c *Column) share() int {
	if c.Kind != TextColumn {
		return 0
	}
	return max(c.Width, 1)
}

// period returns the document's period in words; empty for none.
func (d *Document) period() string {
	if d.Period == nil {
		return ""
	}
	return d.Period.Start.String() + " to " + d.Period.End.String()
}

// madeAt returns the time of making as text.
func (d *Document) madeAt() string { return d.MadeAt.UTC().Format("2006-01-02 15:04") + " UTC" }
