package domain

import "strings"

// Window is the part of a list that is wanted.
type Window struct {
	// Limit is how many rows at most.
	Limit int
	// After is the row after which to begin; nil begins at the first.
	After *Position
	// Latest begins after the last row. It is for lists that grow at their end only.
	Latest bool
	// Skip is how many further rows to pass over.
	Skip int
	// Total asks for the number of rows of the whole list.
	Total bool
}

// Position is a place in a sorted list: the sort key and the id of a row.
type Position struct {
	Key string `json:"k"`
	ID  string `json:"i"` // UUID text; ties of the key are broken by it
	// Owner is the UUID text of what a row belongs to, in lists that break ties of the key
	// by it before ID; else empty.
	Owner string `json:"o,omitempty"`
}

// Slice is what a Window shows of a list.
type Slice[T any] struct {
	Rows []T
	// More says that rows follow.
	More bool
	// End is the position of the last row; nil when there are no rows.
	End *Position
	// Total is the number of rows of the whole list, if it was asked for.
	Total int
}

// Sort is an order of a list: a name, and a minus sign before it for the
// descending one.
type Sort string

// Descending reports whether the order runs from the largest key down.
func (s Sort) Descending() bool { return strings.HasPrefix(string(s), "-") }

// By is the name without its direction.
func (s Sort) By() string { return strings.TrimPrefix(string(s), "-") }
