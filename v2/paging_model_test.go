package v2_test

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"partnerapi/domain"
	"partnerapi/v2/op"
	"partnerapi/v2/v2test"
)

// pagedRow is what the naive model of a list knows of a row, whatever it is a
// row of. Rows are values: a walk keeps them as they were when it read them.
type pagedRow struct {
	uuid             [16]byte // by which ties of the sort are broken
	id               string   // as v2 shows it
	name, email      string
	score            int
	created, updated time.Time
	status           domain.UserStatus
	role             domain.Role
	member           bool // of the collection that a filter names
	kind             int  // from 0 to 3: which of what a filter distinguishes
}

// compare orders two rows as a list in the order does.
func (r pagedRow) compare(other pagedRow, inOrder string) int {
	by, descending := strings.CutPrefix(inOrder, "-")
	var order int
	switch by {
	case "name":
		order = strings.Compare(domain.SortKey(r.name), domain.SortKey(other.name))
	case "email":
		order = strings.Compare(r.email, other.email)
	case "risk_score":
		order = cmp.Compare(r.score, other.score)
	case "updated_at":
		order = r.updated.Compare(other.updated)
	case "sent_at":
		order = r.sendAt().Compare(other.sendAt())
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

// sameKey reports whether a row has kept its place in the order.
func (r pagedRow) sameKey(other pagedRow, inOrder string) bool {
	return r.uuid == other.uuid && r.compare(other, inOrder) == 0
}

// sendAt is another moment that a list may be sorted by: the score's.
func (r pagedRow) sendAt() time.Time {
	return v2test.Noon.Add(-time.Duration(r.score-600) * time.Hour / 50)
}

func (r pagedRow) nameHas(text string) bool {
	return strings.Contains(domain.SortKey(r.name), domain.SortKey(text))
}

// pagedList is a list with filters, in a sort; holds says what is in it.
type pagedList struct {
	name  string
	query url.Values
	sort  string
	order string // the sort, or the one order of a list that takes none
	holds func(pagedRow) bool
	key   string
	at    ids // what its path names, where that is not what the table's does
	// uncounted says that no version asks for the list's total, which v1 alone does:
	// it has none of the list's filters.
	uncounted bool
}

// pagedTable is a table beside its model: rows holds what the table does.
type pagedTable struct {
	h      *v2test.Harness
	tenant v2test.Tenant
	client domain.ClientID // whose rows are listed
	op     op.Declaration
	set    *op.Set  // where the operation is bound; nil for the service's own
	at     ids      // what the path names
	shown  []string // the members of an item that identify its row
	order  string   // of lists that take no sort
	dice   *rand.Rand
	rows   []pagedRow
	drawn  int

	lists []pagedList
	// show is the id of a row as v2 shows it; or name gives both ids of the
	// next row.
	show func([16]byte) string
	name func() ([16]byte, string)
	// store makes the table hold the row, and drop makes it miss it.
	store, drop func(pagedRow)
}

// of says what is listed: by which operation, of which client or other object,
// and what of an item identifies its row.
func (p *pagedTable) of(o op.Declaration, at ids, shown ...string) {
	p.op, p.at, p.shown = o, at, shown
}

func (p *pagedTable) path(l pagedList, query ...string) string {
	return pathOf(p.h.T.(*testing.T), p.op, p.place(l), query...)
}

func (p *pagedTable) place(l pagedList) ids {
	if l.at != nil {
		return l.at
	}
	return p.at
}

// add adds a list of the table.
func (p *pagedTable) add(name, query string, holds func(pagedRow) bool) {
	values, err := url.ParseQuery(query)
	if err != nil {
		p.h.T.Fatal(err)
	}
	p.lists = append(p.lists, pagedList{name: name, query: values, order: p.order, holds: holds, key: p.tenant.Key})
}

// sorted makes of each list one in every sort.
func (p *pagedTable) sorted(sorts []string) {
	var all []pagedList
	for _, list := range p.lists {
		for _, sort := range sorts {
			l := list
			l.name, l.sort, l.order = list.name+" by "+sort, sort, sort
			all = append(all, l)
		}
	}
	p.lists = all
}

func (p *pagedTable) fill(rows int) {
	for range rows {
		p.insert()
	}
	// A moment after that many new rows the server would do so by itself; until
	// then its plans are those for empty tables.
	p.h.Exec(`ANALYZE clients, users, admins, groups, collections, collection_members, policies, policy_signatures,
		exposures, breaches, assignments, courses, phishing_results, phishing_templates, sent_emails, reported_emails`)
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
	r.member, r.kind = p.dice.IntN(2) == 0, p.dice.IntN(4)
	return r
}

func (p *pagedTable) insert() {
	var r pagedRow
	if p.name != nil {
		r.uuid, r.id = p.name()
	} else {
		for i := range r.uuid {
			r.uuid[i] = byte(p.dice.Uint32())
		}
		r.id = p.show(r.uuid)
	}
	r = p.draw(r)
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
	slices.SortFunc(rows, func(a, b pagedRow) int { return a.compare(b, l.order) })
	return rows
}

// pagedPage is a page of a list, over HTTP or in process.
type pagedPage struct {
	Data  []map[string]any `json:"data"`
	Page  op.PageInfo      `json:"page"`
	ids   []string
	total int
	end   string
}

// page reads a page off its JSON.
func (p *pagedTable) page(t *testing.T, text []byte) (page pagedPage) {
	t.Helper()
	if err := json.Unmarshal(text, &page); err != nil {
		t.Fatalf("decode %s: %v", text, err)
	}
	for _, item := range page.Data {
		shown := make([]string, len(p.shown))
		for i, member := range p.shown {
			shown[i], _ = item[member].(string)
		}
		page.ids = append(page.ids, strings.Join(shown, " "))
	}
	return page
}

// call reads a page in process.
func (p *pagedTable) call(t *testing.T, l pagedList, paging op.Paging) pagedPage {
	t.Helper()
	input := p.op.New()
	at := p.place(l)
	err := p.op.Input().Bind(input, op.Request{Query: l.values(), Path: func(name string) string { return at[name] }})
	if err != nil {
		t.Fatal(err)
	}
	paging.Limit = 1 // Rows stands in for it
	reflect.ValueOf(input).Elem().FieldByName("Query").FieldByName("Paging").Set(reflect.ValueOf(paging))
	set := p.set
	if set == nil {
		set = &p.h.API.Set
	}
	out, err := set.Operation(p.op).Run(p.h.As(l.key), input)
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(out)
	if err != nil {
		t.Fatal(err)
	}
	page, of := p.page(t, text), reflect.ValueOf(out).Elem()
	page.total, page.end = int(of.FieldByName("Total").Int()), of.FieldByName("End").String()
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
