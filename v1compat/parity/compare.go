package parity

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"
)

const (
	// maxReadings bounds how often differing values are read again. A difference is
	// reported once it was the same in confirmations readings, or after the last one.
	maxReadings, confirmations = 8, 3
	// firstPause is the pause before the second of these readings. Each later pause is twice as long.
	firstPause = 100 * time.Millisecond
)

// subject is what a finding is about: a row, identified by the value of the list's key and the number of rows before it
// with the same value, or by its offset alone; or a property of the list.
type subject struct {
	id  string
	nth int
}

// The properties of a list, as subjects: its order, its total, the status of the response, and the form of a page. nth
// is negative, as it is for no row.
var ofOrder, ofTotal, ofStatus, ofPage = subject{nth: -1}, subject{nth: -2}, subject{nth: -3}, subject{nth: -4}

// comparison is how two readings compare. If a side refused the query, the only finding is about the status.
type comparison struct {
	v1, other reading
	findings  map[subject]finding
	pairs     [][2]row // the rows that both have: v1's and the other
}

func (c comparison) refused() bool { return c.v1.refused || c.other.refused }

// compare reads the query on both sides, and again up to maxReadings times while a subject differs. It reports a
// subject when it is equal or its difference is confirmed, and what is never confirmed as unsettled. It starts over if
// the query becomes refused, or is no longer refused. It returns the rows that both sides have.
func (q *query) compare(ctx context.Context) (pairs [][2]row, err error) {
	refused, open := false, map[subject]finding{} // open has the subjects to report, with their last findings
	for n := 0; n == 0 || len(open) > 0 && n <= maxReadings; n++ {
		if n > 1 { // the second reading follows the first at once
			if err := q.Wait(ctx, firstPause<<(n-2)); err != nil {
				return pairs, err
			}
		}
		c, err := q.read(ctx, n)
		if err != nil {
			return pairs, err
		}
		if n == 0 || refused != c.refused() {
			refused, pairs = c.refused(), c.pairs
			clear(open)
			for s := range c.findings {
				open[s] = finding{}
			}
			q.reportPages(ctx, c)
		}
		for s, last := range open { // not the subjects that are new since the first reading
			f := c.findings[s] // zero, without differences, if the subject is gone
			if reflect.DeepEqual(f.mismatches, last.mismatches) {
				f.confirmed += last.confirmed // the same in a row
			}
			open[s] = f
			if !f.differs() || f.confirmed == confirmations {
				q.add(ctx, s, f)
				delete(open, s)
			}
		}
	}
	for s, f := range open {
		f.unsettled = true
		q.add(ctx, s, f)
	}
	return pairs, nil
}

// read makes reading n of the query. Reading 0 reads v1 and then the other side, and compares a sample of the rows, or
// all rows of a single page. A later one reads v1 before and after the other side, and compares all rows with both
// readings of v1. A subject then differs only if both comparisons differ; if they are the same, that confirms it once.
func (q *query) read(ctx context.Context, n int) (comparison, error) {
	v1, err := q.readV1(ctx, q.v1)
	if err != nil {
		return comparison{}, err
	}
	other, err := q.readOther(ctx)
	if err != nil {
		return comparison{}, err
	}
	if n == 0 {
		sample := q.Sample
		if q.onePage {
			sample = 0
		}
		return q.compareReadings(v1, other, sample), nil
	}
	v1After, err := q.readV1(ctx, q.v1)
	if err != nil {
		return comparison{}, err
	}
	before, after := q.compareReadings(v1, other, 0), q.compareReadings(v1After, other, 0)
	switch { // v1 refused one of its readings only: return the refusal, unconfirmed
	case before.refused() && !after.refused():
		return before, nil
	case after.refused() && !before.refused():
		return after, nil
	}
	for s, f := range after.findings {
		earlier := before.findings[s] // zero, without differences, for a new subject
		switch {
		case !earlier.differs():
			f = earlier
		case s == ofTotal && v1.total != v1After.total &&
			other.total >= min(v1.total, v1After.total) && other.total <= max(v1.total, v1After.total):
			f = finding{equal: 1} // v1 had the other total in between
		case reflect.DeepEqual(f.mismatches, earlier.mismatches):
			f.confirmed = 1
		}
		after.findings[s] = f
	}
	return after, nil
}

// reportPages reports the findings about single pages and, between two services, about headers. It records in
// run.succeeded that v1 did not refuse the query.
func (q *query) reportPages(ctx context.Context, c comparison) {
	if !c.v1.refused {
		q.succeeded.Store(true)
	}
	if q.twoServices() {
		q.compareHeaders(c.v1.answer, c.other.answer)
	}
	for _, f := range slices.Concat(c.v1.checks, c.other.checks) {
		q.add(ctx, ofPage, f)
	}
}

// add reports a finding about s. In a finding that differs, it names the row of a list: by its object if the list's key
// is an id, otherwise by the value of the key, or by the offset. A row that is identified by its content gets no name.
// Each mismatch is reported with its object, by the ids of v1 and v2.
func (q *query) add(ctx context.Context, s subject, f finding) {
	f.object = q.object
	switch {
	case !f.differs(), s.nth < 0, !q.List: // equal, or not about a row of a list
	case q.kind != "":
		id, _, _ := strings.Cut(s.id, " ") // identify may add the content
		f.object = Object{Kind: q.kind, V1: id}
		if s.nth > 0 { // the list has the object several times
			f.row = fmt.Sprintf("%d times", s.nth+1)
		}
	case q.key != "":
		f.row = q.key + " " + s.id
	case s.id == "":
		f.row = fmt.Sprintf("offset %d", s.nth)
	}
	for i := range f.mismatches {
		m := &f.mismatches[i]
		m.object = q.withV2(ctx, cmp.Or(m.object, f.object))
	}
	q.report.add(q.operation(), f)
}

// compareReadings compares two readings: up to sample of the rows that both have, or all if sample is 0, the rows that
// only one has, and the order and total of the list. If either side refused the query, it compares only the status.
func (q *query) compareReadings(v1, other reading, sample int) comparison {
	c := comparison{v1: v1, other: other, findings: map[subject]finding{}}
	if c.refused() {
		c.findings[ofStatus] = q.compareStatus(v1.answer, other.answer)
		return c
	}
	byContent := len(v1.rows) != len(other.rows) // a row more or less shifts the offsets of all rows after it
	q.identify(v1.rows, byContent)
	q.identify(other.rows, byContent)

	unpaired := map[subject]row{}
	for _, r := range other.rows {
		unpaired[r.subject] = r
	}
	for _, r := range v1.rows {
		if match, ok := unpaired[r.subject]; ok {
			c.pairs = append(c.pairs, [2]row{r, match})
		} else {
			c.findings[r.subject] = mismatched("surplus row", r.value, nil, r.page, other.answer)
		}
		delete(unpaired, r.subject)
	}
	for s, r := range unpaired {
		c.findings[s] = mismatched("missing row", nil, r.value, v1.answer, r.page)
	}
	for _, i := range spread(len(c.pairs), sample) {
		a, b := c.pairs[i][0], c.pairs[i][1]
		c.findings[a.subject] = q.rules.compare(a.value, b.value, a.page, b.page)
	}
	c.findings[ofOrder] = q.compareOrder(c)
	if q.List {
		c.findings[ofTotal] = q.compareTotal(c)
	}
	return c
}

// identify sets the index and the subject of rows. A row is identified by the value of the list's key or, without a
// key, by its offset or, if byContent, by its content. If q.Email is set, the rows are of several users and the key is
// the user: by content then means by user and content. The only row of a query that is not paged has the zero subject.
func (q *query) identify(rows []row, byContent bool) {
	counts := map[string]int{}
	if q.onePage && !byContent {
		counts[""] = q.Offset // of the first row; the next ones count on
	}
	for i := range rows {
		r := &rows[i]
		r.index = i
		id := ""
		switch {
		case !q.Paged:
			continue
		case q.Email != "" && byContent: // a user may have several rows
			id = memberOf(r.value, q.key) + " " + q.rules.content(r.value)
		case q.key != "":
			id = memberOf(r.value, q.key)
		case byContent:
			id = q.rules.content(r.value)
		}
		r.subject = subject{id, counts[id]}
		counts[id]++
	}
}

// spread returns up to most indexes below n, spread evenly from the first to the last; all if most is 0.
func spread(n, most int) (indexes []int) {
	if most == 0 {
		most = n
	}
	most = min(n, most)
	for i := range most {
		indexes = append(indexes, i*(n-1)/max(most-1, 1))
	}
	return indexes
}

// compareOrder compares the order of the paired rows, except where v2 does not define it (isTie), and checks that v1's
// rows are sorted by the member that v1 documents. It reports the first violation of each.
func (q *query) compareOrder(c comparison) finding {
	f := finding{answers: []answer{c.v1.answer, c.other.answer}}
	for i := 1; i < len(c.pairs) && !f.differs(); i++ {
		if a, b := c.pairs[i-1], c.pairs[i]; a[1].index > b[1].index && !q.isTie(a[0], b[0]) {
			first, second := a[0].subject.id, b[0].subject.id
			f.check("order", valueOf(first+" before "+second), valueOf(second+" before "+first), false)
		}
	}

	name, descending := strings.CutPrefix(q.order, "-")
	for i := 1; i < len(c.v1.rows) && name != ""; i++ {
		last, next := memberOf(c.v1.rows[i-1].value, name), memberOf(c.v1.rows[i].value, name)
		order := cmp.Or(cmp.Compare(len(last), len(next)), strings.Compare(last, next)) // by length first, for numbers
		if descending {
			order = -order
		}
		if order > 0 {
			f.check("order", valueOf(name+" "+next+" after "+last), nil, false)
			break
		}
	}
	return f
}

// isTie reports whether two rows of several users' lists have the same time, so that v2 does not define their order.
func (q *query) isTie(a, b row) bool {
	name := strings.TrimPrefix(q.order, "-")
	return q.Email != "" && memberOf(a.value, name) == memberOf(b.value, name)
}

// compareTotal compares v1's total with the other side's, and with both numbers of rows if all rows were read.
func (q *query) compareTotal(c comparison) finding {
	counts := []int{c.other.total}
	if !q.onePage {
		counts = []int{len(c.v1.rows), c.other.total, len(c.other.rows)}
	}
	for _, n := range counts {
		if n != c.v1.total {
			return mismatched("total", valueOf(c.v1.total), valueOf(n), c.v1.answer, c.other.answer)
		}
	}
	return finding{equal: 1}
}

// compareStatus compares the status and the code of two answers, of which at least one is an error. v1 may return 403
// where v2 returns 404: for a client that is not accessible (decisions 5.2). If the responses agree, it also checks the
// form of the service's errors, not of an old service's, and between v1 and v2 that the status is q.status, if that is
// set.
func (q *query) compareStatus(v1, other answer) finding {
	want := errorValue(other)
	if !q.twoServices() && v1.status == http.StatusForbidden && other.status == http.StatusNotFound {
		want = errorValue(v1)
	}
	f := rules{tolerated: q.Tolerate}.compare(errorValue(v1), want, v1, other)
	for _, a := range []answer{v1, other} {
		if !f.differs() && a.from == q.service {
			f.checkError(a)
		}
	}
	if !f.differs() && !q.twoServices() && q.status != 0 {
		f.check("status", valueOf(v1.status), valueOf(q.status), v1.status == q.status)
	}
	return f
}

// errorOf returns the members of an error as v1 names them: v2's has them in its member error, with code for error.
func errorOf(a answer) map[string]jsontext.Value {
	body := members(a.body)
	if v2 := members(body["error"]); v2 != nil {
		v2["error"] = v2["code"]
		return v2
	}
	return body
}

// message returns the message of an error, or the start of the body, quoted, if it has none.
func message(a answer) string {
	return cmp.Or(textOf(errorOf(a)["message"]), fmt.Sprintf("%.100q", a.body))
}

// errorValue returns the JSON by which errors are compared: status and code. A success has no code.
func errorValue(a answer) jsontext.Value {
	code := ""
	if a.status >= http.StatusBadRequest {
		code = textOf(errorOf(a)["error"])
	}
	return valueOf(map[string]any{"status": a.status, "error": code})
}

// checkError checks the form of an error: it has a message and the request's id, and in v1 the status.
func (f *finding) checkError(a answer) {
	e, id := errorOf(a), a.header.Get("X-Request-Id")
	f.checkAnswer(a, "request_id", e["request_id"], valueOf(id), textOf(e["request_id"]) == id)
	f.checkAnswer(a, "message", e["message"], nil, textOf(e["message"]) != "")
	if status := e["status"]; status != nil {
		f.checkAnswer(a, "body.status", status, valueOf(a.status), textOf(status) == fmt.Sprint(a.status))
	}
}
