package domain

import (
	"strings"
	"time"
)

// Window is a requested part of a list.
type Window struct {
	// Limit is the maximum number of rows.
	Limit int
	// After is the position after which the part begins; nil means at the first row.
	After *Position
	// Latest makes the part begin after the last row. It is for lists that grow only at their end.
	Latest bool
	// Skip is the number of rows to skip after that.
	Skip int
	// Total requests the number of rows of the whole list.
	Total bool
	// Horizon is the time up to which all changes were visible at the first page; nil if it is not known.
	Horizon *time.Time
}

// Position is a position in a sorted list: the sort key and the id of a row.
type Position struct {
	Key string `json:"k"`
	ID  string `json:"i"` // UUID text; it breaks ties of the key
	// Owner is the UUID text of the owner of a row, in lists in which the owner breaks ties of the key before ID does.
	// It is empty in other lists.
	Owner string `json:"o,omitempty"`
	// Horizon is that of the first page. Positions of release 1.0, and of lists that do not use it, have none.
	Horizon *time.Time `json:"h,omitempty"`
	// Since is the time from which a feed continues that is read by time; nil for another.
	Since *time.Time `json:"s,omitempty"`
}

// Slice is the part of a list that a Window requests.
type Slice[T any] struct {
	Rows []T
	// More is true if rows follow.
	More bool
	// End is the position of the last row; nil if there are no rows.
	End *Position
	// Total is the number of rows of the whole list, if it was requested.
	Total int
	// Horizon is that of the window; nil if the list did not use it.
	Horizon *time.Time
}

// Sort is an order of a list: a name, with a minus sign before it for the descending order.
type Sort string

// Descending reports whether the order runs from the largest key down.
func (s Sort) Descending() bool { return strings.HasPrefix(string(s), "-") }

// By returns the name without the minus sign.
func (s Sort) By() string { return strings.TrimPrefix(string(s), "-") }

// The orders of lists that have a time as their only sort. Each is empty for the order that the list has without a sort.
type (
	// ResultSort is an order of a list of results.
	ResultSort string
	// ReportedEmailSort is an order of a list of reported emails.
	ReportedEmailSort string
	// ExposureSort is an order of a list of exposures.
	ExposureSort string
	// AssignmentSort is an order of a list of a client's assignments.
	AssignmentSort string
)

// Values lists the sort orders.
func (ResultSort) Values() []string { return bothWays("send_at") }

// Values lists the sort orders.
func (ReportedEmailSort) Values() []string { return bothWays("reported_at") }

// Values lists the sort orders.
func (ExposureSort) Values() []string { return bothWays("first_seen_at") }

// Values lists the sort orders.
func (AssignmentSort) Values() []string { return bothWays("assigned_at") }

// bothWays returns the ascending and the descending order by a name.
func bothWays(name string) []string { return []string{name, "-" + name} }
