// Package directorytest has directories for tests: an in-memory list of accounts, and servers that show it as Microsoft
// Graph and Google's Admin SDK do, as their vendors document them, with faults to inject.
package directorytest

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"sync"
)

// Account is an account of a directory.
type Account struct {
	ID, Email, First, Last, Department, Title string
	// Manager is the id of another account.
	Manager string
	// Language is a tag such as fr-CA.
	Language string
	// OrgUnit is the path of Google's organizational unit; empty for the root.
	OrgUnit string
	// NoMailbox means that Google has no mailbox for the address.
	NoMailbox       bool
	Disabled, Guest bool
}

// Directory is a list of accounts that may change between reads. It is safe for concurrent use.
type Directory struct {
	mu       sync.Mutex
	seq      int64 // of the last change
	order    []string
	accounts map[string]*entry
	groups   map[string]group
	// shown are the groups that lists of members show, while these lag behind; nil if they do not.
	shown map[string]group

	// byEmail are the present accounts, as of the change byEmailAt.
	byEmail   []*entry
	byEmailAt int64
}

// entry is an account with the time of its last change.
type entry struct {
	Account
	seq     int64
	removed bool
	// purged means that the account was deleted for good, and movedAt is when it was last removed or restored.
	purged  bool
	movedAt int64
	// changed holds when the properties of Graph changed last that were set at some time.
	changed map[string]int64
	// before is the manager before the last change of the manager.
	before string
}

type group struct {
	name    string
	members []string // ids of accounts and groups
}

// New returns a directory of these accounts.
func New(accounts ...Account) *Directory {
	d := &Directory{accounts: map[string]*entry{}, groups: map[string]group{}}
	d.Put(accounts...)
	return d
}

// Put adds accounts, or replaces those with the same ids. It restores those that were removed.
func (d *Directory) Put(accounts ...Account) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, a := range accounts {
		e := d.accounts[a.ID]
		switch {
		case e == nil:
			e = &entry{changed: map[string]int64{}}
			d.accounts[a.ID] = e
			d.order = append(d.order, a.ID)
		case e.Account == a && !e.removed:
			continue
		}
		d.put(e, a)
	}
}

// put replaces the account of an entry. The caller holds the lock.
func (d *Directory) put(e *entry, a Account) {
	d.seq++
	before := graphProperties(e.Account)
	for name, value := range graphProperties(a) {
		_, wasSet := e.changed[name]
		if value != before[name] || e.removed && wasSet {
			e.changed[name] = d.seq
		}
	}
	restored := e.removed
	if e.Manager != a.Manager {
		e.before = e.Manager
	}
	e.Account, e.seq, e.removed, e.purged = a, d.seq, false, false
	if !restored {
		return
	}
	e.movedAt = d.seq
	for _, id := range d.order { // a restored manager's links come back
		if report := d.accounts[id]; report.Manager == a.ID && !report.removed {
			d.seq++
			report.seq, report.changed["manager"] = d.seq, d.seq
		}
	}
}

// Remove removes accounts, which Put may restore.
func (d *Directory) Remove(ids ...string) { d.remove(false /* for good */, ids) }

// Purge removes accounts for good.
func (d *Directory) Purge(ids ...string) { d.remove(true /* for good */, ids) }

func (d *Directory) remove(forGood bool, ids []string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, id := range ids {
		if e := d.accounts[id]; e != nil && (!e.removed || forGood && !e.purged) {
			d.seq++
			e.seq, e.movedAt, e.removed, e.purged = d.seq, d.seq, true, forGood
		}
	}
}

// LagGroups makes lists of members show the groups of now until lag is false.
func (d *Directory) LagGroups(lag bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.shown = nil
	if lag {
		d.shown = maps.Clone(d.groups)
	}
}

// PutGroup adds a group, or replaces the one of that id. Its members are ids of accounts and of groups.
func (d *Directory) PutGroup(id, name string, members ...string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.groups[id] = group{name, slices.Clone(members)}
}

// Accounts returns the current accounts, by id.
func (d *Directory) Accounts() []Account {
	d.mu.Lock()
	defer d.mu.Unlock()
	var list []Account
	for _, id := range slices.Sorted(maps.Keys(d.accounts)) {
		if e := d.accounts[id]; !e.removed {
			list = append(list, e.Account)
		}
	}
	return list
}

// email returns the address of an account; empty if there is none. The caller holds the lock.
func (d *Directory) email(id string) string {
	if e := d.accounts[id]; e != nil && !e.removed {
		return e.Email
	}
	return ""
}

// members returns the ids of a group's members, and of those of its nested groups. The caller holds the lock.
func (d *Directory) members(id string) map[string]bool {
	groups := d.groups
	if d.shown != nil {
		groups = d.shown
	}
	in := map[string]bool{}
	var walk func(string)
	walk = func(id string) {
		for _, member := range groups[id].members {
			if !in[member] {
				in[member] = true
				walk(member)
			}
		}
	}
	walk(id)
	return in
}

// sorted returns the accounts by address. The caller holds the lock.
func (d *Directory) sorted() []*entry {
	if d.byEmailAt == d.seq {
		return d.byEmail
	}
	d.byEmail = d.byEmail[:0]
	for _, e := range d.accounts {
		if !e.removed {
			d.byEmail = append(d.byEmail, e)
		}
	}
	slices.SortFunc(d.byEmail, byEmail)
	d.byEmailAt = d.seq
	return d.byEmail
}

func byEmail(a, b *entry) int {
	return cmp.Or(strings.Compare(a.Email, b.Email), strings.Compare(a.ID, b.ID))
}
