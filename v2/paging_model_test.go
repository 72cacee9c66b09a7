package v2_test

import (
	"bytes"
	"cmp"
	"fmt"
	"math/rand/v2"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"partnerapi/domain"
	v2 "partnerapi/v2"
	"partnerapi/v2/op"
	"partnerapi/v2/v2test"
)

// pagedRow is what the naive model of a list knows of a client, a user or an
// admin. Rows are values: a walk keeps them as they were when it read them.
type pagedRow struct {
	uuid             [16]byte
	id               string // as v2 shows it
	name, email      string
	score            int
	created, updated time.Time
	status           domain.UserStatus
	role             domain.Role
	member           bool // of the collection that a filter names
}

// compare orders two rows as a list in the sort does.
func (r pagedRow) compare(other pagedRow, sort string) int {
	by, descending := strings.CutPrefix(sort, "-")
	var order int
	switch by {
	case "name":
		order = strings.Compare(strings.ToLower(r.name), strings.ToLower(other.name))
	case "email":
		order = strings.Compare(r.email, other.email)
	case "risk_score":
		order = cmp.Compare(r.score, other.score)
	default:
		order = r.created.Compare(other.created)
	}
	if order == 0 {
		order = bytes.Compare(r.uuid[:], other.uuid[:])
	}
	if descending {
		return -order
	}
	return order
}

// sameKey reports whether a row has kept its place in the sort.
func (r pagedRow) sameKey(other pagedRow, sort string) bool {
	return r.uuid == other.uuid && r.compare(other, sort) == 0
}

func (r pagedRow) nameHas(text string) bool {
	return strings.Contains(strings.ToLower(r.name), strings.ToLower(text))
}

// pagedList is a list with filters, in a sort; holds says what is in it.
type pagedList struct {
	name  string
	query url.Values
	sort  string
	holds func(pagedRow) bool
	key   string
}

// pagedTable is a table beside its model: rows holds what the table does.
type pagedTable struct {
	h      *v2test.Harness
	tenant v2test.Tenant
	client domain.ClientID // whose users or admins are listed
	op     op.Operation
	path   string
	dice   *rand.Rand
	rows   []pagedRow
	drawn  int

	lists []pagedList
	// show is the id of a row as v2 shows it.
	show func([16]byte) string
	// store makes the table hold the row, and drop makes it miss it.
	store, drop func(pagedRow)
}

// add adds a list of the table.
func (p *pagedTable) add(name, query string, holds func(pagedRow) bool) {
	values, err := url.ParseQuery(query)
	if err != nil {
		p.h.T.Fatal(err)
	}
	p.lists = append(p.lists, pagedList{name: name, query: values, holds: holds, key: p.tenant.Key})
}

// sorted makes of each list one in every sort.
func (p *pagedTable) sorted(sorts []string) {
	var all []pagedList
	for _, list := range p.lists {
		for _, sort := range sorts {
			l := list
			l.name, l.sort = list.name+" by "+sort, sort
			all = append(all, l)
		}
	}
	p.lists = all
}

func (p *pagedTable) fill(rows int) {
	for range rows {
		p.insert()
	}
	// A moment after so many new rows the server would do so by itself; until
	// then its plans are those for empty tables.
	p.h.Exec("ANALYZE clients, users, collection_members, admins")
}

// pagedSince is what updated_since is given: about half of the rows changed at
// that time or later.
var pagedSince = v2test.Noon.Add(-3 * time.Hour)

func (r pagedRow) recent() bool { return !r.updated.Before(pagedSince) }

// pagedNames are what names begin with: in both cases, beyond ASCII, and with
// the wildcards of LIKE.
var pagedNames = []string{"Alpha", "beta", "ALPHA", "Ünal", "ünder", "Straße", "STRASSE", "Ωmega", "100%_", "日本", "zeta", "Žižek"}

var pagedRoles = []domain.Role{domain.RoleStandard, domain.RoleStandard, domain.RoleFinance, domain.RoleExecutive}

// draw gives a row new fields. Names and emails are never drawn twice, for a
// list may refuse that; times and scores are of a handful.
func (p *pagedTable) draw(r pagedRow) pagedRow {
	p.drawn++
	moment := func() time.Time { return v2test.Noon.Add(-time.Duration(p.dice.IntN(6)) * time.Hour) }
	r.name = fmt.Sprintf("%s %d", pagedNames[p.dice.IntN(len(pagedNames))], p.drawn)
	r.email = fmt.Sprintf("%s%d@example.com", []string{"a", "b.c", "ü", "z_"}[p.dice.IntN(4)], p.drawn)
	r.score = 600 + 50*p.dice.IntN(4)
	// Both ends of what the database keeps of a time are keys too.
	r.created = moment().Add(time.Duration(p.dice.IntN(2)) * time.Microsecond)
	return p.touch(r, moment())
}

// touch gives a row new fields that no list is sorted by.
func (p *pagedTable) touch(r pagedRow, updated time.Time) pagedRow {
	r.updated = updated
	r.status = domain.UserStatus(domain.UserStatus("").Values()[p.dice.IntN(2)])
	r.role = pagedRoles[p.dice.IntN(len(pagedRoles))]
	r.member = p.dice.IntN(2) == 0
	return r
}

func (p *pagedTable) insert() {
	var r pagedRow
	for i := range r.uuid {
		r.uuid[i] = byte(p.dice.Uint32())
	}
	r = p.draw(r)
	r.id = p.show(r.uuid)
	p.store(r)
	p.rows = append(p.rows, r)
}

// stir inserts, moves, touches or drops a row.
func (p *pagedTable) stir() {
	i := p.dice.IntN(len(p.rows))
	switch p.dice.IntN(5) {
	case 0:
		p.insert()
	case 1:
		p.drop(p.rows[i])
		p.rows = slices.Delete(p.rows, i, i+1)
	case 2, 3:
		p.rows[i] = p.draw(p.rows[i])
		p.store(p.rows[i])
	case 4:
		p.rows[i] = p.touch(p.rows[i], p.h.Clock.Now())
		p.store(p.rows[i])
	}
}

// listed is the whole list by the naive model: filter, then sort.
func (p *pagedTable) listed(l pagedList) []pagedRow {
	var rows []pagedRow
	for _, r := range p.rows {
		if l.holds(r) {
			rows = append(rows, r)
		}
	}
	slices.SortFunc(rows, func(a, b pagedRow) int { return a.compare(b, l.sort) })
	return rows
}

// pagedPage is a page of a list, over HTTP or in process.
type pagedPage struct {
	Data []struct {
		ID string `json:"id"`
	} `json:"data"`
	Page  op.PageInfo `json:"page"`
	Total int         `json:"-"`
	End   string      `json:"-"`
}

func (p pagedPage) ids() []string {
	ids := make([]string, len(p.Data))
	for i, item := range p.Data {
		ids[i] = item.ID
	}
	return ids
}

// inProcess makes a pagedPage of what an operation returned.
func inProcess[Item any](page *op.Page[Item], id func(Item) string) (out pagedPage) {
	out.Page, out.Total, out.End = page.Page, page.Total, page.End
	for _, item := range page.Data {
		out.Data = append(out.Data, struct {
			ID string `json:"id"`
		}{id(item)})
	}
	return out
}

// call reads a page in process.
func (p *pagedTable) call(t *testing.T, l pagedList, paging op.Paging) (page pagedPage) {
	t.Helper()
	input := p.op.New()
	err := p.op.Input().Bind(input, op.Request{Query: l.values(), Path: func(string) string { return p.client.String() }})
	if err != nil {
		t.Fatal(err)
	}
	paging.Limit = 1 // Rows stands in for it
	switch input := input.(type) {
	case *v2.ListClients:
		input.Query.Paging = paging
	case *v2.ListUsers:
		input.Query.Paging = paging
	case *v2.ListClientAdmins:
		input.Query.Paging = paging
	}
	out, err := p.op.Run(p.h.As(l.key), input)
	if err != nil {
		t.Fatal(err)
	}
	switch out := out.(type) {
	case *op.Page[v2.Client]:
		return inProcess(out, func(c v2.Client) string { return c.ID.String() })
	case *op.Page[v2.User]:
		return inProcess(out, func(u v2.User) string { return u.ID.String() })
	case *op.Page[v2.Admin]:
		return inProcess(out, func(a v2.Admin) string { return a.ID.String() })
	}
	t.Fatalf("the list is a %T", out)
	return page
}

// values is the list's query, without limit and cursor.
func (l pagedList) values() url.Values {
	values := url.Values{}
	for name, texts := range l.query {
		values[name] = texts
	}
	if l.sort != "" {
		values.Set("sort", l.sort)
	}
	return values
}
