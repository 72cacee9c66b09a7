package directory_test

import (
	"context"
	"flag"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"partnerapi/db/pg"
	"partnerapi/domain"
	"partnerapi/platform/directory/directorytest"
)

// This file drives the servers of directorytest and syncs with random histories, and compares the users with those of a
// plain model of what syncs do.

// accountState is an account in a drawn state of a directory.
type accountState struct {
	directorytest.Account
	member bool // of the group that is synced
	// purged means, of an absent account, that it was deleted for good: its next account has another ID.
	absent, purged bool
	number         int // of the address
}

// mode is what is synced.
type mode struct {
	name     string
	provider domain.Directory
	part     string
}

var modes = []mode{{"microsoft", domain.Microsoft, ""}, {"group", domain.Microsoft, "grp"}, {"google", domain.Google, ""}}

const (
	// slots is the number of accounts of a history.
	slots = 7
	// numbers is the number of addresses that they may have.
	numbers = slots + 1
)

// one reports true once in so many draws.
func one(t *rapid.T, in int, name string) bool { return rapid.IntRange(0, in-1).Draw(t, name) == 0 }

// drawState draws the accounts of a directory, from nothing, or some of them anew, often a single one. They are
// enabled or not, and have their addresses in any order. No two have one address. Managers are any of the accounts, the
// account itself and absent ones included.
func drawState(t *rapid.T, before []accountState) []accountState {
	list := make([]accountState, slots)
	copy(list, before)
	taken := map[int]bool{}
	var drawn []int
	single := -1
	if before != nil && one(t, 2, "single") {
		single = rapid.IntRange(0, slots-1).Draw(t, "the only one")
	}
	for i := range list {
		if before == nil || i == single || single < 0 && one(t, 3, "anew") {
			drawn = append(drawn, i)
		} else {
			taken[list[i].number] = true
		}
	}
	free := slices.DeleteFunc(addressNumbers(), func(n int) bool { return taken[n] })
	free = rapid.Permutation(free).Draw(t, "addresses")
	for k, i := range drawn {
		list[i] = drawAccount(t, free[k])
	}
	return list
}

// addressNumbers are the numbers of addresses.
func addressNumbers() (list []int) {
	for n := range numbers {
		list = append(list, n)
	}
	return list
}

// drawAccount draws an account, with the address of a number.
func drawAccount(t *rapid.T, number int) accountState {
	a := accountState{
		Account: directorytest.Account{
			Email: fmt.Sprintf("u%d@example.com", number), Last: rapid.SampledFrom([]string{"", "A", "Å"}).Draw(t, "last"),
			First:      rapid.SampledFrom([]string{"A", "B", "Ü"}).Draw(t, "first"),
			Department: rapid.SampledFrom([]string{"", "Finance", "HR"}).Draw(t, "department"),
			Manager:    drawManager(t), Language: rapid.SampledFrom([]string{"", "es_MX", "fr-CA"}).Draw(t, "language"),
			Disabled: one(t, 4, "disabled"), Guest: one(t, 12, "guest"), NoMailbox: one(t, 12, "no mailbox"),
		},
		member: !one(t, 4, "outside"), absent: one(t, 5, "absent"), purged: one(t, 2, "purged"), number: number,
	}
	if one(t, 12, "no mail") {
		a.Email = rapid.SampledFrom([]string{"", "nobody"}).Draw(t, "instead")
	}
	return a
}

// drawManager draws the slot of a manager, as text; empty for none.
func drawManager(t *rapid.T) string {
	return rapid.SampledFrom([]string{"", "", "0", "1", "2", "3", "4", "5", "6"}).Draw(t, "manager")
}

// person is a user in the model of what syncs do.
type person struct {
	id                                                string // once the service has the user
	email, first, last, department, manager, language string
	active                                            bool
	kept                                              bool // the status is an override
	guest                                             bool // the manager is unspecified
}

// model does what decisions 8.14 says, as plainly as possible.
type model struct {
	mode
	people  []*person
	account map[string]*person // by the account's id
}

// email is the address of an account that counts; it may be invalid.
func (m *model) email(a directorytest.Account) string {
	if m.provider == domain.Google && a.NoMailbox {
		return ""
	}
	return a.Email
}

func valid(email string) bool { return strings.Contains(email, "@") }

func (m *model) wanted(a directorytest.Account) bool {
	return m.email(a) != "" && !a.Disabled && !m.guest(a)
}

// guest reports whether an account is one: Google has none.
func (m *model) guest(a directorytest.Account) bool { return m.provider == domain.Microsoft && a.Guest }

// follow gives a person what their account has in a directory.
func (m *model) follow(p *person, a directorytest.Account, all map[string]directorytest.Account) {
	p.first, p.last, p.department, p.manager = a.First, a.Last, a.Department, ""
	p.language = map[string]string{"": "en", "es_MX": "es", "fr-CA": "fr-ca"}[a.Language]
	p.active, p.guest = p.kept || m.wanted(a), m.guest(a)
	if boss := all[a.Manager]; valid(boss.Email) {
		p.manager = boss.Email
	}
}

func (m *model) holder(email string) *person {
	for _, p := range m.people {
		if p.email == email {
			return p
		}
	}
	return nil
}

// sync follows the accounts s of a directory that has all of these: users who have an account first, then the others.
func (m *model) sync(s, all map[string]directorytest.Account) {
	moves := map[*person]string{}
	for id, p := range m.account {
		a, exists := s[id]
		if p.active = p.kept; !exists {
			continue
		}
		m.follow(p, a, all)
		if valid(m.email(a)) {
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
		if m.account[id] == nil && m.wanted(s[id]) && valid(m.email(s[id])) {
			m.join(s, s[id], all)
		}
	}
}

// join gives an account its user, unless a person of another account has the address.
func (m *model) join(s map[string]directorytest.Account, a directorytest.Account, all map[string]directorytest.Account) {
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
	m.follow(p, a, all)
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
		status, manager := domain.Inactive, p.manager
		if p.active {
			status = domain.Active
		}
		if p.guest {
			manager = "*"
		}
		lines = append(lines, strings.Join([]string{
			p.id, p.email, p.first, p.last, p.department, manager, p.language, string(status), accounts[p]}, "|"))
	}
	slices.Sort(lines)
	return lines
}

// people lists the client's users with their ids and accounts, and the ids by address.
func (w *world) people() (lines []string, ids map[string]string) {
	type row struct{ ID, Email, Line string }
	rows, err := pg.All[row](context.Background(), w.DB, "list users", pg.SQL(`
		SELECT u.id::text, u.email, concat_ws('|', u.id, u.email, u.first_name, u.last_name, coalesce(u.department, ''),
			CASE WHEN (d.account->>'guest')::boolean THEN '*' ELSE coalesce(u.manager_email, '') END, u.preferred_language,
			u.status, coalesce(d.object_id, '')) AS line
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

// played is a history that is played: the directory and its state, the world and the model.
type played struct {
	t     *rapid.T
	w     *world
	s     *served
	model *model
	state []accountState
	// ids are the IDs of the slots' accounts.
	ids   [slots]string
	known map[string]bool // the accounts that were ever there
	// purges is the number of accounts that were deleted for good.
	purges int
}

// play draws a history of a directory and plays it: states of the directory, each followed by a sync that is killed,
// throttled and told that its position has expired, while the accounts change. A run that fails may come
// before that sync. After each step it compares users and model.
func play(t *rapid.T, w *world, s *served, m mode, name string) {
	w.client = w.AddClient(w.tenant, name).ID
	h := &played{t: t, w: w, s: s, known: map[string]bool{}, model: &model{mode: m, account: map[string]*person{}}}
	for i := range 2 {
		u := w.AddUser(w.tenant, w.client, fmt.Sprintf("u%d@example.com", i))
		p := &person{email: u.Email, first: u.FirstName, last: u.LastName, language: "en", active: true}
		if p.kept = i == 0 && one(t, 2, "kept"); p.kept {
			w.Exec("UPDATE users SET overrides = '{status}' WHERE id = $1", u.ID)
		}
		h.model.people = append(h.model.people, p)
	}
	for i := range h.ids {
		h.ids[i] = fmt.Sprintf("%s, account %d", name, i)
	}
	w.connect(w.client, s)
	defer func() { // the next history has accounts of its own, also if rapid gives up drawing this one
		s.Purge(h.ids[:]...)
		s.before = nil
	}()
	for range rapid.IntRange(1, 5).Draw(t, "steps") {
		h.step()
	}
}

// step changes the directory, syncs, and compares.
func (h *played) step() {
	t := h.t
	before := h.members()
	calm := h.state != nil && one(t, 3, "calm") // nothing but what changes while it is read
	if !calm {
		h.state = drawState(t, h.state)
	}
	lag := h.model.part != "" && one(t, 4, "lag")
	h.s.LagGroups(lag)
	h.put()
	h.draw()
	if one(t, 3, "fails") {
		h.w.syncFailed(t, rapid.IntRange(0, 6).Draw(t, "failed steps"))
	}

	changes := false
	if one(t, 2, "change") {
		changes = true
		change := h.drawChange(calm)
		h.s.atPage(rapid.IntRange(1, 4).Draw(t, "page"), change)
	}
	h.sync(rapid.SliceOfN(rapid.IntRange(0, 6), 0, 3).Draw(t, "kills")...)
	h.s.before = nil
	if changes {
		h.put() // what no page has met
		h.sync()
	}
	if lag {
		h.model.sync(only(h.accounts(), before), h.accounts())
		h.compare("while the group lags behind")
		h.s.LagGroups(false)
		h.sync(rapid.SliceOfN(rapid.IntRange(0, 6), 0, 2).Draw(t, "kills")...)
	}
	h.model.sync(only(h.accounts(), h.members()), h.accounts())
	h.compare("at last")
}

// draw draws how the server answers the next sync.
func (h *played) draw() {
	t := h.t
	flag := func(name string) bool { return rapid.Bool().Draw(t, name) }
	h.s.SetPageSize(rapid.IntRange(1, 9).Draw(t, "page size"))
	h.w.runner.SetBatchSize(rapid.IntRange(1, 4).Draw(t, "batch size"))
	if h.model.provider == domain.Microsoft {
		h.s.graph().Behave(directorytest.Behavior{
			Absent: flag("absent"), Minimal: flag("minimal"), Apart: flag("apart"), Reverse: flag("reverse"),
			EmptyPages: one(t, 4, "empty pages"), Removed: flag("removed"), Repeat: flag("repeat"), Location: flag("location"),
		})
		if one(t, 5, "expired") {
			h.s.graph().ForgetPositions()
		}
	}
	path := rapid.SampledFrom([]string{list[h.model.provider], "/manager", "token"}).Draw(t, "path")
	for range rapid.IntRange(0, 2).Draw(t, "faults") {
		fault := rapid.SampledFrom([]directorytest.Fault{
			directorytest.Throttled(path, "7", 1), {Path: path, Status: 503}, directorytest.Failing(path, 500, 1),
			directorytest.Failing(path, 504, 2),
		}).Draw(t, "fault")
		fault.After = rapid.IntRange(0, 3).Draw(t, "after")
		h.s.Inject(fault)
	}
}

// drawChange draws what happens while the directory is read: properties change that do not decide which user an account
// has and, in a calm step, an account goes and another one comes.
func (h *played) drawChange(calm bool) func() {
	t := h.t
	i := rapid.IntRange(0, slots-1).Draw(t, "slot")
	state := slices.Clone(h.state)
	a := &state[i]
	a.First = rapid.SampledFrom([]string{"C", "D"}).Draw(t, "new first")
	a.Department = rapid.SampledFrom([]string{"", "Sales"}).Draw(t, "new department")
	a.Manager = drawManager(t)
	if calm && one(t, 2, "goes") {
		a.absent, a.purged = true, rapid.Bool().Draw(t, "for good")
	}
	return func() {
		h.state = state
		h.put()
	}
}

// put makes the directory have the accounts of the state.
func (h *played) put() {
	var members []string
	for i, a := range h.state {
		switch {
		case a.absent && a.purged && h.s.has(h.ids[i]):
			h.s.Purge(h.ids[i])
			h.purges++
			h.ids[i] = fmt.Sprintf("%s again %d", strings.Split(h.ids[i], " again")[0], h.purges)
		case a.absent:
			h.s.Remove(h.ids[i])
		}
		if a.member {
			members = append(members, h.ids[i])
		}
	}
	h.s.PutGroup("grp", "Head office", members...)
	accounts := h.accounts()
	for _, id := range slices.Sorted(maps.Keys(accounts)) {
		h.s.Put(accounts[id])
		h.known[id] = true
	}
}

// accounts returns the accounts of the state, by ID.
func (h *played) accounts() map[string]directorytest.Account {
	all := map[string]directorytest.Account{}
	for i, a := range h.state {
		if a.absent {
			continue
		}
		a.ID = h.ids[i]
		if a.Manager != "" {
			boss := a.Manager[0] - '0'
			if a.Manager = h.ids[boss]; h.state[boss].absent && !h.known[a.Manager] { // it never was an account
				a.Manager = ""
			}
		}
		all[a.ID] = a.Account
	}
	return all
}

// members returns the IDs of the accounts that are synced.
func (h *played) members() []string {
	var ids []string
	for i, a := range h.state {
		if a.member || h.model.part == "" {
			ids = append(ids, h.ids[i])
		}
	}
	return ids
}

// only returns the accounts with these IDs.
func only(all map[string]directorytest.Account, ids []string) map[string]directorytest.Account {
	s := maps.Clone(all)
	maps.DeleteFunc(s, func(id string, _ directorytest.Account) bool { return !slices.Contains(ids, id) })
	return s
}

func (h *played) sync(kills ...int) { h.w.syncKilled(h.t, kills...) }

// compare compares the users with the model.
func (h *played) compare(when string) {
	got, ids := h.w.people()
	if want := h.model.lines(ids); !slices.Equal(got, want) {
		h.t.Fatalf("%s, %s: got\n%s\nwant\n%s", h.model.name, when, strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// has reports whether the directory has an account.
func (s *served) has(id string) bool {
	return slices.ContainsFunc(s.Accounts(), func(a directorytest.Account) bool { return a.ID == id })
}

// TestHistories verifies that syncs of any history of a directory make of each account the user whom the model makes,
// whatever the server answers and whenever processes are killed.
func TestHistories(t *testing.T) {
	checks := flag.Lookup("rapid.checks")
	if checks.Value.String() == checks.DefValue { // not given
		_ = checks.Value.Set(strconv.Itoa(histories))
		defer func() { _ = checks.Value.Set(checks.DefValue) }()
	}
	w := newWorld(t)
	w.runner.SetWait(func(context.Context, time.Duration) error { return nil })
	directories := map[string]*served{}
	for _, m := range modes {
		directories[m.name] = servePart(t, m.provider, m.part)
	}
	n := 0
	rapid.Check(t, func(t *rapid.T) {
		m := rapid.SampledFrom(modes).Draw(t, "mode")
		n++
		play(t, w, directories[m.name], m, fmt.Sprint("History ", n))
	})
	w.check()
}
