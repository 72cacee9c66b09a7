//go:build slow

package directory_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"partnerapi/db/dirsync"
	"partnerapi/domain"
	"partnerapi/platform/directory/directorytest"
)

// TestKilledBetweenPages verifies that a run that is killed after any of its steps, or after each of them, ends with the
// users and accounts of one that is not, although the directory changes while it is read.
func TestKilledBetweenPages(t *testing.T) {
	w := newWorld(t)
	for name, mode := range map[string]struct {
		provider domain.Directory
		part     string
		behavior directorytest.Behavior
		delta    bool // a run of changes, after a completed one
	}{
		"microsoft, all":             {provider: domain.Microsoft},
		"microsoft, all, repeated":   {provider: domain.Microsoft, behavior: directorytest.Behavior{Repeat: true, Minimal: true, Absent: true}},
		"microsoft, links apart":     {provider: domain.Microsoft, behavior: directorytest.Behavior{Apart: true, Repeat: true}},
		"microsoft, empty pages":     {provider: domain.Microsoft, behavior: directorytest.Behavior{EmptyPages: true, Reverse: true}},
		"microsoft, changes":         {provider: domain.Microsoft, delta: true},
		"microsoft, minimal changes": {provider: domain.Microsoft, behavior: directorytest.Behavior{Minimal: true}, delta: true},
		"microsoft, group":           {provider: domain.Microsoft, part: "grp"},
		"google":                     {provider: domain.Google},
	} {
		// state runs a scenario with these kills, and returns the users and accounts, and the number of pages.
		state := func(kills ...int) (lines []string, pages int) {
			s := servePart(t, mode.provider, mode.part, people(7)...)
			if mode.provider == domain.Microsoft {
				s.graph().Behave(mode.behavior)
				s.PutGroup("grp", "Head office", "id-000", "id-001", "id-002", "id-003", "id-004", "id-005")
			}
			w.otherClient(s)
			if mode.delta {
				w.sync()
				for i, a := range people(9) {
					a.Department = fmt.Sprint("Department ", i)
					s.Put(a)
				}
				s.Remove("id-006")
			}
			read := s.atPage(1, func() {
				moved := people(3)
				moved[0].Title, moved[1].Title, moved[2].Manager = "Moved", "Moved", "id-001"
				s.Put(moved...)
			})
			w.syncKilled(t, kills...)
			return w.state(), *read
		}

		want, pages := state()
		all := make([]int, pages+1)
		for kill := range all {
			if got, _ := state(kill); !slices.Equal(got, want) {
				t.Errorf("%s, killed after step %d: got\n%s\nwant\n%s", name, kill, strings.Join(got, "\n"), strings.Join(want, "\n"))
			}
		}
		if got, _ := state(all...); !slices.Equal(got, want) {
			t.Errorf("%s, killed after each step: got\n%s\nwant\n%s", name, strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	}
	w.check()
}

// TestKilledRun: a process that dies at any step of a run of several pages and batches leaves
// it to the next one, which does nothing twice.
func TestKilledRun(t *testing.T) {
	w := newWorld(t)
	s := serve(t, domain.Google, people(2300)...)
	s.SetPageSize(500)
	w.connect(w.client, s)
	lease, err := dirsync.Start(context.Background(), w.DB, w.client, false, time.Minute)
	w.must(err)
	for step := 1; step <= 7; step++ {
		dead, kill := context.WithCancel(context.Background())
		_, err := w.runner.Work(dead, lease, func(int, int) { kill() })
		if !errors.Is(err, context.Canceled) {
			t.Fatalf("step %d: %v", step, err)
		}
		kill()
		w.everyLeaseEnds()
		lease = w.claim()
	}
	run, err := w.runner.Work(context.Background(), lease, nil)
	w.must(err)
	wantCounts(t, run, domain.SyncCounts{Created: 2300})
	if n := s.Requests("/users"); n != 5 {
		t.Errorf("%d pages were read", n)
	}
	w.check()
	if n := w.Number("SELECT count(*) FROM groups WHERE NOT manual"); n != 1 {
		t.Errorf("%d groups", n)
	}
}
