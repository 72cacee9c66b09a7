package output

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"partnerapi/domain"
)

// Table aligns the cells of rows in columns. A row is one line: control characters in a cell are escaped. A cell that is
// an int or int64 is a number: it has commas between thousands, and its column is aligned right.
type Table struct {
	to   io.Writer
	rows [][]cell // the rows since the last write
	err  error    // of the first write that failed
	// width is the maximum width of rows, for which the cells of the columns flexible are cut; 0 for no maximum.
	width    int
	flexible []int
}

type cell struct {
	text     string
	isNumber bool
}

const (
	// flushEvery is the number of rows buffered to align the columns.
	flushEvery = 1000
	// gap is the number of spaces between columns.
	gap = 2
	// minFlexible is the width below which no cell is cut.
	minFlexible = 6
)

// NewTable starts a table with the names of its columns.
func NewTable(to io.Writer, columns ...any) *Table {
	t := &Table{to: to}
	t.Row(columns...)
	return t
}

// Fit cuts the cells of some columns, given by their index, so that rows are at most width wide.
func (t *Table) Fit(width int, columns ...int) *Table {
	t.width, t.flexible = width, columns
	return t
}

// Row adds a row. Errors of writing are returned by Flush.
func (t *Table) Row(cells ...any) {
	row := make([]cell, len(cells))
	for i, c := range cells {
		switch n := c.(type) {
		case int:
			row[i] = cell{Grouped(int64(n)), true}
		case int64:
			row[i] = cell{Grouped(n), true}
		default:
			row[i] = cell{text: domain.Visible(fmt.Sprint(c))}
		}
	}
	if t.rows = append(t.rows, row); len(t.rows) == flushEvery {
		t.write()
	}
}

// Flush writes the rows.
func (t *Table) Flush() error {
	t.write()
	return t.err
}

// write writes the rows since the last write, unless that failed.
func (t *Table) write() {
	widths, isRight := t.layout()
	var text strings.Builder
	for _, row := range t.rows {
		for i, c := range row {
			if i > 0 {
				text.WriteString(strings.Repeat(" ", gap))
			}
			content := cut(c.text, widths[i])
			padding := strings.Repeat(" ", widths[i]-utf8.RuneCountInString(content))
			switch {
			case isRight[i]:
				text.WriteString(padding + content)
			case i == len(row)-1:
				text.WriteString(content)
			default:
				text.WriteString(content + padding)
			}
		}
		text.WriteByte('\n')
	}
	t.rows = nil
	if t.err == nil {
		_, t.err = io.WriteString(t.to, text.String())
	}
}

// layout returns the width of each column, and whether it is aligned right.
func (t *Table) layout() (widths []int, isRight []bool) {
	for _, row := range t.rows {
		for i, c := range row {
			if i == len(widths) {
				widths, isRight = append(widths, 0), append(isRight, false)
			}
			widths[i] = max(widths[i], utf8.RuneCountInString(c.text))
			isRight[i] = isRight[i] || c.isNumber
		}
	}
	if t.width == 0 || len(widths) == 0 {
		return widths, isRight
	}
	total := gap * (len(widths) - 1)
	for _, w := range widths {
		total += w
	}
	for ; total > t.width; total-- {
		widest := slices.MaxFunc(t.flexible, func(a, b int) int { return widths[a] - widths[b] })
		if widths[widest] <= minFlexible {
			break
		}
		widths[widest]--
	}
	return widths, isRight
}

// cut returns a text of at most width characters, with an ellipsis at the end if it was longer.
func cut(text string, width int) string {
	if utf8.RuneCountInString(text) <= width {
		return text
	}
	return string([]rune(text)[:width-1]) + "…"
}

// List prints a list as a JSON array, or as a table with the columns; row returns the cells of an item.
func List[T any](to io.Writer, isJSON bool, list []T, columns []any, row func(T) []any) error {
	if isJSON {
		return JSON(to, append([]T{}, list...)) // [] for nil
	}
	t := NewTable(to, columns...)
	for _, item := range list {
		t.Row(row(item)...)
	}
	return t.Flush()
}
