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
	case "last_name":
		order = strings.Compare(domain.SortKey(r.lastName()), domain.SortKey(other.lastName()))
	case "risk_score":
		order = cmp.Compare(r.score, other.score)
	case "updated_at":
		order = r.updated.Compare(other.updated)
	case "sent_at", "send_at":
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

// sendAt is another moment that a list may be sorted by: the score's.
func (r pagedRow) sendAt() time.Time {
	return v2test.Noon.Add(-time.Duration(r.score-600) * time.Hour / 50)
}

// lastName is the last name of a row's user, which differs from those of others.
func (r pagedRow) lastName() string { return "De  " + r.name }

// department is the department of a row's user, in two spellings; nil for none.
func (r pagedRow) department() any { return []any{nil, "Ünit 1", "ünit 1", "Other"}[r.kind] }

func (r pagedRow) isMember() bool { return r.member }

func (r pagedRow) finance() bool { return r.role == domain.RoleFinance }

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
	at    ids // what its path names; nil for what the table's does
	// uncounted says that no version asks for the list's total, which v1 alone does:
	// it has none of the list's filters.
	uncounted bool
}

// pagedTable is a list's rows in the database beside their model: rows holds what the
// database does.
type pagedTable struct {
	h      *v2test.Harness
	tenant v2test.Partner
	op     op.Declaration
	set    *op.Set  // where the operation is bound; nil for the service's own
	at     ids      // what the path names
	shown  []string // the members of an item that identify its row
	order  string   // of lists that take no sort
	dice   *rand.Rand
	rows   []pagedRow
	first  int // how many rows there are at first
	drawn  int

	lists []pagedList
	// show is the id of a row as v2 shows it; or name gives both ids of the
	// next row.
	show func([16]byte) string
	name func() ([16]byte, string)
	// homes are whose records the tables hold, the listed ones' first; and other is
	// another user of the client of the first.
	homes []pagedHome
	other pagedHome
	// records adds the records of a home that stand for a row.
	records func(of *pagedRecords, r pagedRow)
	// drop makes the database miss a row, and stored does what follows a change; nil
	// for the deletion of its records, and for nothing.
	drop   func(pagedRow)
	stored func()
}

// newPagedTable makes one of the pagedTables, with a number of rows.
func newPagedTable(t *testing.T, table func(*pagedTable), rows int) *pagedTable {
	h := v2test.New(t, v2test.Options{Limits: v2test.Unlimited})
	p := &pagedTable{h: h, tenant: h.AddPartner("Paged"), order: "created_at", dice: rand.New(rand.NewPCG(3, 1)), first: rows}
	p.drop = p.remove
	table(p)
	return p
}

// of says what is listed: by which operation, of which objects, and by which members of
// an item, as show writes them, its row is known.
func (p *pagedTable) of(o op.Declaration, at ids, show func([16]byte) string, shown ...string) {
	p.op, p.at, p.show, p.shown = o, at, show, shown
	if p.homes == nil {
		p.homes = []pagedHome{{tenant: p.tenant}}
	}
}

// ofClient is of for rows of a client, or of a user of it. The same tables hold rows of
// a neighbor and of another partner's client, with the same sort keys and, where the
// constraints let them, the same ids.
func (p *pagedTable) ofClient(o op.Declaration, show func([16]byte) string, shown ...string) {
	stranger, client := p.h.AddPartner("Other"), p.h.AddClient(p.tenant, "Client").ID
	for i, home := range []pagedHome{
		{tenant: p.tenant, client: client}, {tenant: p.tenant, client: p.h.AddClient(p.tenant, "Neighbor").ID},
		{tenant: stranger, client: p.h.AddClient(stranger, "Client").ID}, {tenant: p.tenant, client: client},
	} {
		user := p.h.AddUser(home.tenant, home.client, v2test.Email(i))
		home.user, home.group = user.ID, user.Group.ID
		p.homes = append(p.homes, home)
	}
	p.homes, p.other = p.homes[:3], p.homes[3]
	p.of(o, ids{"client_id": client.String(), "user_id": p.homes[0].user.String()}, show, shown...)
}

// shownAs is an id of a kind as v2 shows it.
func shownAs[K domain.Kind](uuid [16]byte) string { return domain.ID[K](uuid).String() }

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
func (p *pagedTable) add(query string, holds func(pagedRow) bool) {
	values, err := url.ParseQuery(query)
	if err != nil {
		p.h.T.Fatal(err)
	}
	p.lists = append(p.lists, pagedList{
		name: "with " + query, query: values, order: p.order, holds: holds, key: p.tenant.Key, at: p.at,
	})
}

// addSubset adds a list as a key for some clients has it.
func (p *pagedTable) addSubset(query string, clients []domain.ClientID, holds func(pagedRow) bool) {
	p.add(query, holds)
	l := &p.lists[len(p.lists)-1]
	l.name, l.key = l.name+", of a subset's key", p.h.AddKey(p.tenant, bothScopes, clients)
}

// sorted makes of each list one in every sort; the empty one leaves it in its order.
func (p *pagedTable) sorted(sorts []string) {
	var all []pagedList
	for _, list := range p.lists {
		for _, sort := range sorts {
			l := list
			if sort != "" {
				l.name, l.sort, l.order = list.name+" by "+sort, sort, sort
			}
			all = append(all, l)
		}
	}
	p.lists = all
}

// fill makes the first rows of the records that stand for each.
func (p *pagedTable) fill(records func(of *pagedRecords, r pagedRow)) {
	p.records = records
	for range p.first {
		p.insert()
	}
	// As those who change what is counted keep them.
	p.h.Exec(`UPDATE collections AS k SET member_count =
		(SELECT count(*) FROM collection_members AS m WHERE m.client_id = k.client_id AND m.collection_id = k.id)`)
	p.h.Exec(`UPDATE clients SET users_active = count.active, users_inactive = count.inactive
		FROM (SELECT count(*) FILTER (WHERE status = 'active') AS active, count(*) FILTER (WHERE status = 'inactive') AS inactive
			FROM users WHERE client_id = $1) AS count WHERE id = $1`, p.homes[0].client)
	// A moment after that many new rows the server would do so by itself; until
	// then its plans are those for empty tables.
	p.h.Exec("ANALYZE")
}

// pagedSince is what updated_since is given: about half of the rows changed at
// that time or later. pagedFrom is what since is given, and pagedUntil until; some rows
// are of these very moments.
var (
	pagedSince            = v2test.Noon.Add(-3 * time.Hour)
	pagedFrom, pagedUntil = v2test.Noon.Add(-4 * time.Hour), v2test.Noon.Add(-time.Hour)
)

// The queries of these times.
var (
	updatedQuery = "updated_since=" + pagedSince.Format(time.RFC3339)
	sinceQuery   = "since=" + pagedFrom.Format(time.RFC3339)
	untilQuery   = "until=" + pagedUntil.Format(time.RFC3339)
)

func pagedAll(pagedRow) bool { return true }

func fromSince(at time.Time) bool { return !at.Before(pagedFrom) }

func beforeUntil(at time.Time) bool { return at.Before(pagedUntil) }

func pagedWithin(at time.Time) bool { return fromSince(at) && beforeUntil(at) }

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
		p.settle()
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
