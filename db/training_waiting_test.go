package db_test

import (
	"context"
	"errors"
	"testing"

	"partnerapi/db/pg"
	"partnerapi/domain"
)

// TestAssignWaitingPassesOverLocks: a client of which all that waits is held by another
// transaction delays no other, nor does a user who is held delay those beside.
func TestAssignWaitingPassesOverLocks(t *testing.T) {
	w := newWorld(t)
	course := domain.CourseID{0x01, 0x9b, 0x77, 0x40, 0, 0, 0x70, 0, 0x80, 15: 1}
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
		lock := func(what string, args ...any) {
			_, err := pg.Exec(ctx, w.DB, "lock", pg.SQL(what, args...))
			w.Must(err)
		}
		lock("SELECT 1 FROM waiting_assignments WHERE client_id = ? FOR UPDATE", rows)
		lock("SELECT 1 FROM users WHERE client_id NOT IN (?, ?) FOR NO KEY UPDATE", rows, free)
		lock("SELECT 1 FROM users WHERE id = ? FOR NO KEY UPDATE", users[2])
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
	var given int
	if w.Get("SELECT count(*) FROM assignments WHERE course_id = $1", []any{course}, &given); given != 15 {
		t.Errorf("%d have the course", given)
	}
}
