package directory_test

import (
	"context"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strconv"
	"strings"

	"partnerapi/domain"
	"partnerapi/platform/directory"
)

// account is an account of a scripted directory.
type account struct {
	email, first, last, department, title, manager, group string
	language                                              domain.Language
	disabled, guest                                       bool
}

// state is what a directory holds, by object id.
type state map[string]account

// scripted is a directory in memory. It returns deltas from a position on, or, where
// it is whole, everything each time.
type scripted struct {
	whole  bool
	page   int     // accounts on a page
	states []state // the history, the last being the current one
	// before, if not nil, is called before each page; an error is the source's.
	before func(position string) error
	reads  []string // the positions that pages were read from
	// told is what is returned between two states.
	told map[[2]int][]domain.DirectoryAccount
}

func newScripted(whole bool, first state) *scripted {
	return &scripted{whole: whole, page: 2, states: []state{first}, told: map[[2]int][]domain.DirectoryAccount{}}
}

// now makes the directory hold something else.
func (s *scripted) now(next state) { s.states = append(s.states, maps.Clone(next)) }

// change makes the directory hold what it does with some accounts changed; nil
// removes one.
func (s *scripted) change(changes map[string]*account) {
	next := maps.Clone(s.states[len(s.states)-1])
	for id, a := range changes {
		if a == nil {
			delete(next, id)
		} else {
			next[id] = *a
		}
	}
	s.now(next)
}

// Read reads from positions of the form from:to:offset; from is -1 for everything.
func (s *scripted) Read(_ context.Context, position string) iter.Seq2[directory.Page, error] {
	return func(yield func(directory.Page, error) bool) {
		for {
			if s.before != nil {
				if err := s.before(position); err != nil {
					yield(directory.Page{}, err)
					return
				}
			}
			s.reads = append(s.reads, position)
			page := s.at(position)
			if !yield(page, nil) || page.Last {
				return
			}
			position = page.Next
		}
	}
}

func (s *scripted) at(position string) directory.Page {
	from, to, offset := -1, len(s.states)-1, 0
	if position != "" {
		parts := strings.Split(position, ":")
		from, _ = strconv.Atoi(parts[0])
		offset, _ = strconv.Atoi(parts[2])
		if parts[1] != "" {
			to, _ = strconv.Atoi(parts[1])
		}
	}
	all, known := s.told[[2]int{from, to}]
	if !known {
		all = s.between(from, to)
		s.told[[2]int{from, to}] = all
	}
	end := min(offset+s.page, len(all))
	p := directory.Page{Accounts: all[offset:end], Last: end == len(all), Whole: from < 0}
	switch {
	case !p.Last:
		p.Next = fmt.Sprintf("%d:%d:%d", from, to, end)
	case !s.whole:
		p.Next = fmt.Sprintf("%d::0", to)
	}
	return p
}

// between lists what changed between two states.
func (s *scripted) between(from, to int) (list []domain.DirectoryAccount) {
	now, before := s.states[to], state{}
	if from >= 0 {
		before = s.states[from]
	}
	ids := slices.Collect(maps.Keys(now))
	for id := range before {
		if _, stays := now[id]; !stays {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	for _, id := range ids {
		a, here := now[id]
		old, known := before[id]
		switch {
		case !here:
			list = append(list, domain.DirectoryAccount{ObjectID: id, Removed: true})
		case !known:
			list = append(list, a.told(id, nil))
		case a != old:
			list = append(list, a.told(id, &old))
		}
	}
	return list
}

// told is the account as the directory returns it: with all of its properties, or
// with those that are not as before.
func (a account) told(id string, before *account) domain.DirectoryAccount {
	out := domain.DirectoryAccount{ObjectID: id}
	tell := func(now string, old func(*account) string) domain.Property[string] {
		return domain.Property[string]{Given: before == nil || old(before) != now, Value: now}
	}
	out.Email = tell(a.email, func(o *account) string { return o.email })
	out.First = tell(a.first, func(o *account) string { return o.first })
	out.Last = tell(a.last, func(o *account) string { return o.last })
	out.Department = tell(a.department, func(o *account) string { return o.department })
	out.JobTitle = tell(a.title, func(o *account) string { return o.title })
	out.ManagerEmail = tell(a.manager, func(o *account) string { return o.manager })
	out.Group = tell(a.group, func(o *account) string { return o.group })
	if before == nil || before.guest != a.guest {
		out.Guest = domain.Known(a.guest)
	}
	if before == nil || before.disabled != a.disabled {
		out.Enabled = domain.Known(!a.disabled)
	}
	if before == nil || before.language != a.language {
		out.Language = domain.Known(a.language)
	}
	return out
}
