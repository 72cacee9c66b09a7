//go:build slow

package v2_test

import (
	"fmt"
	"testing"

	"partnerapi/v2/op"
)

// TestPagingStill walks every list of every table, in every sort, while nothing changes.
func TestPagingStill(t *testing.T) {
	t.Parallel()
	for name, table := range pagedTables {
		t.Run(name, func(t *testing.T) { walkStill(t, table) })
	}
}

// TestPagingWhileRowsChange walks every list of every table while rows change.
func TestPagingWhileRowsChange(t *testing.T) {
	t.Parallel()
	for name, table := range pagedTables {
		t.Run(name, func(t *testing.T) { walkWhileRowsChange(t, table) })
	}
}

// TestPagingInParallel walks lists of every table at once while others write.
func TestPagingInParallel(t *testing.T) {
	t.Parallel()
	for name, table := range pagedTables {
		t.Run(name, func(t *testing.T) { walkInParallel(t, table) })
	}
}

// TestPagingJumps reads pages in process as the older version does: more rows
// than a caller may have, after rows that are skipped, with the total.
func TestPagingJumps(t *testing.T) {
	t.Parallel()
	for name, table := range pagedTables {
		if name == "audit log" { // which the older version does not have
			continue
		}
		t.Run(name, func(t *testing.T) {
			rows := 90
			if name == "users" {
				rows = 560 // more than a page may hold
			}
			p := newPagedTable(t, table, rows)
			for i, l := range p.lists {
				want := p.listed(l)
				first := 1 + p.dice.IntN(min(len(want), 30))
				if i%4 == 0 {
					first = 1 + p.dice.IntN(len(want))
					p.jump(t, l, want, "", op.Paging{Rows: 540 + p.dice.IntN(40), Total: true})
				}
				start := p.call(t, l, op.Paging{Rows: first})
				checkPage(t, l.name, start, want[:first])
				// One kind of skip per list, as each table has many lists.
				skip := []int{1, p.dice.IntN(len(want)), len(want) + p.dice.IntN(2)}[p.dice.IntN(3)]
				p.jump(t, l, want, "", op.Paging{Skip: skip, Rows: 1 + p.dice.IntN(30), Total: true})
				// The cursor of the last row is there on the last page too.
				p.jump(t, l, want[first:], "after a page ", op.Paging{Cursor: start.end, Skip: skip, Rows: 1 + p.dice.IntN(30)})
			}
		})
	}
}

// jump reads a page in process and holds it against a slice of the rows that
// follow its cursor.
func (p *pagedTable) jump(t *testing.T, l pagedList, rows []pagedRow, how string, paging op.Paging) {
	t.Helper()
	name := fmt.Sprintf("%s, %s%d rows after skipping %d", l.name, how, paging.Rows, paging.Skip)
	page := p.call(t, l, paging)
	from := min(paging.Skip, len(rows))
	to := min(from+paging.Rows, len(rows))
	checkPage(t, name, page, rows[from:to])
	if more := to < len(rows); page.Page.HasMore != more || (page.Page.NextCursor != nil) != more {
		t.Errorf("%s: has_more is %t with the cursor %v", name, page.Page.HasMore, page.Page.NextCursor)
	}
	if (page.end != "") != (to > from) {
		t.Errorf("%s: the end is %q", name, page.end)
	}
	if paging.Total && !l.uncounted && page.total != len(rows) {
		t.Errorf("%s: the total is %d, not %d", name, page.total, len(rows))
	}
}
