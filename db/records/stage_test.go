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

// wantStaged holds the lines of a round, in the order in which they are applied.
func (w *world) wantStaged(kind, round int, want []records.StagedLine) {
	w.T.Helper()
	var got []records.StagedLine
	w.Must(records.EachStaged(w.T.Context(), w.DB, kind, round, func(l records.StagedLine) error {
		got = append(got, l)
		return nil
	}))
	if len(got) != len(want) {
		w.T.Fatalf("%d lines of kind %d in round %d, not %d", len(got), kind, round, len(want))
	}
	for i, l := range got {
		if l.Line != want[i].Line || l.Text != want[i].Text || (l.UserID != nil && *l.UserID != *want[i].UserID) {
			w.T.Fatalf("at %d of round %d is line %d, and not %d", i, round, l.Line, want[i].Line)
		}
	}
}

// TestStagedLines: lines come by their clients and users and, within one, in their order,
// however long they are; a user's client is that of now. Of the lines of one object all but
// the first wait for the second round, there in the order of the input; ids that differ in a
// few bits only are of two objects, and kinds whose lines have no object stay as they are.
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
	seen := map[[16]byte]bool{}
	var lines, first, repeated, others []records.StagedLine
	for n := range 3000 {
		object, user := [16]byte{0: 1, 15: byte(r.IntN(250)), 14: byte(r.IntN(8))}, users[r.IntN(len(users))]
		line := records.StagedLine{Kind: 1, Line: n + 1, Object: &object, UserID: &user, Text: fmt.Sprintf("line %d", n+1)}
		if n%100 == 0 {
			line.Text += strings.Repeat(" ", 1<<20)
		}
		if seen[object] {
			repeated = append(repeated, line)
		} else {
			first = append(first, line)
		}
		seen[object] = true
		others = append(others, records.StagedLine{Kind: 2, Line: n + 1})
		lines = append(lines, line, others[n])
	}
	w.Must(records.StageLines(t.Context(), w.DB, lines))
	w.Must(records.StageRepeated(t.Context(), w.DB))

	slices.SortStableFunc(first, func(a, b records.StagedLine) int {
		one, two := clients[*a.UserID], clients[*b.UserID]
		return cmp.Or(slices.Compare(one[:], two[:]), slices.Compare(a.UserID[:], b.UserID[:]))
	})
	w.wantStaged(1, 0, first)
	w.wantStaged(1, 1, repeated)
	w.wantStaged(2, 0, others)

	w.Must(records.ClearStage(t.Context(), w.DB))
	w.wantStaged(1, 0, nil)
	w.wantStaged(2, 0, nil)
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
