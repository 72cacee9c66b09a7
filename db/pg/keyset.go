package pg

import (
	"context"
	"strconv"
	"strings"
	"time"

	"partnerapi/domain"
)

// Keyset is a list in the order of a sort key and then the id. A page continues after a
// position, instead of counting rows from the start.
type Keyset[Row any] struct {
	// Table is the list's table with its alias, as in "users AS u".
	Table string
	// Key is the column of the sort key, ID that of the id, which breaks ties.
	Key, ID string
	// Owner is a column of ids that breaks ties of the key before ID does; empty for none.
	Owner string
	// Cast is the type that a position's key has in the database.
	Cast string
	Desc bool
	// OneIndex says that one index holds the list in its order whatever the
	// values are, so that its plan can be kept.
	OneIndex bool
	// IDsFirst says that most rows may fail the conditions, which an index holds:
	// the ids of a page are found on the index alone, before its rows are read.
	IDsFirst bool
	// Where are the conditions of the list.
	Where Conditions
	// Select adds the columns, and the joins that they need, to a query on
	// Table. Nil selects the columns of Row's table.
	Select func(*Select)
	// Position is the key and the id of a row.
	Position func(*Row) domain.Position
}

// Conditions must all hold.
type Conditions []Query

// Add adds a condition.
func (c *Conditions) Add(text string, args ...any) { *c = append(*c, SQL(text, args...)) }

// AddIf adds a condition on what value points to, unless value is nil.
func AddIf[T any](c *Conditions, text string, value *T) {
	if value != nil {
		c.Add(text, *value)
	}
}

// ByTime returns the list of Row's table in the order of a column of times. position returns
// the values of that column and of the column of ids.
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

// Page reads the rows of a window, and one more to know whether rows follow. The
// slice has no total. A window that skips rows finds ids on an index alone and reads
// the columns of those that it shows.
func Page[Row any](ctx context.Context, r Runner, k Keyset[Row], w domain.Window) (domain.Slice[Row], error) {
	q := From(k.Table)
	if k.Select != nil {
		k.Select(q)
	} else {
		q.Columns(Columns[Row]())
	}
	q.where = append(q.where, k.Where...)
	if w.Skip > 0 || k.IDsFirst {
		// ARRAY is evaluated once; IN (SELECT …) is evaluated for each row if the planner, for lack of
		// statistics, expects few. Both have the conditions, because an id may be in other lists too:
		// a course is many users'.
		id := k.rowID()
		ids := From(k.Table).Columns(id).Offset(w.Skip)
		ids.where = append(ids.where, k.Where...)
		q.Where(id+" = ANY(ARRAY(?))", k.window(ids, w)).OrderBy(k.order())
	} else {
		k.window(q, w)
	}
	query := Query(q)
	if k.OneIndex && w.Skip == 0 && !k.IDsFirst {
		query = Prepared(q)
	}

	rows, err := some[Row](ctx, r, "read a page of "+k.Table, query, w.Limit+1)
	if err != nil {
		return domain.Slice[Row]{}, err
	}
	s := domain.Slice[Row]{Rows: rows}
	if len(rows) > w.Limit {
		s.Rows, s.More = rows[:w.Limit], true
	}
	if n := len(s.Rows); n > 0 {
		end := k.Position(&s.Rows[n-1])
		s.End = &end
	}
	return s, nil
}

// CountedPage is Page with the total of the list, if the window asks for it. It counts the
// rows, unless the page shows the list's end.
func CountedPage[Row any](ctx context.Context, r Runner, k Keyset[Row], w domain.Window) (domain.Slice[Row], error) {
	slice, err := Page(ctx, r, k, w)
	if err != nil || !w.Total {
		return slice, err
	}
	if ended := !slice.More && w.After == nil; ended && (len(slice.Rows) > 0 || w.Skip == 0) {
		slice.Total = w.Skip + len(slice.Rows)
		return slice, nil
	}
	slice.Total, err = k.Count(ctx, r)
	return slice, err
}

// Count counts the rows of the whole list.
func (k Keyset[Row]) Count(ctx context.Context, r Runner) (int, error) {
	q := From(k.Table).Columns("count(*)")
	q.where = append(q.where, k.Where...)
	return One[int](ctx, r, "count "+k.Table, q)
}

// window restricts a query to the rows after the window's position, and one more
// than its limit.
func (k Keyset[Row]) window(q *Select, w domain.Window) *Select {
	if w.After != nil {
		than := " > "
		if k.Desc {
			than = " < "
		}
		if k.Owner == "" {
			q.Where("("+k.Key+", "+k.ID+")"+than+"(?::text::"+k.Cast+", ?::text::uuid)", w.After.Key, w.After.ID)
		} else {
			q.Where("("+k.Key+", "+k.Owner+", "+k.ID+")"+than+"(?::text::"+k.Cast+", ?::text::uuid, ?::text::uuid)",
				w.After.Key, w.After.Owner, w.After.ID)
		}
	}
	return q.OrderBy(k.order()).Limit(w.Limit + 1)
}

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

// rowID is a column that identifies a row of the table: the id or, if that needs the owner
// too, the ctid of the row's version.
func (k Keyset[Row]) rowID() string {
	if k.Owner == "" {
		return k.ID
	}
	_, alias, _ := strings.Cut(k.Table, " AS ")
	return alias + ".ctid"
}

// TimeKey is a time as the key of a position.
func TimeKey(t time.Time) string { return t.UTC().Format(time.RFC3339Nano) }

// NumberKey is a number as the key of a position.
func NumberKey(n int) string { return strconv.Itoa(n) }

// Map returns a slice with its rows converted by of, usually to a type of the domain.
func Map[Row, T any](s domain.Slice[Row], of func(*Row) T) domain.Slice[T] {
	return domain.Slice[T]{Rows: MapRows(s.Rows, of), More: s.More, End: s.End, Total: s.Total}
}

// Index returns a map of the keys and values that of returns for the rows.
func Index[Row any, K comparable, T any](rows []Row, of func(*Row) (K, T)) map[K]T {
	all := make(map[K]T, len(rows))
	for i := range rows {
		key, value := of(&rows[i])
		all[key] = value
	}
	return all
}

// MapRows returns the rows converted by of, such as to their ids. It is never nil.
func MapRows[Row, T any](rows []Row, of func(*Row) T) []T {
	out := make([]T, len(rows))
	for i := range rows {
		out[i] = of(&rows[i])
	}
	return out
}
