package parity

import (
	"cmp"
	"context"
	"fmt"
	"strings"
)

// comparison compares both sides of a list.
type comparison struct {
	run  *run
	list *list
	// sample is how many rows of the first side are read, spread evenly; 0 is all.
	sample int
}

// kind is what a suspect may differ in.
type kind int

const (
	byRow kind = iota // a row's values, or that one side alone has it
	byOrder
	byPlace // v1's rows are not in the order that v1 documents
	byTotal
	byStatus
)

// suspect is what may differ of a list; row is the zero key where it is not of a row.
type suspect struct {
	kind kind
	row  rowKey
}

// finding is how a suspect differs.
type finding struct {
	faults []fault
	// said is what both sides say, and of are the answers that say it.
	said string
	of   [2]answer
}

// diff is how two readings compare.
type diff struct {
	found map[suspect]finding
	// same are rows without a difference.
	same map[rowKey]verdict
	// pairs are the rows that both have.
	pairs [][2]row
	// total is what v1 says, and rows how many v2 has.
	total, rows int
	// moved says that a row of a part is elsewhere on the other side, or nowhere.
	moved bool
	// refused says that a side refused the list.
	refused bool
}

// second reads the side that v1 is compared with: v2, or another service's v1.
func (c *comparison) second(ctx context.Context, count bool) (reading, error) {
	if c.run.old != nil {
		return c.readV1(ctx, c.run.service, 0, count)
	}
	return c.readV2(ctx, count)
}

// first reads the side that is compared.
func (c *comparison) first(ctx context.Context, count bool) (reading, error) {
	s := c.run.service
	if c.run.old != nil {
		s = c.run.old
	}
	return c.readV1(ctx, s, c.sample, count)
}

// diff compares two readings.
func (c *comparison) diff(v1, other reading) diff {
	d := diff{found: map[suspect]finding{}, same: map[rowKey]verdict{}}
	if d.refused = !v1.ok || !other.ok; d.refused {
		c.diffStatus(&d, v1.of, other.of)
		return d
	}
	d.total, d.rows = v1.total, len(other.rows)
	if at := c.list.exact; at != nil && c.list.Paged && c.run.old == nil {
		other.rows = at.of(other.rows, c.list.most)
	}
	if c.list.key == "" && len(v1.rows) != len(other.rows) {
		byContent(v1.rows)
		byContent(other.rows)
	}

	left := map[rowKey]row{}
	for _, r := range other.rows {
		left[r.key] = r
	}
	for _, r := range v1.rows {
		match, ok := left[r.key]
		delete(left, r.key)
		switch {
		case ok:
			d.moved = d.moved || v1.part && r.place != match.place
			d.pairs = append(d.pairs, [2]row{r, match})
			c.diffRow(&d, r, match)
		case v1.part:
			d.moved = true
		default:
			d.add(suspect{byRow, r.key}, fault{"surplus row", r.value, nil}, r, row{of: other.of})
		}
	}
	if v1.part {
		d.moved = d.moved || d.total != d.rows
		return d
	}
	for key, r := range left {
		d.add(suspect{byRow, key}, fault{"missing row", nil, r.value}, row{of: v1.of}, r)
	}
	c.diffOrder(&d, v1)
	if c.list.List {
		c.diffTotal(&d, v1, other)
	}
	return d
}

// of are the rows that are to be on the page.
func (e *exactPage) of(rows []row, most int) []row {
	rows = rows[min(max(e.offset, 0), len(rows)):]
	return rows[:min(max(e.limit, 1), most, len(rows))]
}

// byContent tells rows apart by what they say, where they have no id and are not as many
// on both sides.
func byContent(rows []row) {
	times := map[string]int{}
	for i, r := range rows {
		content := string(r.value)
		rows[i].key = rowKey{content, times[content]}
		times[content]++
	}
}

func (d *diff) add(s suspect, f fault, v1, other row) {
	d.found[s] = finding{[]fault{f}, f.field + string(f.v1) + "\x00" + string(f.v2), [2]answer{v1.of, other.of}}
}

// diffRow compares a row that both sides have.
func (c *comparison) diffRow(d *diff, v1, other row) {
	v := c.run.rules(c.list).compare(v1.value, other.value)
	if len(v.faults) == 0 {
		d.same[v1.key] = v
		return
	}
	said := string(v1.value) + "\x00" + string(other.value) + "\x00" + string(other.raw)
	d.found[suspect{byRow, v1.key}] = finding{v.faults, said, [2]answer{v1.of, other.of}}
}

// diffOrder compares the order of the rows that both sides have, and v1's with the one
// that v1 documents.
func (c *comparison) diffOrder(d *diff, v1 reading) {
	for i, pair := range d.pairs {
		if i == 0 || d.pairs[i-1][1].place < pair[1].place {
			continue
		}
		a, b := d.pairs[i-1][0].key.id, pair[0].key.id
		d.add(suspect{kind: byOrder}, fault{"order", text(a + " before " + b), text(b + " before " + a)}, pair[0], pair[1])
		break
	}

	name, descending := strings.CutPrefix(c.list.order, "-")
	previous := ""
	for _, r := range v1.rows {
		value := memberOf(r.value, name)
		by := cmp.Or(cmp.Compare(len(previous), len(value)), strings.Compare(previous, value))
		if name != "" && previous != "" && (by > 0 && !descending || by < 0 && descending) {
			d.add(suspect{kind: byPlace}, fault{"order", text(name + " " + value + " after " + previous), nil}, r, row{})
			return
		}
		previous = value
	}
}

// diffTotal compares v1's total with the number of rows on both sides.
func (c *comparison) diffTotal(d *diff, v1, other reading) {
	var counts []int
	if c.run.old == nil || c.list.exact == nil {
		counts = append(counts, d.rows)
	}
	if c.run.old != nil {
		counts = append(counts, other.total)
	}
	if c.list.exact == nil {
		counts = append(counts, len(v1.rows))
	}
	for _, n := range counts {
		if n != v1.total {
			d.add(suspect{kind: byTotal}, fault{"total", number(v1.total), number(n)}, row{of: v1.of}, row{of: other.of})
			return
		}
	}
	d.same[rowKey{nth: wholeList}] = verdict{equal: 1}
}

// wholeList is the nth of the key under which a verdict on the list itself stands.
const wholeList = -1

// diffStatus compares how two requests were answered of which not both succeeded.
func (c *comparison) diffStatus(d *diff, v1, other answer) {
	if c.run.agree(v1, other) || c.list.exact != nil && c.run.old == nil && malformed(v1, other) {
		d.same[rowKey{nth: wholeList}] = verdict{equal: 1}
		return
	}
	f := fault{"status", number(v1.status), number(other.status)}
	if v1.status == other.status {
		f = fault{"error", text(failureOf(v1).code), text(failureOf(other).code)}
	}
	d.add(suspect{kind: byStatus}, f, row{of: v1}, row{of: other})
}

// malformed reports whether v1 refused what is for v2 the id of nothing (decisions 1.2).
func malformed(v1, other answer) bool {
	return v1.status == 400 && (other.status == 404 || other.status == 200)
}

// named says of which object, and of which row of the list, a suspect is.
func (l *list) named(s suspect) (of Object, row string) {
	switch {
	case s.kind != byRow || s.row == rowKey{}:
		return l.of, ""
	case l.kind != "":
		if s.row.nth > 0 {
			row = fmt.Sprintf("%d times", s.row.nth+1)
		}
		return Object{Kind: l.kind, V1: s.row.id}, row
	case l.key != "":
		return l.of, l.key + " " + s.row.id
	case s.row.id == "":
		return l.of, fmt.Sprintf("offset %d", s.row.nth)
	}
	return l.of, ""
}
