package report

import (
	"fmt"
	"strconv"
	"time"

	"partnerapi/domain"
)

// noValue stands in the place of a cell that is nil.
const noValue = "–"

// text is a cell as a page shows it. A cell of another type than its column's kind
// names is an error.
func (c *Column) text(cell any) (string, error) {
	if cell == nil {
		return noValue, nil
	}
	switch v := cell.(type) {
	case string:
		if c.Kind == TextColumn {
			return v, nil
		}
	case int:
		if c.Kind == IntegerColumn {
			return grouped(v), nil
		}
	case float64:
		switch c.Kind {
		case NumberColumn:
			return strconv.FormatFloat(v, 'f', 1, 64), nil
		case PercentColumn:
			return strconv.FormatFloat(v, 'f', 1, 64) + "%", nil
		}
	case domain.Date:
		if c.Kind == DateColumn {
			return v.String(), nil
		}
	case time.Time:
		if c.Kind == TimeColumn {
			return v.UTC().Format("2006-01-02 15:04"), nil
		}
	case bool:
		if c.Kind == YesNoColumn {
			return yesNo(v), nil
		}
	}
	return "", c.mismatch(cell)
}

func (c *Column) mismatch(cell any) error {
	return fmt.Errorf("column %q: a cell of the kind %d cannot be a %T", c.Title, c.Kind, cell)
}

// numeric reports whether cells are aligned to the right.
func (c *Column) numeric() bool {
	return c.Kind == IntegerColumn || c.Kind == NumberColumn || c.Kind == PercentColumn
}

// share is the column's share of the width that is left for texts.
func (c *Column) share() int {
	if c.Kind != TextColumn {
		return 0
	}
	return max(c.Width, 1)
}

func yesNo(yes bool) string {
	if yes {
		return "Yes"
	}
	return "No"
}

// grouped is a number with commas between its thousands.
func grouped(n int) string {
	digits := strconv.Itoa(n)
	sign := ""
	if n < 0 {
		sign, digits = "-", digits[1:]
	}
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return sign + digits
}

// period is what a document is about, in words.
func (d *Document) period() string {
	if d.Period == nil {
		return ""
	}
	return d.Period.Start.String() + " to " + d.Period.End.String()
}

func (d *Document) madeAt() string { return d.MadeAt.UTC().Format("2006-01-02 15:04") + " UTC" }
