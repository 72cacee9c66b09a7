package pg

import (
	"context"
	"strconv"
	"strings"
	"time"

	"github.com/uptrace/bun"

	"partnerapi/domain"
)

// Keyset is a list in the order of a sort key and then the id. A page begins after a position (keyset pagination), and
// does not count rows from the start.
type Keyset[Row any] struct {
	// Table is the list's table with its alias, as in "users AS u".
	Table string
	// Rows, if not nil, is a query whose rows stand for those of Table, under its alias.
	Rows Query
	// Key is the column of the sort key. ID is the column of the id, which breaks ties.
	Key, ID string
	// Owner is a column of ids that breaks ties of the key before ID does; empty for none.
	Owner string
	// Cast is the PostgreSQL type of the key of a position.
	Cast string
	Desc bool
	// OneIndex declares that one index holds the list in its order, whatever the values of the conditions are. The
	// query of a page is then prepared, so that PostgreSQL keeps its plan.
	OneIndex bool
	// IDsFirst declares that an index holds the columns of the conditions, and that few rows may match. The ids of a
	// page are then found with an index-only scan before its rows are read.
	IDsFirst bool
	// Where are the conditions of the list.
	Where Conditions
	// Select adds the columns, and the joins that they need, to a query on Table. Nil selects the columns of Row's
	// table.
	Select func(*bun.SelectQuery)
	// Position returns the position of a row: its key, owner and id.
	Position func(*Row) domain.Position
}

// Conditions are conditions that must all hold.
type Conditions []Query

// Add adds a condition.
func (c *Conditions) Add(text string, args ...any) { *c = append(*c, SQL(text, args...)) }

// AddIf adds a condition whose argument is *value, unless value is nil.
func AddIf[T any](c *Conditions, text string, value *T) {
	if value != nil {
		c.Add(text, *value)
	}
}

// ByTime returns the list of Row's table in the order of a timestamptz column and the column id. position returns the
// values of these columns in a row.
func ByTime[Row any, K domain.Kind](
	column, id string, position func(*Row) (time.Time, domain.ID[K]),
) Keyset[Row] {
	return Keyset[Row]{
		Table: aliasedTable[Row](), Key: column, ID: id, Cast: "timestamptz",
		Position: func(r *Row) domain.Position {
			at, id := position(r)
			return domain.Position{Key: TimeKey(at), ID: id.UUID()}
		},
	}
}

// Page reads the rows of a window. It reads one row more, to set More if rows follow. It does not set Total. If the
// window skips rows, or with IDsFirst, it first finds the ids of the page by an index, and then reads only the rows of
// the page.
func Page[Row any](ctx context.Context, r Runner, k Keyset[Row], w domain.Window) (domain.Slice[Row], error) {
	q := k.list()
	if k.Select != nil {
		k.Select(q)
	} else {
		q.ColumnExpr(Columns[Row]())
	}
	var query Query
	if w.Skip > 0 || k.IDsFirst {
		// ARRAY is evaluated once. IN (SELECT …) would be evaluated for each row if the planner, without statistics,
		// expects few rows. The outer query repeats the conditions because an id may be in other lists too: many users
		// have the same course.
		id := k.rowID()
		ids := k.Window(k.list().ColumnExpr(id), w)
		if w.Skip > 0 {
			ids = SQL("? OFFSET ?", ids, w.Skip)
		}
		query = q.Where(id+" = ANY(ARRAY(?))", ids).OrderExpr(k.order())
	} else {
		query = k.Window(q, w)
	}
	if k.OneIndex && w.Skip == 0 && !k.IDsFirst { // one plan is the best for all values
		query = Prepared(query)
	}

	rows, err := readRows[Row](ctx, r, "read a page of "+k.Table, query, w.Limit+1)
	if err != nil {
		return domain.Slice[Row]{}, err
	}
	return SliceOf(rows, w, k.Position), nil
}

// SliceOf returns the page of a window, whose rows were read with one row more, if that exists. position returns the
// position of a row.
func SliceOf[Row any](rows []Row, w domain.Window, position func(*Row) domain.Position) domain.Slice[Row] {
	s := domain.Slice[Row]{Rows: rows, Horizon: w.Horizon}
	if len(rows) > w.Limit {
		s.Rows, s.More = rows[:w.Limit], true
	}
	if n := len(s.Rows); n > 0 {
		end := position(&s.Rows[n-1])
		end.Horizon = w.Horizon
		s.End = &end
	}
	return s
}

// CountedPage is Page, and sets Total if the window has Total set. The total follows from the page if it is the last
// one, its position is known (no After), and it is not past the end. Otherwise CountedPage runs Count.
func CountedPage[Row any](ctx context.Context, r Runner, k Keyset[Row], w domain.Window) (domain.Slice[Row], error) {
	slice, err := Page(ctx, r, k, w)
	if err != nil || !w.Total {
		return slice, err
	}
	if last := !slice.More && w.After == nil; last && (len(slice.Rows) > 0 || w.Skip == 0) {
		slice.Total = w.Skip + len(slice.Rows)
		return slice, nil
	}
	slice.Total, err = k.Count(ctx, r)
	return slice, err
}

// Count returns the number of rows of the whole list.
func (k Keyset[Row]) Count(ctx context.Context, r Runner) (int, error) {
	return One[int](ctx, r, "count "+k.Table, k.list().ColumnExpr("count(*)"))
}

// list selects from the rows of the list, in no order.
func (k Keyset[Row]) list() *bun.SelectQuery {
	q := From(k.Table)
	if k.Rows != nil {
		_, alias, _ := strings.Cut(k.Table, " AS ")
		q = FromRows(k.Rows, alias)
	}
	for _, condition := range k.Where {
		q.Where("?", condition)
	}
	return q
}

// Window limits a query to the rows after the window's position, in order, and to one row more than the window's limit.
func (k Keyset[Row]) Window(q *bun.SelectQuery, w domain.Window) Query {
	if w.After != nil {
		operator := " > "
		if k.Desc {
			operator = " < "
		}
		if k.Owner == "" {
			q.Apply(Where("("+k.Key+", "+k.ID+")"+operator+"(?::text::"+k.Cast+", ?::text::uuid)", w.After.Key, w.After.ID))
		} else {
			q.Apply(Where("("+k.Key+", "+k.Owner+", "+k.ID+")"+operator+"(?key::text::"+k.Cast+", ?owner::text::uuid, ?id::text::uuid)",
				Named{"key": w.After.Key, "owner": w.After.Owner, "id": w.After.ID}))
		}
	}
	return Limit(q.OrderExpr(k.order()), w.Limit+1)
}

// order returns the ORDER BY of the list.
func (k Keyset[Row]) order() string {
	direction := " ASC"
	if k.Desc {
		direction = " DESC"
	}
	order := k.Key + direction
	if k.Owner != "" {
		order += ", " + k.Owner + direction
	}
	return order + ", " + k.ID + direction
}

// rowID returns a column that identifies a row of the table: the id or, if an id is unique only with its owner, ctid.
func (k Keyset[Row]) rowID() string {
	if k.Owner == "" {
		return k.ID
	}
	_, alias, _ := strings.Cut(k.Table, " AS ")
	alias, _, _ = strings.Cut(alias, " ") // a join may follow
	return alias + ".ctid"
}

// TimeKey formats a time as the key of a position.
func TimeKey(t time.Time) string { return t.UTC().Format(time.RFC3339Nano) }

// NumberKey formats a number as the key of a position.
func NumberKey(n int) string { return strconv.Itoa(n) }

// Map returns s with its rows converted by convert, usually to a type of the domain.
func Map[Row, T any](s domain.Slice[Row], convert func(*Row) T) domain.Slice[T] {
	return domain.Slice[T]{Rows: MapRows(s.Rows, convert), More: s.More, End: s.End, Total: s.Total, Horizon: s.Horizon}
}

// Index returns a map with the keys and values that entry returns for the rows.
func Index[Row any, K comparable, T any](rows []Row, entry func(*Row) (K, T)) map[K]T {
	all := make(map[K]T, len(rows))
	for i := range rows {
		key, value := entry(&rows[i])
		all[key] = value
	}
	return all
}

// MapRows returns the results of convert for the rows. It never returns nil.
func MapRows[Row, T any](rows []Row, convert func(*Row) T) []T {
	out := make([]T, len(rows))
	for i := range rows {
		out[i] = convert(&rows[i])
	}
	return out
}
