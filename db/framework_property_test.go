//go:build slow

package db_test

import (
	"maps"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"partnerapi/db"
	"partnerapi/db/pg"
	"partnerapi/domain"
)

func (s *school) held() (text string) {
	s.Scan(heldSQL, []any{s.client}, &text)
	return text
}

// check holds the courses that are stored against the model.
func (s *school) check(rt *rapid.T, after string) {
	if stored, want := s.held(), s.model.String(); stored != want {
		rt.Fatalf("after %s there is\n%s\nnot\n%s", after, stored, want)
	}
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

func (s *school) shown() map[string]shownUser {
	s.T.Helper()
	rows, err := pg.All[shownUser](s.T.Context(), s.DB, "read users", pg.SQL(shownTraining, s.client))
	s.Must(err)
	return pg.Index(rows, func(u *shownUser) (string, shownUser) { return u.ID, *u })
}

// recount holds what follows from the courses against a recount, though a step looks at few
// users again; updated_at moves where what is shown changed.
func (s *school) recount(rt *rapid.T, after string, before map[string]shownUser) {
	wrong := s.Number(`SELECT count(*) FROM clients AS c WHERE id = $1 AND framework_ids <> ARRAY(SELECT DISTINCT framework_id
		FROM framework_assignments WHERE client_id = c.id ORDER BY framework_id)`, s.client)
	if wrong > 0 {
		rt.Fatal("the client's list of frameworks is not that of its assignments")
	}
	shown := s.shown()
	s.Must(s.Rescore(s.T.Context(), s.client, s.users))
	for id, anew := range s.shown() {
		now := shown[id]
		if !now.Right || now.Training != anew.Training {
			rt.Fatalf("after %s user %s shows %s, and scored anew %s", after, id, now.Training, anew.Training)
		}
		if was, known := before[id]; known && was.Training != now.Training && was.Updated == now.Updated {
			rt.Fatalf("after %s user %s went from %s to %s without updated_at", after, id, was.Training, now.Training)
		}
	}
}

// step does one thing of a history and names it.
func (s *school) step(rt *rapid.T) string {
	var kinds []string
	if len(s.users) < 2 {
		kinds = append(kinds, "create")
	}
	if len(s.users) > 0 {
		kinds = append(kinds, "assign", "assign", "turn", "turn", "role", "train", "start", "start", "complete", "complete", "complete", "pass", "pass")
	}
	if len(s.users) > 0 && len(s.collections) < 2 {
		kinds = append(kinds, "collection")
	}
	if len(s.model.follows) > 0 {
		kinds = append(kinds, "remove", "remove")
	}
	if len(s.collections) > 0 {
		kinds = append(kinds, "join", "join", "leave", "delete")
	}
	kind := rapid.SampledFrom(kinds).Draw(rt, "kind")
	var user domain.UserID
	if len(s.users) > 0 {
		user = rapid.SampledFrom(s.users).Draw(rt, "user")
	}
	course := func() domain.CourseID { return rapid.SampledFrom(learnerCourses).Draw(rt, "course") }
	switch kind {
	case "create":
		s.create(rt)
	case "collection":
		id := db.NewID[domain.CollectionKind]()
		s.Add("collections", row{"client_id": s.client, "id": id, "name": id.String(), "name_key": id.String()})
		s.collections = append(s.collections, id)
	case "assign":
		s.assignFramework(rt)
	case "remove":
		ids := slices.SortedFunc(maps.Keys(s.model.follows), func(a, b domain.FrameworkAssignmentID) int {
			return slices.Compare(a[:], b[:])
		})
		s.removeFramework(rapid.SampledFrom(ids).Draw(rt, "assignment"))
	case "turn":
		s.update(user, func(u *learner) { u.active = !u.active })
	case "role":
		s.update(user, func(u *learner) { u.role = rapid.SampledFrom(learnerRoles).Draw(rt, "role") })
	case "train":
		s.train(user, course())
	case "start":
		s.signal(domain.CourseStarted, user, course())
	case "complete":
		s.signal(domain.CourseCompleted, user, course())
	case "pass":
		s.pass(rapid.SampledFrom([]int{1, 40, 200, 364, 365, 366}).Draw(rt, "days"))
	case "join":
		s.join(user, rapid.SampledFrom(s.collections).Draw(rt, "collection"))
	case "leave":
		s.leave(user, rapid.SampledFrom(s.collections).Draw(rt, "collection"))
	case "delete":
		s.deleteCollection(rapid.SampledFrom(s.collections).Draw(rt, "collection"))
	}
	return kind
}

// TestCoursesEqualTheModel: after any history of joining, leaving, activating,
// assigning, removing, starting, completing and renewing, users have the courses,
// for the reasons, that the naive model says, and the next course and score of a recount.
func TestCoursesEqualTheModel(t *testing.T) {
	t.Parallel()
	w := newWorld(t, db.WithAcceptedClock()) // it is set months ahead
	w.Exec("UPDATE courses SET renewal_months = 0 WHERE id = $1", forGood)
	rapid.Check(t, func(rt *rapid.T) {
		s := newSchool(w)
		for range rapid.IntRange(5, 25).Draw(rt, "steps") {
			before := s.shown()
			s.Clock.Advance(time.Second)
			step := s.step(rt)
			s.check(rt, step)
			s.recount(rt, step, before)
		}
		s.Exec("UPDATE clients SET archived_at = $2 WHERE id = $1", s.client, noon) // no work for the days of others
	})
}
