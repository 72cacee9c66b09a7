package parity

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"partnerapi/domain"
	"partnerapi/v1compat"
)

// reading is one side's answer to a query at one time, in v1's form.
type reading struct {
	answer  // the first page, or the one that was refused
	refused bool
	rows    []row
	// total is the number of rows in the whole list; -1 if unknown.
	total int
	// checks are findings about single pages: their form and their headers.
	checks []finding
}

// row is an item of a list.
type row struct {
	subject subject
	index   int
	value   jsontext.Value
	page    answer
	of      string // v1's id of the object whose list it is in, where the list has one
}

// pageLimit is the requested size of pages; a list of v1 may have a smaller maximum.
const pageLimit = "500"

// readV1 reads the query from a service's v1.
func (q *query) readV1(ctx context.Context, s *service) (reading, error) {
	return q.readPages(ctx, s, q.request, q.Status, q.addV1)
}

// readOther reads the other side: the new service's v1 if two services are compared, otherwise v2. If the translators
// refuse the request, there is no request of v2 to make: the reading is their refusal.
func (q *query) readOther(ctx context.Context) (reading, error) {
	switch {
	case q.twoServices():
		return q.readV1(ctx, q.service)
	case q.Refusal != nil:
		return refusedWith(*q.Refusal), nil
	}
	return q.readV2(ctx)
}

// refusedWith returns the reading of a side that refused the query with the error.
func refusedWith(e v1compat.Error) reading {
	return reading{refused: true, answer: answer{status: e.Status, body: valueOf(e)}}
}

// readV2 reads the object or the whole list of v2, puts it in v1's order and translates it. If only the page of the
// request is compared, it returns the rows of that page, and the total of the list.
func (q *query) readV2(ctx context.Context) (reading, error) {
	first := request{method: http.MethodGet, path: q.Next, noKey: q.request.noKey}
	if q.List {
		first.path = withQuery(first.path, "limit", pageLimit)
	}
	read := q.readList
	if q.Email != "" {
		read = q.readByEmail
	}
	got, err := read(ctx, first)
	if err != nil || got.refused {
		return got, err
	}
	if q.arrange != nil {
		q.arrange(got.rows)
	}
	err = q.translate(ctx, &got)
	got.total = len(got.rows)
	if q.onePage && q.Paged {
		got.rows = got.rows[min(q.Offset, got.total):]
		got.rows = got.rows[:min(q.Limit, len(got.rows))]
	}
	return got, err
}

// readList reads one list of v2, and sets each row's of to the id of q.object, in lower case, as v1 writes UUIDs.
func (q *query) readList(ctx context.Context, first request) (reading, error) {
	got, err := q.readPages(ctx, q.service, first, http.StatusOK, q.addV2)
	for i := range got.rows {
		got.rows[i].of = strings.ToLower(q.object.V1)
	}
	return got, err
}

// readByEmail finds v2's users with the address q.Email, reads the list of each by template, where AnyUser is the user,
// and merges the lists, newest row first. As v1 does, it returns 404 for an invalid address, or one of no user.
func (q *query) readByEmail(ctx context.Context, template request) (reading, error) {
	search := template
	search.path = withQuery(withQuery("/v2/users", "email", q.Email), "limit", pageLimit)
	users, err := q.readPages(ctx, q.service, search, http.StatusOK, q.addV2)
	noUser, invalid := len(users.rows) == 0 && !users.refused, users.status == http.StatusBadRequest
	switch {
	case err == nil && (noUser || invalid):
		return refusedWith(v1compat.Error{Status: http.StatusNotFound, Error: domain.NotFound}), nil
	case err != nil || users.refused:
		return users, err
	}
	all := reading{answer: users.answer, checks: users.checks}
	for _, u := range users.rows {
		id, err := domain.ParseID[domain.UserKind](memberOf(u.value, "id"))
		if err != nil {
			return all, fmt.Errorf("the id of a user: %w", err)
		}
		list := template
		list.path = strings.ReplaceAll(template.path, v1compat.AnyUser, id.String())
		got, err := q.readPages(ctx, q.service, list, http.StatusOK, q.addV2)
		if err != nil || got.refused {
			return got, err
		}
		for _, r := range got.rows {
			r.of = id.UUID()
			all.rows = append(all.rows, r)
		}
		all.checks = append(all.checks, got.checks...)
	}
	slices.SortStableFunc(all.rows, func(a, b row) int {
		return strings.Compare(memberOf(b.value, "sent_at"), memberOf(a.value, "sent_at"))
	})
	return all, nil
}

// readPages reads a page and those that follow it. add adds a page to the reading, and returns the path of the next
// one; empty after the last. If a page's status differs from status, the reading ends with that page, as refused.
func (q *query) readPages(
	ctx context.Context, s *service, page request, status int, add func(*reading, answer) (next string),
) (reading, error) {
	got := reading{total: -1} // unknown, until add sets it
	for page.path != "" {
		a, err := s.do(ctx, page)
		if err != nil {
			return got, err
		}
		got.refused = a.status != status
		if got.from == nil || got.refused { // the first page, or the refused one
			got.answer = a
		}
		if got.refused {
			break
		}
		if s == q.service { // an old service need not have these headers
			got.checks = append(got.checks, checkHeaders(a))
		}
		page.path = add(&got, a)
	}
	return got, nil
}

// addV1 adds the rows of a page of v1, and a finding about its form (limit, offset and total). It returns the path of
// the next page; empty after the last or a malformed one, and if only this page is compared.
func (q *query) addV1(got *reading, a answer) (next string) {
	if !q.Paged {
		got.rows = []row{{value: a.body, page: a}}
		return ""
	}
	body := members(a.body)
	var items []jsontext.Value
	var total int
	if json.Unmarshal(body["items"], &items) != nil || json.Unmarshal(body["total"], &total) != nil {
		got.checks = append(got.checks, mismatched(wholeBody, a.body, valueOf("a page of items"), a))
		return ""
	}
	if got.total < 0 { // the total of the list is that of its first page
		got.total = total
	}
	offset := q.Offset + len(got.rows)
	end := offset + len(items)
	for _, item := range items {
		got.rows = append(got.rows, row{value: item, page: a})
	}
	delete(body, "items")
	want := map[string]int{"limit": q.Limit, "offset": offset, "total": total}
	if end > offset { // a page with rows has a total that includes them
		want["total"] = max(total, end)
	}
	form := rules{}.compare(valueOf(body), valueOf(want), a)
	form.equal = 0 // only mismatches of the form are reported
	got.checks = append(got.checks, form)
	if q.onePage || end == offset || end >= total {
		return ""
	}
	return withQuery(a.path, "offset", strconv.Itoa(end))
}

// addV2 adds the objects of a page of v2, which are not translated, and findings about its form. If the query is not of
// a list, it adds the whole body. It returns the path of the next page; empty after the last or a malformed one.
func (q *query) addV2(got *reading, a answer) (next string) {
	if !q.List {
		got.rows = []row{{value: a.body, page: a}}
		return ""
	}
	var body struct {
		Data *[]jsontext.Value `json:"data"`
		Page struct {
			Next string `json:"next_cursor"`
			More *bool  `json:"has_more"`
		} `json:"page"`
	}
	if json.Unmarshal(a.body, &body) != nil || body.Data == nil || body.Page.More == nil {
		got.checks = append(got.checks, mismatched(wholeBody, valueOf("a page of data"), a.body, a))
		return ""
	}
	if *body.Page.More != (body.Page.Next != "") {
		got.checks = append(got.checks, mismatched("page.has_more", nil /* v1 has none */, valueOf(*body.Page.More), a))
	}
	for _, object := range *body.Data {
		got.rows = append(got.rows, row{value: object, page: a})
	}
	if body.Page.Next == "" {
		return ""
	}
	return withQuery(a.path, "cursor", body.Page.Next)
}

// translate replaces v2's objects by v1's items. It drops objects that cannot be read, with a finding.
func (q *query) translate(ctx context.Context, got *reading) error {
	objects := make([]jsontext.Value, len(got.rows))
	for i, r := range got.rows {
		objects[i] = r.value
	}
	expected, err := q.Expect(objects, q.release, q.numbers(ctx))
	if err != nil {
		return err
	}
	for i, e := range expected {
		r := &got.rows[i]
		r.value = e.Item
		if e.Item != nil && q.Translator.ID == "sentemails" {
			all := members(e.Item) // without the user, whom v2 has in the path only
			all[userOfMails] = valueOf(r.of)
			r.value = valueOf(all)
		}
		for _, field := range slices.Sorted(maps.Keys(e.Faults)) {
			got.checks = append(got.checks, mismatched(field, nil, valueOf(e.Faults[field]), r.page))
		}
	}
	got.rows = slices.DeleteFunc(got.rows, func(r row) bool { return r.value == nil })
	return nil
}

// withQuery sets a parameter of a path's query.
func withQuery(path, name, value string) string {
	path, query, _ := strings.Cut(path, "?")
	values, _ := url.ParseQuery(query) // without parameters that are malformed
	values.Set(name, value)
	return path + "?" + values.Encode()
}
