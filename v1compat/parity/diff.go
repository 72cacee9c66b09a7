package parity

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// kind is what a suspect may differ in.
type kind int

const (
	byRow   kind = iota // a row's values, or that one side alone has it
	byOrder             // the sides differ, or v1's rows are not as it documents
	byTotal
	byStatus
)

// suspect is what may differ of a list; row is the zero key where it is not of a row.
type suspect struct {
	kind kind
	row  rowKey
}

// finding is how a suspect compares, and the answers that say it.
type finding struct {
	verdict
	of [2]answer
}

// differs reports whether there is a difference.
func (f finding) differs() bool { return len(f.faults) > 0 }

// says reports whether two findings are the same difference.
func (f finding) says(other finding) bool { return reflect.DeepEqual(f.faults, other.faults) }

// diff is how two readings compare.
type diff struct {
	found map[suspect]finding
	// pairs are the rows that both have.
	pairs [][2]row
	// total is what v1 says, and rows how many the other side has.
	total, rows int
	// refused says that a side refused the list.
	refused bool
}

// first reads the side that is compared.
func (l *list) first(ctx context.Context, count bool) (reading, error) {
	return l.readV1(ctx, cmp.Or(l.run.old, l.run.service), count)
}

// both reads it, and the side that v1 is compared with: v2, or another service's v1. What
// the translators refuse is not asked for.
func (l *list) both(ctx context.Context, count bool) (v1, other reading, err error) {
	if v1, err = l.first(ctx, count); err != nil {
		return v1, other, err
	}
	switch refusal := l.Refusal; {
	case l.run.old != nil:
		other, err = l.readV1(ctx, l.run.service, count)
	case refusal != nil:
		other = reading{of: answer{status: refusal.Status, body: valueOf(refusal)}}
	default:
		other, err = l.readV2(ctx, count)
	}
	return v1, other, err
}

// differing are the suspects of which there is a difference.
func (d diff) differing() map[suspect]finding {
	open := maps.Clone(d.found)
	maps.DeleteFunc(open, func(_ suspect, f finding) bool { return !f.differs() })
	return open
}

// diff compares two readings.
func (l *list) diff(v1, other reading) diff {
	d := diff{found: map[suspect]finding{}, total: v1.total, rows: len(other.rows)}
	if d.refused = !v1.ok || !other.ok; d.refused {
		d.found[suspect{kind: byStatus}] = finding{l.compareStatus(v1.of, other.of), [2]answer{v1.of, other.of}}
		return d
	}
	if l.exact && l.Paged && l.run.old == nil {
		other.rows = other.rows[min(max(l.Offset, 0), len(other.rows)):]
		other.rows = other.rows[:min(l.Limit, len(other.rows))]
	}
	if l.key == "" && len(v1.rows) != len(other.rows) {
		l.run.rules(l).byContent(v1.rows)
		l.run.rules(l).byContent(other.rows)
	}

	left := map[rowKey]row{}
	for _, r := range other.rows {
		left[r.key] = r
	}
	for _, r := range v1.rows {
		match, ok := left[r.key]
		delete(left, r.key)
		if !ok {
			d.found[suspect{byRow, r.key}] = finding{faulty("surplus row", r.value, nil), [2]answer{r.of, other.of}}
			continue
		}
		d.pairs = append(d.pairs, [2]row{r, match})
	}
	for _, i := range spread(len(d.pairs), l.sample) {
		a, b := d.pairs[i][0], d.pairs[i][1]
		v := l.run.rules(l).compare(a.value, b.value)
		d.found[suspect{byRow, a.key}] = finding{v, [2]answer{a.of, b.of}}
	}
	for key, r := range left {
		d.found[suspect{byRow, key}] = finding{faulty("missing row", nil, r.value), [2]answer{v1.of, r.of}}
	}
	both := [2]answer{v1.of, other.of}
	d.found[suspect{kind: byOrder}] = finding{l.compareOrder(d.pairs, v1.rows), both}
	if l.List {
		d.found[suspect{kind: byTotal}] = finding{l.compareTotal(v1, other, d.rows), both}
	}
	return d
}

// byContent tells rows apart by what they say, where they have no id and are not as many
// on both sides.
func (r rules) byContent(rows []row) {
	times := map[string]int{}
	for i, row := range rows {
		content := r.content(row.value)
		rows[i].key = rowKey{content, times[content]}
		times[content]++
	}
}

// compareOrder compares the order of the rows that both sides have, and v1's with the one
// that v1 documents.
func (l *list) compareOrder(pairs [][2]row, rows []row) (v verdict) {
	for i := 1; i < len(pairs) && len(v.faults) == 0; i++ {
		a, b := pairs[i-1], pairs[i]
		if a[1].place > b[1].place {
			v = faulty("order", valueOf(a[0].key.id+" before "+b[0].key.id), valueOf(b[0].key.id+" before "+a[0].key.id))
		}
	}

	name, descending := strings.CutPrefix(l.order, "-")
	for i := 1; i < len(rows) && name != ""; i++ {
		before, value := memberOf(rows[i-1].value, name), memberOf(rows[i].value, name)
		by := cmp.Or(cmp.Compare(len(before), len(value)), strings.Compare(before, value))
		if by > 0 && !descending || by < 0 && descending {
			v.faults = append(v.faults, fault{"order", valueOf(name + " " + value + " after " + before), nil})
			break
		}
	}
	return v
}

// compareTotal compares v1's total with the number of rows on both sides; rows are those of
// the other one, before a page of them was taken.
func (l *list) compareTotal(v1, other reading, rows int) verdict {
	var counts []int
	if l.run.old == nil || !l.exact {
		counts = append(counts, rows)
	}
	if l.run.old != nil {
		counts = append(counts, other.total)
	}
	if !l.exact {
		counts = append(counts, len(v1.rows))
	}
	for _, n := range slices.Backward(counts) {
		if n != v1.total {
			return faulty("total", valueOf(v1.total), valueOf(n))
		}
	}
	return verdict{equal: 1}
}

// compareStatus compares how two requests were answered of which not both succeeded. For v1
// a client beyond reach is forbidden (decisions 5.2).
func (l *list) compareStatus(v1, other answer) verdict {
	said, with := failureOf(v1), failureOf(other)
	if l.run.old == nil && v1.status == http.StatusForbidden && other.status == http.StatusNotFound {
		with = said
	}
	v := rules{tolerated: l.run.Tolerate}.compare(said.value(), with.value())
	for _, a := range []answer{v1, other} {
		if len(v.faults) == 0 && a.from != nil && a.from != l.run.old {
			v.faults = failureOf(a).wrong(a)
		}
	}
	if wanted := l.status; len(v.faults) == 0 && l.run.old == nil && wanted != 0 && v1.status != wanted {
		return faulty("status", valueOf(v1.status), valueOf(wanted))
	}
	return v
}

// failure is what an error of either version says. A success is one too, of no code.
type failure struct {
	status                   int
	code, requestID, message string
	bodyStatus               string // empty for v2
}

// failureOf reads an error.
func failureOf(a answer) failure {
	f := failure{status: a.status}
	all, _ := members(a.body)
	said := jsontext.Value(a.body)
	if f.code = unquoted(all["error"]); all["error"].Kind() == '{' {
		said = all["error"]
		f.code = memberOf(said, "code")
	} else {
		f.bodyStatus = unquoted(all["status"])
	}
	f.requestID, f.message = memberOf(said, "request_id"), memberOf(said, "message")
	return f
}

// value is what errors are compared by.
func (f failure) value() jsontext.Value {
	if f.status < 400 {
		f.code = ""
	}
	return valueOf(map[string]any{"status": f.status, "error": f.code})
}

// wrong are the faults of an error's form: v1's and v2's say the id of the request and
// what went wrong.
func (f failure) wrong(a answer) (faults []fault) {
	if id := a.header.Get("X-Request-Id"); f.requestID != id {
		faults = append(faults, a.fault("request_id", valueOf(f.requestID), valueOf(id)))
	}
	if f.message == "" {
		faults = append(faults, a.fault("message", valueOf(""), nil))
	}
	if f.bodyStatus != "" && f.bodyStatus != strconv.Itoa(a.status) {
		faults = append(faults, a.fault("body.status", valueOf(f.bodyStatus), valueOf(a.status)))
	}
	return faults
}

// message is what an error says.
func message(a answer) string { return cmp.Or(failureOf(a).message, fmt.Sprintf("%.100q", a.body)) }

// named says of which object, and of which row of the list, a suspect is.
func (l *list) named(s suspect) (of Object, row string) {
	switch {
	case s.row == rowKey{}:
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
