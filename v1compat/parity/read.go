package parity

import (
	"context"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// rowKey tells a row of a list from the others: by the value of the list's key, and the
// count of rows of the same one from 0; where it has no key, by its place.
type rowKey struct {
	id  string
	nth int
}

// row is an item of a list in v1's words.
type row struct {
	key   rowKey
	value jsontext.Value
	// raw is v2's object; nil for v1.
	raw jsontext.Value
	// of is the page that the row is on.
	of answer
	// place is the row's in the list, from 0.
	place int
}

// reading is what a side showed of a list at one time.
type reading struct {
	// of is the first page, or the one that was refused.
	of answer
	// ok says that no page was refused.
	ok   bool
	rows []row
	// total is what the first page of v1 says; -1 for none.
	total int
}

// pageLimit is the page that is asked for; v1 moves it to its bound.
const pageLimit = 500

// withQuery sets parameters of a path's query.
func withQuery(path string, pairs ...string) string {
	path, query, _ := strings.Cut(path, "?")
	values, err := url.ParseQuery(query)
	if err != nil {
		values = url.Values{}
	}
	for i := 0; i+1 < len(pairs); i += 2 {
		values.Set(pairs[i], pairs[i+1])
	}
	return path + "?" + values.Encode()
}

// readV1 reads a list of a service's v1. What can be checked of a page alone is counted
// where count says so.
func (l *list) readV1(ctx context.Context, s *service, count bool) (got reading, err error) {
	got = reading{ok: true, total: -1}
	for last := false; err == nil && !last; {
		last, err = l.pageV1(ctx, s, &got, count)
	}
	l.number(got.rows)
	return got, err
}

// pageV1 adds a page of v1 to a reading: of an exact list the one that is asked for. last
// says that no page follows.
func (l *list) pageV1(ctx context.Context, s *service, got *reading, count bool) (last bool, err error) {
	asked, limit, offset := l.v1, pageLimit, len(got.rows)
	switch {
	case l.exact:
		limit, offset = l.Limit, l.Offset
	case l.Paged:
		limit = min(limit, l.MaxLimit)
		asked.path = withQuery(asked.path, "limit", strconv.Itoa(limit), "offset", strconv.Itoa(offset))
	}
	a, err := s.do(ctx, asked)
	got.ok = got.ok && a.status == l.Status
	first := got.of.from == nil
	if first || !got.ok {
		got.of = a
	}
	if err != nil || !got.ok {
		return true, err
	}
	if !l.Paged {
		got.rows = []row{{value: a.body, of: a}}
		l.checkPage(a, nil, count)
		return true, nil
	}

	body, err := members(a.body)
	var items []jsontext.Value
	total := -1
	if err != nil || json.Unmarshal(body["items"], &items) != nil || json.Unmarshal(body["total"], &total) != nil {
		l.checkPage(a, []fault{{"(body)", a.body, valueOf("a page of items")}}, count)
		return true, nil
	}
	for i, item := range items {
		got.rows = append(got.rows, row{value: item, of: a, place: offset + i})
	}
	if first {
		got.total = total
	}
	end := offset + len(items)
	body["items"] = nil
	said := map[string]any{"items": nil, "limit": limit, "offset": offset, "total": total}
	if end > offset {
		said["total"] = max(total, end)
	}
	l.checkPage(a, rules{}.compare(valueOf(body), valueOf(said)).faults, count)
	return l.exact || end == offset || end >= total, nil
}

// checkPage counts what a page alone shows to be wrong.
func (l *list) checkPage(a answer, faults []fault, count bool) {
	if !count {
		return
	}
	l.run.checkHeaders(l.operation(), a)
	if len(faults) > 0 {
		l.run.report.add(l.operation(), verdict{faults: faults}, about{object: l.of, of: []answer{a}})
	}
}

// number gives rows their keys.
func (l *list) number(rows []row) {
	times := map[string]int{}
	for i := range rows {
		r := &rows[i]
		switch {
		case !l.Paged:
		case l.key == "":
			r.key.nth = r.place
		default:
			id := memberOf(r.value, l.key)
			r.key = rowKey{id, times[id]}
			times[id]++
		}
	}
}

// readV2 reads all of v2's list, and puts its objects into v1's words.
func (l *list) readV2(ctx context.Context, count bool) (reading, error) {
	got := reading{ok: true, total: -1}
	path := l.Next
	if l.List {
		path = withQuery(path, "limit", strconv.Itoa(pageLimit))
	}
	for next := path; next != ""; {
		a, err := l.run.service.do(ctx, request{method: http.MethodGet, path: next, noKey: l.v1.noKey})
		if err != nil {
			return got, err
		}
		if a.status != http.StatusOK {
			return reading{of: a, total: -1}, nil
		}
		if got.of.from == nil {
			got.of = a
		}
		objects, cursor, faults := l.objectsIn(a)
		for _, object := range objects {
			got.rows = append(got.rows, row{raw: object, of: a})
		}
		l.checkPage(a, faults, count)
		if next = ""; cursor != "" {
			next = withQuery(path, "cursor", cursor)
		}
	}
	if l.arrange != nil {
		got.rows = l.arrange(got.rows)
	}
	return got, l.translate(ctx, &got, count)
}

// objectsIn are the objects of a page of v2; cursor is that of the one that follows, empty
// for none.
func (l *list) objectsIn(a answer) (objects []jsontext.Value, cursor string, faults []fault) {
	if !l.List {
		return []jsontext.Value{a.body}, "", nil
	}
	var body struct {
		Data *[]jsontext.Value `json:"data"`
		Page struct {
			Next string `json:"next_cursor"`
			More *bool  `json:"has_more"`
		} `json:"page"`
	}
	if json.Unmarshal(a.body, &body) != nil || body.Data == nil || body.Page.More == nil {
		return nil, "", []fault{{"(body)", valueOf("a page of data"), a.body}}
	}
	if *body.Page.More != (body.Page.Next != "") {
		faults = append(faults, fault{"page.has_more", nil, valueOf(*body.Page.More)})
	}
	return *body.Data, body.Page.Next, faults
}

// translate puts the objects of v2 into v1's words. Those that cannot be read are left out.
func (l *list) translate(ctx context.Context, got *reading, count bool) error {
	objects := make([]jsontext.Value, len(got.rows))
	for i, r := range got.rows {
		objects[i] = r.raw
	}
	expected, err := l.Expect(objects, l.run.numbers(ctx))
	if err != nil {
		return err
	}
	for i, e := range expected {
		if got.rows[i].value, err = l.withUser(e.Item); err != nil {
			return err
		}
		var faults []fault
		for field, what := range e.Faults {
			faults = append(faults, fault{field, nil, valueOf(what)})
		}
		if count && len(faults) > 0 {
			l.run.report.add(l.operation(), verdict{faults: faults}, about{object: l.of, of: []answer{got.rows[i].of}})
		}
	}
	got.rows = slices.DeleteFunc(got.rows, func(r row) bool { return r.value == nil })
	for i := range got.rows {
		got.rows[i].place = i
	}
	l.number(got.rows)
	return nil
}

// mailUser is the member of v1's mails that v2 has in the path alone.
const mailUser = "user_infima_id"

// withUser puts the user that mails are of into an item of v2.
func (l *list) withUser(item jsontext.Value) (jsontext.Value, error) {
	if item == nil || !l.ofMails() {
		return item, nil
	}
	all, err := members(item)
	if err != nil {
		return nil, err
	}
	all[mailUser] = valueOf(strings.ToLower(l.of.V1))
	return valueOf(all), nil
}

// ofMails reports whether the list is of a user's mails.
func (l *list) ofMails() bool { return l.Reading.ID == "sentemails" && l.of.Kind == "user" }
