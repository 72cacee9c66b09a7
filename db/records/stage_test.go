package records_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"partnerapi/db/records"
	"partnerapi/domain"
)

// staged are the lines of a round, in the order in which they are applied.
func (w *world) staged(kind, round int) (lines []records.StagedLine) {
	w.T.Helper()
	w.Must(records.EachStaged(w.T.Context(), w.DB, kind, round, func(l records.StagedLine) error {
		lines = append(lines, l)
		return nil
	}))
	return lines
}

// TestStagedLines: lines come by their clients and users and, within one, in their
// order, however long they are; a user's client is that of now.
func TestStagedLines(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	clients := map[domain.UserID]domain.ClientID{}
	var users []domain.UserID
	for range 3 {
		client := w.AddClient()
		for range 4 {
			user := w.AddUser(client, domain.RoleStandard, 750)
			users, clients[user] = append(users, user), client
		}
	}
	r := rand.New(rand.NewPCG(7, 1))
	var lines []records.StagedLine
	for n := range 3000 {
		user := users[r.IntN(len(users))]
		text := fmt.Sprintf("line %d", n+1)
		if n%100 == 0 {
			text += strings.Repeat(" ", 1<<20)
		}
		lines = append(lines, records.StagedLine{Kind: 1, Line: n + 1, Object: &[16]byte{byte(n >> 8), byte(n)}, UserID: &user, Text: text})
	}
	w.Must(records.StageLines(t.Context(), w.DB, append(lines, records.StagedLine{Kind: 2, Line: 1, Text: "another kind"})))
	w.Must(records.StageRepeated(t.Context(), w.DB))

	slices.SortStableFunc(lines, func(a, b records.StagedLine) int {
		one, two := clients[*a.UserID], clients[*b.UserID]
		return cmp.Or(slices.Compare(one[:], two[:]), slices.Compare(a.UserID[:], b.UserID[:]))
	})
	got := w.staged(1, 0)
	if len(got) != len(lines) {
		t.Fatalf("%d lines", len(got))
	}
	for i, l := range got {
		if l.Line != lines[i].Line || l.Text != lines[i].Text || *l.UserID != *lines[i].UserID {
			t.Fatalf("at %d is line %d, and not %d", i, l.Line, lines[i].Line)
		}
	}
	if again := w.staged(1, 1); len(again) != 0 {
		t.Errorf("%d lines of objects of one line each wait for another round", len(again))
	}

	w.Must(records.ClearStage(t.Context(), w.DB))
	if left := len(w.staged(1, 0)) + len(w.staged(2, 0)); left != 0 {
		t.Errorf("%d lines are left", left)
	}
}

// TestStageRepeated: of the lines of one object all but the first wait for the second
// round, there in the order of the input; ids that differ in a few bits only are of two
// objects, and kinds whose lines have no object stay as they are.
func TestStageRepeated(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r := rand.New(rand.NewPCG(7, 2))
	seen := map[[16]byte]bool{}
	var lines []records.StagedLine
	var first, repeated []int
	for n := range 2000 {
		object := [16]byte{0: 1, 15: byte(r.IntN(250)), 14: byte(r.IntN(4))}
		if seen[object] {
			repeated = append(repeated, n)
		} else {
			first = append(first, n)
		}
		seen[object] = true
		lines = append(lines, records.StagedLine{Kind: 1, Line: n, Object: &object, ClientID: &domain.ClientID{byte(r.IntN(5))}},
			records.StagedLine{Kind: 2, Line: n})
	}
	w.Must(records.StageLines(t.Context(), w.DB, lines))
	w.Must(records.StageRepeated(t.Context(), w.DB))

	numbers := func(kind, round int) (all []int) {
		for _, l := range w.staged(kind, round) {
			all = append(all, l.Line)
		}
		return all
	}
	got := numbers(1, 0)
	slices.Sort(got)
	if !slices.Equal(got, first) {
		t.Errorf("%d lines are the first of an object, and not %d", len(got), len(first))
	}
	if got := numbers(1, 1); !slices.Equal(got, repeated) {
		t.Errorf("%d lines wait, and not %d in their order", len(got), len(repeated))
	}
	if got := numbers(2, 0); len(got) != 2000 {
		t.Errorf("%d lines without objects", len(got))
	}
}

// TestStageEnds: what a line led to ends the reading.
func TestStageEnds(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.Must(records.StageLines(t.Context(), w.DB, []records.StagedLine{{Line: 1}, {Line: 2}}))
	n := 0
	err := records.EachStaged(t.Context(), w.DB, 0, 0, func(records.StagedLine) error {
		n++
		return context.Canceled
	})
	if !errors.Is(err, context.Canceled) || n != 1 {
		t.Errorf("%v after %d lines", err, n)
	}
}
