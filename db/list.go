package db

import (
	"context"
	"strconv"
	"strings"
	"time"

	"github.com/uptrace/bun"

	"partnerapi/domain"
)

// keyset is a list in an order of a sort key and then the id: what it is made
// of, for a page to be read after a position rather than counted from the
// start.
type keyset struct {
	// from is the table with its alias, as in users AS u.
	from string
	// key is the column of the sort key, id that of the id.
	key, id string
	// cast is the type that a position's key has in the database.
	cast string
	desc bool
	// settled says that one index holds the list in its order whatever the
	// values are, so that it need not be planned for each.
	settled bool
	// where restricts the list; nil does not.
	where func(*bun.SelectQuery, *binds) *bun.SelectQuery
}

// page reads the window's rows, and one more to know whether rows follow. The
// columns are those of Row, a model of the list's table, unless selecting chooses
// others; position tells a row's place. A window that skips rows finds its ids on an
// index alone and reads the columns of those.
func page[Row any](ctx context.Context, d *DB, k keyset, w domain.Window, selecting func(*bun.SelectQuery, *binds) *bun.SelectQuery, position func(*Row) domain.Position) (domain.Slice[Row], error) {
	var values binds
	q := d.Bun().NewSelect().Model((*Row)(nil))
	if selecting != nil {
		q = selecting(q, &values)
	}
	if w.Skip > 0 {
		ids := k.bounded(d.Bun().NewSelect().TableExpr(k.from).ColumnExpr(k.id), &values, w).Offset(int64(w.Skip))
		// An array is made once; IN (SELECT ...) is made again for every row
		// where the planner, for want of statistics, expects few. The list's
		// own restriction again, for an id may be in other lists too: a course
		// is many users'.
		q = k.ordered(k.restricted(q, &values)).Where(k.id+" = ANY(ARRAY(?))", ids)
	} else {
		q = k.bounded(q, &values, w)
	}
	plan := planEach
	if k.settled && w.Skip == 0 {
		plan = planOnce
	}
	rows, err := read[Row](ctx, d, q.String(), values, plan, w.Limit+1)
	if err != nil {
		return domain.Slice[Row]{}, d.bad("read a page of "+k.from, err)
	}
	s := domain.Slice[Row]{Rows: rows}
	if len(rows) > w.Limit {
		s.Rows, s.More = rows[:w.Limit], true
	}
	if n := len(s.Rows); n > 0 {
		end := position(&s.Rows[n-1])
		s.End = &end
	}
	return s, nil
}

// bounded restricts a query to the list's rows after the window's position.
func (k keyset) bounded(q *bun.SelectQuery, values *binds, w domain.Window) *bun.SelectQuery {
	q = k.restricted(q, values)
	if w.After != nil {
		than := " > "
		if k.desc {
			than = " < "
		}
		q = q.Where("("+k.key+", "+k.id+")"+than+"(?::"+k.cast+", ?::uuid)", values.add(w.After.Key), values.add(w.After.ID))
	}
	return k.ordered(q).Limit(int64(w.Limit) + 1)
}

func (k keyset) restricted(q *bun.SelectQuery, values *binds) *bun.SelectQuery {
	if k.where == nil {
		return q
	}
	return k.where(q, values)
}

func (k keyset) ordered(q *bun.SelectQuery) *bun.SelectQuery {
	direction := " ASC"
	if k.desc {
		direction = " DESC"
	}
	return q.OrderExpr(k.key + direction + ", " + k.id + direction)
}

// countedPage is page with the total of the list, where it is asked for, from a
// count of its rows, unless the page shows the list's end.
func countedPage[Row any](ctx context.Context, d *DB, k keyset, w domain.Window, selecting func(*bun.SelectQuery, *binds) *bun.SelectQuery, position func(*Row) domain.Position) (domain.Slice[Row], error) {
	slice, err := page(ctx, d, k, w, selecting, position)
	if err != nil || !w.Total {
		return slice, err
	}
	if ended := !slice.More && w.After == nil; ended && (len(slice.Rows) > 0 || w.Skip == 0) {
		slice.Total = w.Skip + len(slice.Rows)
		return slice, nil
	}
	slice.Total, err = k.count(ctx, d)
	return slice, err
}

// counted is the answer of a query that counts.
type counted struct{ Rows int }

// count counts the rows of the whole list.
func (k keyset) count(ctx context.Context, d *DB) (int, error) {
	var values binds
	q := k.restricted(d.Bun().NewSelect().TableExpr(k.from).ColumnExpr("count(*) AS rows"), &values)
	n, err := read[counted](ctx, d, q.String(), values, planEach, 1)
	if err != nil {
		return 0, d.bad("count "+k.from, err)
	}
	return n[0].Rows, nil
}

// timeKey is a time as the key of a position.
func timeKey(t time.Time) string { return t.UTC().Format(time.RFC3339Nano) }

// numberKey is a number as the key of a position.
func numberKey(n int) string { return strconv.Itoa(n) }

// containing is the condition that a text column holds the text, in any case,
// the column being the text's sort key.
func containing(q *bun.SelectQuery, values *binds, text string, columns ...string) *bun.SelectQuery {
	if text == "" {
		return q
	}
	conditions := make([]string, len(columns))
	args := make([]any, len(columns))
	for i, column := range columns {
		conditions[i], args[i] = "strpos("+column+", ?) > 0", values.add(domain.SortKey(text))
	}
	return q.Where("("+strings.Join(conditions, " OR ")+")", args...)
}

// mapped is a slice of rows in the domain's terms.
func mapped[Row, T any](s domain.Slice[Row], as func(*Row) T) domain.Slice[T] {
	out := domain.Slice[T]{Rows: make([]T, len(s.Rows)), More: s.More, End: s.End, Total: s.Total}
	for i := range s.Rows {
		out.Rows[i] = as(&s.Rows[i])
	}
	return out
}
