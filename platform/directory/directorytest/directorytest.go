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
	OrgUnit         string
	Disabled, Guest bool
}

// Directory is a list of accounts that may change between reads. It is safe for concurrent use.
type Directory struct {
	mu       sync.Mutex
	seq      int64 // of the last change
	order    []string
	accounts map[string]*entry
	groups   map[string]group

	// byEmail are the present accounts, as of the change byEmailAt.
	byEmail   []*entry
	byEmailAt int64
}

// entry is an account with the time of its last change.
type entry struct {
	Account
	seq     int64
	removed bool
	// changed holds when the properties of Graph changed last that were set at some time.
	changed map[string]int64
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

// Put adds accounts, or replaces those with the same ids.
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
		d.seq++
		before := graphTexts(e.Account)
		for name, value := range graphTexts(a) {
			if value != before[name] || e.removed {
				e.changed[name] = d.seq
			}
		}
		e.Account, e.seq, e.removed = a, d.seq, false
	}
}

// Remove removes accounts.
func (d *Directory) Remove(ids ...string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, id := range ids {
		if e := d.accounts[id]; e != nil && !e.removed {
			d.seq++
			e.seq, e.removed = d.seq, true
		}
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

// members returns the accounts of a group and its nested groups, in the order in which they were added to the
// directory. The caller holds the lock.
func (d *Directory) members(id string) []*entry {
	in := map[string]bool{}
	var walk func(string)
	walk = func(id string) {
		for _, member := range d.groups[id].members {
			if !in[member] {
				in[member] = true
				walk(member)
			}
		}
	}
	walk(id)
	var list []*entry
	for _, id := range d.order {
		if e := d.accounts[id]; in[id] && !e.removed {
			list = append(list, e)
		}
	}
	return list
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
