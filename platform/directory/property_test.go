//go:build slow

package directory_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"partnerapi/db/pg"
	"partnerapi/domain"
	"partnerapi/platform/directory/directorytest"
)

// drawState draws what a directory holds: of a few accounts some, enabled or not, with
// the addresses in any order. No two have one address.
func drawState(t *rapid.T) map[string]directorytest.Account {
	s := map[string]directorytest.Account{}
	in := func(name string, of int) bool { return rapid.IntRange(0, of-1).Draw(t, name) == 0 }
	for i, number := range rapid.Permutation([]int{0, 1, 2, 3, 4, 5, 6}).Draw(t, "addresses") {
		if in("absent", 6) {
			continue
		}
		a := directorytest.Account{
			ID: fmt.Sprintf("account %d", i), Email: fmt.Sprintf("u%d@example.com", number), Last: fmt.Sprint(i),
			First: rapid.SampledFrom([]string{"A", "B", "Ü"}).Draw(t, "first"), Disabled: in("disabled", 3), Guest: in("guest", 12),
			Department: rapid.SampledFrom([]string{"", "Finance", "HR"}).Draw(t, "department"),
		}
		if in("no mail", 12) {
			a.Email = ""
		}
		s[a.ID] = a
	}
	return s
}

// person is a user in the model of what syncs do.
type person struct {
	id                             string // once the service has the user
	email, first, last, department string
	active                         bool
}

// model does what decisions 8.14 says, as plainly as it can.
type model struct {
	guests  bool // that the vendor has some
	people  []*person
	account map[string]*person // by the account's id
}

func (m *model) wanted(a directorytest.Account) bool {
	return a.Email != "" && !a.Disabled && !(m.guests && a.Guest)
}

func (m *model) follow(p *person, a directorytest.Account) {
	p.first, p.last, p.department, p.active = a.First, a.Last, a.Department, m.wanted(a)
}

func (m *model) holder(email string) *person {
	for _, p := range m.people {
		if p.email == email {
			return p
		}
	}
	return nil
}

// sync follows a state of the directory: who has an account first, then the others.
func (m *model) sync(s map[string]directorytest.Account) {
	moves := map[*person]string{}
	for id, p := range m.account {
		a, exists := s[id]
		if p.active = false; !exists {
			continue
		}
		m.follow(p, a)
		if a.Email != "" {
			moves[p] = a.Email
		}
	}
	for dropped := true; dropped; { // moves to an address that is taken
		dropped = false
		for p, email := range moves {
			if h := m.holder(email); h != nil && moves[h] == "" {
				delete(moves, p)
				dropped = true
			}
		}
	}
	for p, email := range moves {
		p.email = email
	}
	for _, id := range slices.Sorted(maps.Keys(s)) {
		if m.account[id] == nil && m.wanted(s[id]) {
			m.join(s, s[id])
		}
	}
}

// join gives an account its user, unless a person of another account has the address.
func (m *model) join(s map[string]directorytest.Account, a directorytest.Account) {
	p := m.holder(a.Email)
	for id, owner := range m.account {
		if owner == p && p != nil {
			if _, exists := s[id]; exists {
				return
			}
			delete(m.account, id)
		}
	}
	if p == nil {
		p = &person{email: a.Email}
		m.people = append(m.people, p)
	}
	m.follow(p, a)
	m.account[a.ID] = p
}

// lines are the people, as world.people lists users.
func (m *model) lines(ids map[string]string) (lines []string) {
	accounts := map[*person]string{}
	for id, p := range m.account {
		accounts[p] = id
	}
	for _, p := range m.people {
		if p.id == "" {
			p.id = ids[p.email]
		}
		status := domain.Inactive
		if p.active {
			status = domain.Active
		}
		lines = append(lines, strings.Join([]string{
			p.id, p.email, p.first, p.last, p.department, string(status), accounts[p]}, "|"))
	}
	slices.Sort(lines)
	return lines
}

// people lists the client's users with their ids and accounts, and the ids by address.
func (w *world) people() (lines []string, ids map[string]string) {
	type row struct{ ID, Email, Line string }
	rows, err := pg.All[row](context.Background(), w.DB, "list users", pg.SQL(`
		SELECT u.id::text, u.email, concat_ws('|', u.id, u.email, u.first_name, u.last_name, coalesce(u.department, ''), u.status,
			coalesce(d.object_id, '')) AS line
		FROM users AS u LEFT JOIN directory_accounts AS d ON d.client_id = u.client_id AND d.user_id = u.id
		WHERE u.client_id = ?`, w.client))
	w.must(err)
	ids = map[string]string{}
	for _, r := range rows {
		lines, ids[r.Email] = append(lines, r.Line), r.ID
	}
	slices.Sort(lines)
	return lines, ids
}

// put makes a directory hold these accounts and no others.
func put(d *directorytest.Directory, s map[string]directorytest.Account) {
	for _, a := range d.Accounts() {
		if _, stays := s[a.ID]; !stays {
			d.Remove(a.ID)
		}
	}
	d.Put(slices.Collect(maps.Values(s))...)
}

// TestSyncOfAnySequence: syncs of any sequence of states, with runs killed anywhere,
// make of each account the user whom the model makes, beside users made by hand.
func TestSyncOfAnySequence(t *testing.T) {
	for provider := range list {
		t.Run(string(provider), func(t *testing.T) {
			w, d, n := newWorld(t), directorytest.New(), 0
			v := vendors(t, d)[provider]
			s, _ := source(t, provider, v, "")
			rapid.Check(t, func(t *rapid.T) {
				n++
				w.client = w.Client(w.tenant, fmt.Sprintf("Client %d", n)).ID
				m := model{guests: provider == domain.Microsoft, account: map[string]*person{}}
				for i := range 2 {
					u := w.User(w.tenant, w.client, fmt.Sprintf("u%d@example.com", i))
					m.people = append(m.people, &person{email: u.Email, first: u.FirstName, last: u.LastName, active: true})
				}
				history := rapid.SliceOfN(rapid.Custom(drawState), 1, 6).Draw(t, "history")
				v.SetPageSize(rapid.IntRange(1, 9).Draw(t, "page"))
				put(d, nil)
				w.connect(w.client, s)
				for i, state := range history {
					put(d, state)
					w.syncKilled(t, rapid.SliceOfN(rapid.IntRange(0, 8), 0, 3).Draw(t, "kills"))
					m.sync(state)
					got, ids := w.people()
					if want := m.lines(ids); !slices.Equal(got, want) {
						t.Fatalf("after %d syncs the users are\n%s\nnot\n%s", i+1, strings.Join(got, "\n"), strings.Join(want, "\n"))
					}
				}
			})
			w.check()
		})
	}
}
