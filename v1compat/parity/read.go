package parity

import (
	"context"
	"net/http"
	"slices"
	"strconv"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// rowKey tells a row of a list from the others.
type rowKey struct {
	// id is the value of the list's key; empty where it has none.
	id string
	// nth counts rows of the same id, from 0; without ids it is the place in the list.
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
	// part says that rows are left out.
	part bool
}

// page is one page of v1.
type page struct {
	of     answer
	rows   []row
	total  int // -1 where the page has none
	last   bool
	faults []fault
}

// readV1 reads a list of a service's v1; a sample of its rows where sample is not 0. What
// can be checked of a page alone is counted where count says so.
func (c *comparison) readV1(ctx context.Context, s *service, sample int, count bool) (reading, error) {
	got := reading{total: -1}
	take := func(limit, offset int) (page, error) {
		p, err := c.pageV1(ctx, s, limit, offset)
		if err != nil {
			return p, err
		}
		if count {
			c.countPage(p.of, p.faults)
		}
		got.ok = p.of.status == c.list.Status
		if got.of.from == nil || !got.ok {
			got.of, got.total = p.of, p.total
		}
		return p, nil
	}

	p, err := take(c.list.limit, 0)
	got.rows = p.rows
	if sample > 0 && p.total > sample {
		got.part = true
		got.rows = nil
		for i := range sample {
			offset := i * (p.total - 1) / max(sample-1, 1)
			if offset < len(p.rows) {
				got.rows = append(got.rows, p.rows[offset])
				continue
			}
			one, err := take(1, offset)
			if err != nil || !got.ok {
				return got, err
			}
			got.rows = append(got.rows, one.rows...)
		}
	}
	for err == nil && got.ok && !got.part && !p.last && c.list.exact == nil {
		p, err = take(c.list.limit, len(got.rows))
		got.rows = append(got.rows, p.rows...)
	}
	c.list.number(got.rows)
	return got, err
}

// pageV1 reads a page of v1, or the one that is asked for exactly.
func (c *comparison) pageV1(ctx context.Context, s *service, limit, offset int) (page, error) {
	l := c.list
	r := request{method: l.Method, path: l.v1, body: l.body}
	switch {
	case l.exact != nil:
		r.path, limit, offset = l.exact.path, l.exact.limit, l.exact.offset
	case l.Paged:
		r.path = withQuery(l.v1, "limit", strconv.Itoa(limit), "offset", strconv.Itoa(offset))
	}
	a, err := s.do(ctx, r)
	p := page{of: a, total: -1, last: true}
	if err != nil || a.status != l.Status {
		return p, err
	}
	if !l.Paged {
		p.rows = []row{{value: a.body, of: a}}
		return p, nil
	}

	var body struct {
		Items  *[]jsontext.Value         `json:"items"`
		Limit  *int                      `json:"limit"`
		Offset *int                      `json:"offset"`
		Total  *int                      `json:"total"`
		More   map[string]jsontext.Value `json:",inline"`
	}
	if err := json.Unmarshal(a.body, &body); err != nil || body.Items == nil {
		p.faults = append(p.faults, fault{"(body)", a.body, text("a page of items")})
		return p, nil
	}
	p.echo("limit", body.Limit, min(max(limit, 1), l.most))
	p.echo("offset", body.Offset, offset)
	for name, value := range body.More {
		p.faults = append(p.faults, fault{name, value, nil})
	}
	for i, item := range *body.Items {
		p.rows = append(p.rows, row{value: item, of: a, place: offset + i})
	}
	end := offset + len(p.rows)
	if body.Total == nil || *body.Total < end && len(p.rows) > 0 {
		p.faults = append(p.faults, fault{"total", numberOr(body.Total), number(end)})
	}
	if body.Total != nil {
		p.total = *body.Total
	}
	p.last = len(p.rows) == 0 || end >= p.total
	return p, nil
}

// echo adds a fault where a page does not say how it was asked for.
func (p *page) echo(name string, said *int, asked int) {
	if said == nil || *said != asked {
		p.faults = append(p.faults, fault{name, numberOr(said), number(asked)})
	}
}

func numberOr(n *int) jsontext.Value {
	if n == nil {
		return nil
	}
	return number(*n)
}

// countPage counts what a page alone shows to be wrong.
func (c *comparison) countPage(a answer, faults []fault) {
	c.run.checkHeaders(c.list.operation(), a)
	if len(faults) > 0 {
		c.run.report.add(c.list.operation(), verdict{faults: faults}, about{object: c.list.of, of: []answer{a}})
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

// objectsAt is how many objects of v2 a page may hold.
const objectsAt = "500"

// readV2 reads all of v2's list, and puts its objects into v1's words.
func (c *comparison) readV2(ctx context.Context, count bool) (reading, error) {
	got := reading{ok: true, total: -1}
	for cursor := ""; ; {
		a, next, err := c.pageV2(ctx, &got, cursor, count)
		if err != nil {
			return got, err
		}
		if a.status != http.StatusOK {
			return reading{of: a, total: -1}, nil
		}
		if got.of.from == nil {
			got.of = a
		}
		if next == nil {
			break
		}
		cursor = *next
	}
	if c.list.arrange != nil {
		got.rows = c.list.arrange(got.rows)
	}
	return got, c.translate(ctx, &got, count)
}

// pageV2 adds a page of objects to a reading; next is the cursor of the one that follows.
func (c *comparison) pageV2(
	ctx context.Context, got *reading, cursor string, count bool,
) (a answer, next *string, err error) {
	path := c.list.v2
	if c.list.List {
		path = withQuery(path, "limit", objectsAt)
	}
	if cursor != "" {
		path = withQuery(path, "cursor", cursor)
	}
	a, err = c.run.service.do(ctx, get(path))
	if err != nil {
		return a, nil, err
	}
	var faults []fault
	switch {
	case a.status != http.StatusOK:
	case !c.list.List:
		got.rows = []row{{raw: a.body, of: a}}
	default:
		var body struct {
			Data *[]jsontext.Value `json:"data"`
			Page *struct {
				Next *string `json:"next_cursor"`
				More *bool   `json:"has_more"`
			} `json:"page"`
		}
		err := json.Unmarshal(a.body, &body)
		if err != nil || body.Data == nil || body.Page == nil || body.Page.More == nil {
			faults = append(faults, fault{"(body)", text("a page of data"), a.body})
			break
		}
		if next = body.Page.Next; *body.Page.More != (next != nil) {
			faults = append(faults, fault{"page.has_more", nil, boolean(*body.Page.More)})
		}
		for _, object := range *body.Data {
			got.rows = append(got.rows, row{raw: object, of: a})
		}
	}
	if count {
		c.countPage(a, faults)
	}
	return a, next, nil
}

func boolean(b bool) jsontext.Value { return jsontext.Value(strconv.FormatBool(b)) }

// translate puts the objects of v2 into v1's words. Those that cannot be read are left out.
func (c *comparison) translate(ctx context.Context, got *reading, count bool) error {
	objects := make([]jsontext.Value, len(got.rows))
	for i, r := range got.rows {
		objects[i] = r.raw
	}
	expected, err := c.list.Expect(objects, c.run.numbers(ctx))
	if err != nil {
		return err
	}
	for i, e := range expected {
		if got.rows[i].value, err = c.list.withKnown(e.Item); err != nil {
			return err
		}
		for field, what := range e.Faults {
			if count {
				c.run.report.add(c.list.operation(), verdict{faults: []fault{{field, nil, text(what)}}},
					about{object: c.list.of, of: []answer{got.rows[i].of}})
			}
		}
	}
	got.rows = slices.DeleteFunc(got.rows, func(r row) bool { return r.value == nil })
	for i := range got.rows {
		got.rows[i].place = i
	}
	c.list.number(got.rows)
	return nil
}

// withKnown puts the members that are known into an item.
func (l *list) withKnown(item jsontext.Value) (jsontext.Value, error) {
	if item == nil || len(l.known) == 0 {
		return item, nil
	}
	all, err := members(item)
	if err != nil {
		return nil, err
	}
	for name, value := range l.known {
		all[name] = value
	}
	return json.Marshal(all, json.Deterministic(true))
}
