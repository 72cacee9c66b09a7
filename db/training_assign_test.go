package db_test

import (
	"context"
	"math/rand/v2"
	"testing"

	"partnerapi/db"
	"partnerapi/db/dbtest/worldtest"
	"partnerapi/db/pg"
	"partnerapi/domain"
)

// assignCourse gives the course with this number to all of a client's users.
func (w *world) assignCourse(client domain.ClientID, course byte, due domain.Date, notify bool) (out domain.Assigned) {
	w.T.Helper()
	w.Must(w.ChangeOf(w.T.Context(), client, func(ctx context.Context, c *db.Change, t *db.Tenant) error {
		users, err := t.LockAudience(ctx, c, domain.Audience{Type: domain.AllUsers})
		if err != nil {
			return err
		}
		id := domain.CourseID{0x01, 0x9b, 0x77, 0x40, 0, 0, 0x70, 0, 0x80, 15: course}
		out, err = t.Assign(ctx, c, domain.CourseFor{
			Course: domain.Course{ID: id, RenewalMonths: 12}, Users: users, DueOn: due, Notify: notify,
		})
		return err
	}))
	return out
}

// shownTraining is what is shown of the training and the score of a client's
// users, when they were updated, and whether the next course is that of a recount.
const shownTraining = `
	SELECT u.id::text AS id, concat_ws(' ', u.next_due_on, u.next_course_id, u.score) AS training, u.updated_at::text AS updated,
		(u.next_due_on, u.next_course_id) IS NOT DISTINCT FROM (n.due_on, n.course_id) AS right
	FROM users AS u LEFT JOIN LATERAL (
		SELECT due_on, course_id FROM assignments WHERE user_id = u.id AND completed_at IS NULL
		ORDER BY due_on, position, course_id LIMIT 1
	) AS n ON true WHERE u.client_id = ?`

type shownUser struct {
	ID, Training, Updated string
	Right                 bool
}

func (w *world) shownUsers(client domain.ClientID) map[string]shownUser {
	w.T.Helper()
	rows, err := pg.All[shownUser](w.T.Context(), w.DB, "read users", pg.SQL(shownTraining, client))
	w.Must(err)
	return pg.Index(rows, func(u *shownUser) (string, shownUser) { return u.ID, *u })
}

// TestAssignEqualsARecount: whatever users had, giving them a course stores the
// next course and the score that a recount gives, though it looks at few users
// again; and updated_at moves where their read changes.
func TestAssignEqualsARecount(t *testing.T) {
	w := newWorld(t)
	client := w.AddClient()
	r := rand.New(rand.NewPCG(5, 7))
	var users []domain.UserID
	for i := range 60 {
		user := w.AddUser(client, domain.RoleStandard, 750)
		users = append(users, user)
		if i%3 == 0 {
			w.Exec("UPDATE users SET created_at = $2 WHERE id = $1", user, noon.AddDate(0, 0, -r.IntN(70)))
		}
		for course := byte(1); course <= 4; course++ {
			switch r.IntN(3) {
			case 0:
				w.AddRound(client, user, course, r.IntN(5)-2, -1)
			case 1:
				w.AddRound(client, user, course, -400, r.IntN(400))
			}
		}
	}
	w.Exec(`UPDATE users AS u SET (next_due_on, next_course_id) = (SELECT due_on, course_id FROM assignments
		WHERE user_id = u.id AND completed_at IS NULL ORDER BY due_on, position, course_id LIMIT 1)`)
	w.Must(w.Rescore(t.Context(), client, users))

	for step := range 10 {
		before := w.shownUsers(client)
		w.Clock.Advance(day / 100)
		w.assignCourse(client, byte(1+r.IntN(6)), today.AddDays(r.IntN(5)-2), false)
		after := w.shownUsers(client)
		w.Must(w.Rescore(t.Context(), client, users))
		for id, anew := range w.shownUsers(client) {
			was, now := before[id], after[id]
			if !now.Right || now.Training != anew.Training {
				t.Errorf("step %d: user %s shows %s, and scored anew %s", step, id, now.Training, anew.Training)
			}
			if was.Training != now.Training && was.Updated == now.Updated {
				t.Errorf("step %d: user %s went from %s to %s without updated_at", step, id, was.Training, now.Training)
			}
		}
	}
}

// TestAssignStatements: giving a course takes the same number of statements for
// one user and for many, and fewer where no score moves.
func TestAssignStatements(t *testing.T) {
	counter := &worldtest.Statements{}
	w := newWorld(t, db.WithTracer(counter))
	moved, still := map[int]int{}, map[int]int{}
	for _, n := range []int{1, 50} {
		client := w.AddClient()
		for range n {
			w.AddUser(client, domain.RoleStandard, 750)
		}
		counter.Reset()
		if out := w.assignCourse(client, 1, today.AddDays(30), true); out.Count != n || len(out.Mails) != n {
			t.Errorf("%d users of %d were given the course, and %d mails", out.Count, n, len(out.Mails))
		}
		moved[n] = counter.Count()
		counter.Reset()
		w.assignCourse(client, 2, today.AddDays(40), true)
		still[n] = counter.Count()
	}
	if moved[1] != moved[50] || still[1] != still[50] || still[1] != moved[1]-2 {
		t.Errorf("statements where scores move: %v, where none does: %v", moved, still)
	}
}
