package db_test

import (
	"context"
	"testing"

	"partnerapi/db"
	"partnerapi/db/dbtest/worldtest"
	"partnerapi/domain"
)

// overdue counts the events of overdue assignments of a user, all there are where the
// user is zero.
func (w *world) overdue(user domain.UserID) int {
	w.T.Helper()
	return w.Number("SELECT count(*) FROM events WHERE type = $1 AND (user_id = $2 OR $3)", domain.CourseOverdue, user, user.IsZero())
}

// assign gives users a course and tells them, as a caller does.
func (w *world) assign(client domain.ClientID, course domain.CourseID, due domain.Date, users ...domain.UserID) (out domain.Assigned) {
	w.T.Helper()
	w.Must(w.ChangeOf(w.T.Context(), client, func(ctx context.Context, c *db.Change, t *db.Tenant) error {
		locked, err := t.LockUsers(ctx, c, users)
		if err != nil {
			return err
		}
		out, err = t.Assign(ctx, c, domain.CourseFor{Course: domain.Course{ID: course}, Users: locked, DueOn: due, Notify: true})
		return err
	}))
	return out
}

// TestAssignStatements: giving a course takes the same number of statements for
// one user and for many, and fewer where no score moves.
func TestAssignStatements(t *testing.T) {
	counter := &worldtest.Statements{}
	w := newWorld(t, db.WithTracer(counter))
	moved, still := map[int]int{}, map[int]int{}
	for _, n := range []int{1, 50} {
		client := w.AddClient()
		users := make([]domain.UserID, n)
		for i := range users {
			users[i] = w.AddUser(client, domain.RoleStandard, 750)
		}
		moved[n] = counter.During(func() {
			if out := w.assign(client, courseNumber(1), today.AddDays(30), users...); out.Count != n {
				t.Errorf("the course was assigned to %d users, want %d", out.Count, n)
			}
		})
		if mails := w.Number("SELECT count(*) FROM outbox WHERE client_id = $1", client); mails != n {
			t.Errorf("%d emails are in the outbox, want %d", mails, n)
		}
		still[n] = counter.During(func() { w.assign(client, courseNumber(2), today.AddDays(40), users...) })
	}
	if moved[1] != moved[50] || still[1] != still[50] || still[1] != moved[1]-2 {
		t.Errorf("statements where scores move: %v, where none does: %v", moved, still)
	}
}

// note notes what is overdue, as the background work does.
func (w *world) note() {
	w.T.Helper()
	for more := true; more; {
		var err error
		_, more, err = w.NoteOverdue(w.T.Context())
		w.Must(err)
	}
}

// TestNoteOverdue: an assignment has one event, on the day after the one on which it
// was due, unless it was completed before; one that is given overdue has one too.
func TestNoteOverdue(t *testing.T) {
	w := newWorld(t)
	client, archived := w.AddClient(), w.AddClient()
	late, today, done, inactive := w.AddUser(client, domain.RoleStandard, 750), w.AddUser(client, domain.RoleStandard, 750),
		w.AddUser(client, domain.RoleStandard, 750), w.AddUser(client, domain.RoleStandard, 750)
	w.Exec("UPDATE users SET status = 'inactive' WHERE id = $1", inactive)
	w.AddRound(client, late, 1, -1, -1)
	w.AddRound(client, late, 2, 0, -1)
	w.AddRound(client, today, 1, 0, -1)
	w.AddRound(client, done, 1, -1, 0)
	w.AddRound(client, inactive, 1, -1, -1)
	w.AddRound(archived, w.AddUser(archived, domain.RoleStandard, 750), 1, -1, -1)
	w.Exec("UPDATE clients SET archived_at = $2 WHERE id = $1", archived, noon)
	for _, want := range [][4]int{{1, 0, 0, 1}, {2, 1, 0, 1}, {2, 1, 0, 1}} {
		w.note()
		w.note()
		for i, user := range []domain.UserID{late, today, done, inactive} {
			if n := w.overdue(user); n != want[i] {
				t.Errorf("%s: the user %d has %d events, not %d", w.Now(), i, n, want[i])
			}
		}
		w.Clock.Advance(day)
	}
	if n := w.overdue(domain.UserID{}); n != 4 {
		t.Errorf("%d events", n)
	}

	given := w.AddUser(client, domain.RoleStandard, 750)
	w.assign(client, courseNumber(1), domain.DateOf(noon), given)
	w.note()
	if n := w.overdue(given); n != 1 {
		t.Errorf("an assignment that is given overdue has %d events", n)
	}
}

// TestNoteOverdueAtOnce: of several processes at once, and beside one that completes an
// assignment, each has one event.
func TestNoteOverdueAtOnce(t *testing.T) {
	w := newWorld(t)
	client := w.AddClient()
	w.AddRound(client, w.AddUser(client, domain.RoleStandard, 750), 1, -1, -1)
	w.Exec(`INSERT INTO users (client_id, id, email, first_name, last_name, name_key, status, role, preferred_language, source, score, created_at, updated_at)
		SELECT $1, gen_random_uuid(), n || '@example.com', 'A', 'B', 'a b', 'active', 'standard', 'en', 'api', 750, $2, $2 FROM generate_series(1, 2500) AS n`, client, noon)
	w.Exec(`INSERT INTO assignments (client_id, user_id, course_id, position, direct, assigned_at, due_on)
		SELECT u.client_id, u.id, a.course_id, 1, true, a.assigned_at, a.due_on FROM users AS u, assignments AS a WHERE u.email LIKE '%@example.com' AND u.id <> a.user_id`)
	locked := w.AddUser(client, domain.RoleStandard, 750)
	w.AddRound(client, locked, 1, -1, -1)
	w.Must(w.Tx(t.Context(), func(ctx context.Context) error {
		if err := w.ExecIn(ctx, "UPDATE assignments SET completed_at = now() WHERE user_id = ?", locked); err != nil {
			return err
		}
		w.atOnce(3, func(int) (err error) {
			for range 4 {
				if _, _, err = w.NoteOverdue(t.Context()); err != nil {
					break
				}
			}
			return err
		})
		return nil
	}))
	w.note()
	if n := w.overdue(domain.UserID{}); n != 2501 {
		t.Errorf("%d events, not one for each of 2501 assignments", n)
	}
	if n := w.overdue(locked); n != 0 {
		t.Errorf("a completed one has %d events", n)
	}
}
