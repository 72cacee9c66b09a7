package db_test

import (
	"context"
	"errors"
	"testing"

	"partnerapi/domain"
)

// TestAssignWaitingPassesOverLocks: a client of which all that waits is held by another
// transaction delays no other, nor does a user who is held delay those beside.
func TestAssignWaitingPassesOverLocks(t *testing.T) {
	w := newWorld(t)
	course := courseNumber(1)
	wait := func(users int) (client domain.ClientID, all []domain.UserID) {
		client = w.AddClient()
		for range users {
			all = append(all, w.AddUser(client, domain.RoleStandard, 750))
			w.Add("waiting_assignments", row{"client_id": client, "user_id": all[len(all)-1], "course_id": course,
				"due_on": "2026-07-01", "notify": false, "asked_at": noon})
		}
		return client, all
	}
	free, users := wait(4)
	rows, _ := wait(2)
	for range 9 {
		wait(1)
	}

	done := errors.New("done")
	err := w.Tx(t.Context(), func(ctx context.Context) error {
		w.Must(w.ExecIn(ctx, "SELECT 1 FROM waiting_assignments WHERE client_id = ? FOR UPDATE", rows))
		w.Must(w.ExecIn(ctx, "SELECT 1 FROM users WHERE client_id NOT IN (?, ?) FOR NO KEY UPDATE", rows, free))
		w.Must(w.ExecIn(ctx, "SELECT 1 FROM users WHERE id = ? FOR NO KEY UPDATE", users[2]))
		for _, want := range []int{3, 0} {
			if n, err := w.AssignWaiting(t.Context()); n != want || err != nil {
				t.Errorf("a batch of %d, %v; want %d", n, err, want)
			}
		}
		return done
	})
	if !errors.Is(err, done) {
		t.Fatal(err)
	}

	total := 0
	for n := 1; n > 0; total += n {
		n, err = w.AssignWaiting(t.Context())
		w.Must(err)
	}
	if total != 12 {
		t.Errorf("%d are given the course afterwards", total)
	}
	if given := w.Number("SELECT count(*) FROM assignments WHERE course_id = $1", course); given != 15 {
		t.Errorf("%d have the course", given)
	}
}
