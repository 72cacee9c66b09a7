//go:build slow

package db_test

import (
	"testing"

	"pgregory.net/rapid"

	"partnerapi/db"
	"partnerapi/domain"
)

func (s *school) held() (text string) {
	s.Get(heldSQL, []any{s.client}, &text)
	return text
}

// check holds the courses that are stored against the model.
func (s *school) check(rt *rapid.T, after string) {
	if stored, want := s.held(), s.model.String(); stored != want {
		rt.Fatalf("after %s there is\n%s\nnot\n%s", after, stored, want)
	}
}

// recount holds what follows from the courses against a recount.
func (s *school) recount(rt *rapid.T) {
	var wrong int
	s.Get(`SELECT count(*) FROM clients AS c WHERE id = $1 AND framework_ids <> ARRAY(SELECT DISTINCT framework_id
		FROM framework_assignments WHERE client_id = c.id ORDER BY framework_id)`, []any{s.client}, &wrong)
	if wrong > 0 {
		rt.Fatal("the client's list of frameworks is not that of its assignments")
	}
	before := s.shownUsers(s.client)
	s.Must(s.Rescore(s.T.Context(), s.client, s.users))
	for id, anew := range s.shownUsers(s.client) {
		if now := before[id]; !now.Right || now.Training != anew.Training {
			rt.Fatalf("user %s shows %s, and scored anew %s", id, now.Training, anew.Training)
		}
	}
}

// step does one thing of a history and names it.
func (s *school) step(rt *rapid.T) string {
	living := s.living()
	var kinds []string
	if len(s.users) < 2 {
		kinds = append(kinds, "create")
	}
	if len(s.users) > 0 {
		kinds = append(kinds, "assign", "assign", "turn", "turn", "role", "train", "start", "start", "complete", "complete", "complete", "pass", "pass")
	}
	if len(s.users) > 0 && len(living) < 2 {
		kinds = append(kinds, "collection")
	}
	if len(s.model.follows) > 0 {
		kinds = append(kinds, "remove", "remove")
	}
	if len(living) > 0 {
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
		s.removeFramework(rapid.SampledFrom(s.standing()).Draw(rt, "assignment"))
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
		s.pass(rapid.SampledFrom([]int{1, 40, 200, 366}).Draw(rt, "days"))
	case "join":
		s.join(user, rapid.SampledFrom(living).Draw(rt, "collection"))
	case "leave":
		s.leave(user, rapid.SampledFrom(living).Draw(rt, "collection"))
	case "delete":
		s.deleteCollection(rapid.SampledFrom(living).Draw(rt, "collection"))
	}
	return kind
}

// TestCoursesEqualTheModel: after any history of joining, leaving, activating,
// assigning, removing, starting, completing and renewing, users have the courses,
// for the reasons, that the naive model says.
func TestCoursesEqualTheModel(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	rapid.Check(t, func(rt *rapid.T) {
		s := newSchool(w, t)
		for range rapid.IntRange(5, 25).Draw(rt, "steps") {
			s.check(rt, s.step(rt))
		}
		s.recount(rt)
		s.Exec("UPDATE clients SET archived_at = $2 WHERE id = $1", s.client, noon) // no work for the days of others
	})
}
