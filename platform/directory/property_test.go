//go:build slow

package directory_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"partnerapi/domain"
)

// drawState draws what a directory holds: of a few accounts some, in any shape. No
// two accounts have one address, and no account has one that another account had
// when it went.
func drawState(t *rapid.T) state {
	s, numbers := state{}, rapid.Permutation([]int{0, 1, 2, 3, 4, 5, 6, 7}).Draw(t, "addresses")
	text := func(name string, of ...string) string { return rapid.SampledFrom(of).Draw(t, name) }
	for i := range numbers {
		if i > 0 && rapid.IntRange(0, 4).Draw(t, "absent") == 0 {
			continue
		}
		a := account{
			email: fmt.Sprintf("u%d@example.com", numbers[i]), first: text("first", "A", "B", ""), last: text("last", "X", "Ünsal"),
			department: text("department", "", "Finance", "HR"), title: text("title", "", "Director", "Clerk"),
			manager: text("manager", "", "boss@example.com"), group: text("group", "", "Office", "Plant"),
			language: rapid.SampledFrom([]domain.Language{domain.English, domain.French}).Draw(t, "language"),
			disabled: rapid.IntRange(0, 4).Draw(t, "disabled") == 0,
		}
		s[fmt.Sprintf("account %d", i)] = a
	}
	return s
}

// keepAddresses makes accounts that are not followed hold on to their addresses in
// no state: the others change places as they like, these have their own.
func keepAddresses(history []state) {
	leaves := map[string]bool{}
	for _, s := range history {
		for i := range 8 {
			id := fmt.Sprintf("account %d", i)
			if a, here := s[id]; !here || a.disabled {
				leaves[id] = true
			}
		}
	}
	for _, s := range history {
		used := map[string]bool{}
		for _, id := range sortedAccounts(s) {
			a := s[id]
			if leaves[id] {
				a.email = "own." + strings.ReplaceAll(id, " ", "") + "@example.com"
			}
			if used[a.email] {
				panic("an address twice")
			}
			used[a.email] = true
			s[id] = a
		}
	}
}

func sortedAccounts(s state) []string {
	ids := make([]string, 0, len(s))
	for id := range s {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	return ids
}

// TestSyncOfAnySequence: after syncs of any sequence of states, with runs killed
// anywhere, the active users are those of a fresh sync of the last state.
func TestSyncOfAnySequence(t *testing.T) {
	w := newWorld(t)
	n := 0
	rapid.Check(t, func(t *rapid.T) {
		history := rapid.SliceOfN(rapid.Custom(drawState), 1, 5).Draw(t, "history")
		keepAddresses(history)
		n++
		w.client = w.Client(w.tenant, fmt.Sprintf("Client %d", n)).ID
		s := newScripted(rapid.Bool().Draw(t, "whole"), history[0])
		s.page = rapid.IntRange(1, 9).Draw(t, "page")
		w.connect(w.client, s)
		for i, next := range history {
			if i > 0 {
				s.now(next)
			}
			w.syncKilled(t, rapid.SliceOfN(rapid.IntRange(0, 8), 0, 3).Draw(t, "kills"))
		}
		got := active(w.users())

		w.client = w.Client(w.tenant, fmt.Sprintf("Fresh client %d", n)).ID
		w.connect(w.client, newScripted(false, history[len(history)-1]))
		w.sync()
		if want := active(w.users()); !slices.Equal(got, want) {
			t.Fatalf("the users are\n%s\nand of a fresh sync\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	})
	w.check()
}

// syncKilled runs a sync, whose process dies after each of so many steps.
func (w *world) syncKilled(t *rapid.T, kills []int) {
	lease, err := w.DB.StartSync(context.Background(), w.client, true, 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, steps := range kills {
		ctx, kill := context.WithCancel(context.Background())
		_, err := w.runner.Work(ctx, lease, func(int, int) {
			if steps--; steps < 0 {
				kill()
			}
		})
		kill()
		if err == nil {
			return
		}
		if !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
		lease = w.claim()
	}
	run, err := w.runner.Work(context.Background(), lease, nil)
	if err != nil || run.Status != domain.SyncCompleted {
		t.Fatalf("the run ended as %+v, %v", run, err)
	}
}
