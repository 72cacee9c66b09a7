package domain

import (
	"fmt"
	"strings"
)

// Cell is one of the Count installations among which partners are divided (decisions 13). Numbers begin at 0.
type Cell struct{ Number, Count int }

// maxCells is the number of codes, which are two digits of base62.
const maxCells = len(base62) * len(base62)

// ParseCell parses the code of one of count cells.
func ParseCell(code string, count int) (Cell, error) {
	number, ok := cellNumber(code)
	switch {
	case count < 1 || count > maxCells:
		return Cell{}, fmt.Errorf("%d is not between 1 and %d", count, maxCells)
	case !ok || len(code) != 2:
		return Cell{}, fmt.Errorf("%q is not two characters of 0-9, A-Z and a-z", code)
	case number >= count:
		return Cell{}, fmt.Errorf("%q is not one of the %d cells, whose codes are 00 to %s", code, count, Cell{Number: count - 1}.Code())
	}
	return Cell{number, count}, nil
}

// cellNumber returns the number of the code at the beginning of a text. ok is false if it does not begin with a code.
func cellNumber(text string) (number int, ok bool) {
	if len(text) < 2 {
		return 0, false
	}
	high, low := strings.IndexByte(base62, text[0]), strings.IndexByte(base62, text[1])
	return high*len(base62) + low, high >= 0 && low >= 0
}

// Code returns the cell's code in keys: its number as two digits of base62.
func (c Cell) Code() string {
	return string([]byte{base62[c.Number/len(base62)], base62[c.Number%len(base62)]})
}

// String returns the cell in the form for operators, such as "01 of 4".
func (c Cell) String() string { return fmt.Sprintf("%s of %d", c.Code(), c.Count) }

// OfKey returns the cell whose code is in a key, or in a key's prefix. A key without a valid code was created before
// there were cells, and belongs to the first cell.
func (c Cell) OfKey(key string) Cell {
	digits, ok := strings.CutPrefix(key, keyStart)
	number, valid := cellNumber(digits)
	if !ok || !valid || number >= c.Count {
		number = 0
	}
	return Cell{number, c.Count}
}
