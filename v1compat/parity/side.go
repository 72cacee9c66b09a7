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

	"partnerapi/v1compat"
	"partnerapi/v2/op"
)

// list is what one route of v1 shows of one parent, and where v2 has the same.
type list struct {
	reading *v1compat.Reading
	spec
	// v1 and v2 are the paths, with queries that have filters only.
	v1, v2 string
	// exact is the one page of v1 that is asked for; nil for all.
	exact *exactPage
	// body is that of v1's request, where it has one.
	body string
	// known are members of v1's items that v2 has in the request in their place.
	known map[string]jsontext.Value
}

// exactPage is a page of v1 as it was asked for once.
type exactPage struct {
	path          string
	limit, offset int // that the path asks for
}

// spec says of a route how its items are paired and ordered.
type spec struct {
	// key is the member by which v1's items are told apart; empty where they are by
	// their place.
	key string
	// limit is the page that is asked for, and most what v1 moves higher ones to.
	limit, most int
	// order is the member that v1's items are ordered by, with a leading minus sign where
	// the first is the latest; empty where no member shows the order.
	order string
	// sort is v2's query for v1's order.
	sort string
	// arrange puts all of v2's objects into v1's order; nil where v2 has that order.
	arrange func([]jsontext.Value) []jsontext.Value
}

// operation is the list's name in reports.
func (l *list) operation() string { return operationOf(l.reading) }

func operationOf(r *v1compat.Reading) string {
	return r.Method + " /v1" + op.Braced(r.Path)
}

// row is an item in v1's words.
type row struct {
	key   string
	value jsontext.Value
	// raw is v2's object; nil for v1.
	raw jsontext.Value
	// page is the mark of the page that the row is on, and of is its answer.
	page string
	of   answer
	// place is the row's in the list, from 0. Pages of v2 do not know it.
	place int
}

// page is a page of a list.
type page struct {
	of     answer
	rows   []row
	total  int // -1 where the page has none
	next   string
	last   bool
	faults []fault
}

// side is one of the two that are compared. A page's mark is what the page before
// says; the first one's is empty.
type side interface {
	page(ctx context.Context, mark string) (page, error)
}

// oldSide reads v1 of a service. A mark is the offset, and may have a limit after a
// colon.
type oldSide struct {
	*list
	service *service
}

func (s oldSide) page(ctx context.Context, mark string) (page, error) {
	limit, offset := s.limit, 0
	if mark != "" {
		at, most, _ := strings.Cut(mark, ":")
		offset, _ = strconv.Atoi(at)
		if n, err := strconv.Atoi(most); err == nil {
			limit = n
		}
	}
	r := request{method: s.reading.Method, path: s.v1, body: s.body}
	switch {
	case s.exact != nil:
		r.path, limit, offset = s.exact.path, s.exact.limit, s.exact.offset
	case s.reading.Paged:
		r.path = withQuery(s.v1, "limit", strconv.Itoa(limit), "offset", strconv.Itoa(offset))
	}
	a, err := s.service.do(ctx, r)
	p := page{of: a, total: -1, last: true}
	if err != nil || a.status != s.reading.Status {
		return p, err
	}
	if !s.reading.Paged {
		p.rows = []row{{value: a.body, page: mark, of: a}}
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
	p.faults = slices.Concat(
		echo("limit", body.Limit, min(max(limit, 1), s.most)), echo("offset", body.Offset, offset))
	for name, value := range body.More {
		p.faults = append(p.faults, fault{name, value, nil})
	}
	for i, item := range *body.Items {
		p.rows = append(p.rows, row{key: s.keyOf(item, offset+i), value: item, page: mark, of: a, place: offset + i})
	}
	end := offset + len(p.rows)
	if body.Total == nil || *body.Total < end && len(p.rows) > 0 {
		p.faults = append(p.faults, fault{"total", numberOr(body.Total), number(end)})
	}
	if body.Total != nil {
		p.total = *body.Total
	}
	p.last = len(p.rows) == 0 || end >= p.total
	p.next = strconv.Itoa(end)
	return p, nil
}

// echo is a fault where a page does not say how it was asked for.
func echo(name string, said *int, asked int) []fault {
	if said != nil && *said == asked {
		return nil
	}
	return []fault{{name, numberOr(said), number(asked)}}
}

func numberOr(n *int) jsontext.Value {
	if n == nil {
		return nil
	}
	return number(*n)
}

// keyOf tells v1's item, at an offset of its list, from the list's others.
func (l *list) keyOf(item jsontext.Value, offset int) string {
	if l.key == "" {
		return "#" + strconv.Itoa(offset)
	}
	return memberOf(item, l.key)
}

// memberOf is the text of a member of an object; empty where there is none.
func memberOf(object jsontext.Value, name string) string {
	all, err := members(object)
	if err != nil {
		return ""
	}
	value := all[name]
	var s string
	if json.Unmarshal(value, &s) == nil {
		return s
	}
	return string(value)
}

// newSide reads v2, and puts its objects into v1's words. A mark is the cursor.
type newSide struct {
	*list
	run *run
}

// objectsAt is how many objects of v2 a page may hold.
const objectsAt = 500

func (s newSide) page(ctx context.Context, mark string) (page, error) {
	p, objects, err := s.read(ctx, mark)
	if err != nil || p.of.status != http.StatusOK {
		return p, err
	}
	for s.arrange != nil && !p.last {
		more, rest, err := s.read(ctx, p.next)
		if err != nil || more.of.status != http.StatusOK {
			return more, err
		}
		p.last, p.next = more.last, more.next
		p.faults = append(p.faults, more.faults...)
		objects = append(objects, rest...)
	}
	if s.arrange != nil {
		objects = s.arrange(objects)
	}
	return p, s.translate(ctx, &p, mark, objects)
}

// read reads a page of objects.
func (s newSide) read(ctx context.Context, mark string) (page, []jsontext.Value, error) {
	path := s.v2
	if s.reading.List {
		query := []string{"limit", strconv.Itoa(objectsAt)}
		if mark != "" {
			query = append(query, "cursor", mark)
		}
		path = withQuery(path, query...)
	}
	a, err := s.run.service.do(ctx, get(path))
	p := page{of: a, total: -1, last: true}
	if err != nil || a.status != http.StatusOK {
		return p, nil, err
	}
	if !s.reading.List {
		return p, []jsontext.Value{a.body}, nil
	}

	var body struct {
		Data *[]jsontext.Value `json:"data"`
		Page *struct {
			Next *string `json:"next_cursor"`
			More *bool   `json:"has_more"`
		} `json:"page"`
	}
	err = json.Unmarshal(a.body, &body)
	if err != nil || body.Data == nil || body.Page == nil || body.Page.More == nil {
		p.faults = append(p.faults, fault{"(body)", text("a page of data"), a.body})
		return p, nil, nil
	}
	if *body.Page.More != (body.Page.Next != nil) {
		p.faults = append(p.faults, fault{"page.has_more", nil, fmtBool(*body.Page.More)})
	}
	if body.Page.Next != nil {
		p.last, p.next = false, *body.Page.Next
	}
	return p, *body.Data, nil
}

func fmtBool(b bool) jsontext.Value { return jsontext.Value(strconv.FormatBool(b)) }

// translate makes the page's rows from v2's objects.
func (s newSide) translate(ctx context.Context, p *page, mark string, objects []jsontext.Value) error {
	expected, err := s.reading.Expect(objects, s.run.numbers(ctx))
	if err != nil {
		return err
	}
	for i, e := range expected {
		for field, what := range e.Faults {
			p.faults = append(p.faults, fault{field, nil, text(what)})
		}
		if e.Item == nil {
			continue
		}
		item, err := s.withKnown(e.Item)
		if err != nil {
			return err
		}
		p.rows = append(p.rows, row{key: s.keyOf(item, i), value: item, raw: objects[i], page: mark, of: p.of})
	}
	if !s.reading.Paged {
		for i := range p.rows {
			p.rows[i].key = ""
		}
	}
	return nil
}

// withKnown puts the members that are known into an item.
func (l *list) withKnown(item jsontext.Value) (jsontext.Value, error) {
	if len(l.known) == 0 {
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

// withQuery adds parameters to a path, which may have some.
func withQuery(path string, pairs ...string) string {
	values := url.Values{}
	for i := 0; i+1 < len(pairs); i += 2 {
		values.Set(pairs[i], pairs[i+1])
	}
	separator := "?"
	if strings.Contains(path, "?") {
		separator = "&"
	}
	return path + separator + values.Encode()
}
