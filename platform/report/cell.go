package report

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"math"
	"strconv"
	"time"

	"partnerapi/domain"
)

// noValue is the text of a cell that is nil.
const noValue = "–"

// rows returns the rows of the table. It ends with an error if reading Rows fails, if ctx has ended, or if a row does
// not fit the columns (see check).
func (t *Table) rows(ctx context.Context) iter.Seq2[[]any, error] {
	return func(yield func([]any, error) bool) {
		for row, err := range t.Rows {
			if err == nil {
				err = cmp.Or(ctx.Err(), t.check(row))
			}
			if err != nil {
				yield(nil, fmt.Errorf("table %q: %w", t.Title, err))
				return
			}
			if !yield(row, nil) {
				return
			}
		}
	}
}

// check returns an error unless a row has a cell for each column, each nil or of the type of the column's kind.
func (t *Table) check(row []any) error {
	if len(row) != len(t.Columns) {
		return fmt.Errorf("a row of %d cells under %d columns", len(row), len(t.Columns))
	}
	for i, cell := range row {
		if c := &t.Columns[i]; !c.holds(cell) {
			return fmt.Errorf("column %q: a cell of the kind %d cannot be a %T", c.Title, c.Kind, cell)
		}
	}
	return nil
}

// holds reports whether a cell is nil or of the type of the column's kind.
func (c *Column) holds(cell any) bool {
	switch cell.(type) {
	case nil:
		return true
	case string, Word:
		return c.Kind == TextColumn
	case int, float64, Whole, Percent, WholePercent:
		return c.Kind == NumberColumn
	case domain.Date:
		return c.Kind == DateColumn
	case time.Time:
		return c.Kind == TimeColumn
	case bool:
		return c.Kind == YesNoColumn
	}
	return false
}

// text returns the figure's value as a page shows it; noValue for nil.
func (f *Figure) text() string { return textOf(f.Value) }

// textOf returns the value of a cell or a figure as a page shows it: a float64 with one decimal, a time in UTC, a bool
// as Yes or No, and nil as noValue.
func textOf(value any) string {
	switch v := value.(type) {
	case string:
		return v
	case Word:
		return onPage(string(v))
	case int:
		return countText(v)
	case Percent:
		return rateText(float64(v))
	case WholePercent:
		return wholeRateText(float64(v))
	case Whole:
		return countText(int(math.Round(float64(v))))
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

// share returns the share of a text column in the width that the other columns leave; 0 for a column of another kind.
func (c *Column) share() int {
	if c.Kind != TextColumn {
		return 0
	}
	return max(c.Width, 1)
}

// dayLayout is the layout of a day in prose.
const dayLayout = "2 January 2006"

// dayText returns a day as prose has it: "28 November 2026".
func dayText(d domain.Date) string { return d.Time().Format(dayLayout) }

// periodText returns a period as prose has it: "November 2026" for a calendar month, otherwise its first and last day,
// such as "31 August to 28 November 2026", with the parts that both have only once.
func periodText(p domain.ReportPeriod) string {
	start, end := p.Start.Time(), p.End.Time()
	switch {
	case p.Start == p.End:
		return dayText(p.End)
	case start.Year() != end.Year():
		return dayText(p.Start) + " to " + dayText(p.End)
	case start.Month() != end.Month():
		return start.Format("2 January") + " to " + dayText(p.End)
	case start.Day() == 1 && p.End.AddDays(1).Time().Day() == 1:
		return start.Format("January 2006")
	}
	return start.Format("2") + " to " + dayText(p.End)
}

// period returns the document's period as text; empty if it has no period.
func (d *Document) period() string {
	if d.Period == nil {
		return ""
	}
	return periodText(*d.Period)
}

// created returns when the report was created as text, in UTC.
func (d *Document) created() string {
	return "Created " + d.MadeAt.UTC().Format(dayLayout+", 15:04") + " UTC"
}
