//go:build slow

package db_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"partnerapi/db"
	"partnerapi/db/dbtest/worldtest"
	"partnerapi/db/ingest"
	"partnerapi/db/pg"
	"partnerapi/domain"
)

// school is a client beside the model of its users' training.
type school struct {
	*world
	client      domain.ClientID
	model       *trainingModel
	users       []domain.UserID
	collections []domain.CollectionID // also those that were deleted
	assigned    []domain.FrameworkAssignmentID
}

// heldSQL shows what every user of a client has as the model does.
const heldSQL = `
	SELECT coalesce(string_agg(line, E'\n' ORDER BY line COLLATE "C"), '') FROM (
		SELECT concat_ws(' ', a.user_id, a.course_id, a.round, a.from_program::text, a.direct::text,
			(SELECT coalesce(array_agg(f ORDER BY f), '{}') FROM unnest(a.frameworks) AS f)::text,
			CASE WHEN a.completed_at IS NULL THEN a.due_on::text ELSE '' END,
			(a.completed_at IS NULL AND a.started_at IS NOT NULL)::text, (a.completed_at IS NOT NULL)::text) AS line
		FROM assignments AS a WHERE client_id = $1
	) AS lines`

func newSchool(w *world, t testing.TB) *school {
	s := &school{world: &world{&worldtest.World{DB: w.DB, T: t, Clock: w.Clock, Partner: w.Partner}}, client: db.NewID[domain.ClientKind]()}
	s.model = &trainingModel{
		now: w.Clock.Now, required: map[string]map[domain.CourseID]domain.Role{},
		users: map[domain.UserID]*learner{}, follows: map[domain.FrameworkAssignmentID]modelFramework{},
	}
	s.Must(s.Change(s.As(t.Context()), func(ctx context.Context, c *db.Change) error {
		return c.InsertClient(ctx, domain.Client{
			ID: s.client, Partner: w.Partner, Name: s.client.String(), Summary: domain.EmptySummary(c.At),
			CreatedAt: c.At, UpdatedAt: c.At,
		})
	}))
	type programmed struct {
		CourseID     domain.CourseID
		DueAfterDays int
	}
	program, err := pg.All[programmed](t.Context(), s.DB, "read the program", pg.SQL("SELECT course_id, due_after_days FROM default_program"))
	s.Must(err)
	s.model.program = pg.Index(program, func(p *programmed) (domain.CourseID, int) { return p.CourseID, p.DueAfterDays })
	for framework, courses := range s.requiredCourses() {
		s.model.required[framework] = pg.Index(courses, func(c *requiredCourse) (domain.CourseID, domain.Role) { return c.course, c.role })
	}
	return s
}

// What histories are about is little, so that they come back to it: the courses are
// one of the program that frameworks ask for too, one that two frameworks ask
// everybody for, one that one asks a role for and another everybody, and one of no
// framework.
var (
	learnerRoles      = []domain.Role{domain.RoleStandard, domain.RoleFinance}
	learnerFrameworks = []string{"nist_csf", "iso_27001", "soc2", "nydfs"}
	learnerCourses    = []domain.CourseID{courseNumber(1), courseNumber(9), courseNumber(9), courseNumber(10), courseNumber(8)}
)

func courseNumber(n byte) domain.CourseID {
	return domain.CourseID{0x01, 0x9b, 0x77, 0x40, 0, 0, 0x70, 0, 0x80, 15: n}
}

// create adds a user, in a collection or in none.
func (s *school) create(rt *rapid.T) {
	u := &learner{
		active: true, role: rapid.SampledFrom(learnerRoles).Draw(rt, "role"),
		in: map[domain.CollectionID]bool{}, rounds: map[domain.CourseID][]*heldRound{},
	}
	var into []domain.CollectionID
	if living := s.living(); len(living) > 0 && rapid.Bool().Draw(rt, "member") {
		into = []domain.CollectionID{rapid.SampledFrom(living).Draw(rt, "collection")}
		u.in[into[0]] = true
	}
	id := db.NewID[domain.UserKind]()
	s.Must(s.ChangeOf(s.T.Context(), s.client, func(ctx context.Context, c *db.Change, t *db.Tenant) error {
		if err := c.ShareAudiences(ctx, t.ID); err != nil {
			return err
		}
		if _, err := t.LockCollections(ctx, c, into...); err != nil {
			return err
		}
		return t.InsertUser(ctx, c, domain.User{
			ID: id, Client: t.ID, Email: id.String() + "@example.com", Status: domain.Active, Role: u.role,
			Language: domain.English, Source: domain.FromAPI, Score: u.role.Baseline(), CreatedAt: c.At, UpdatedAt: c.At,
		}, into)
	}))
	s.users = append(s.users, id)
	s.model.users[id] = u
	for course, days := range s.model.program {
		s.model.give(u, course, days, heldRound{program: true})
	}
	s.model.enter(u)
}

// living are the collections that were not deleted.
func (s *school) living() (list []domain.CollectionID) {
	for _, id := range s.collections {
		var exists bool
		s.Get("SELECT EXISTS (SELECT 1 FROM collections WHERE id = $1)", []any{id}, &exists)
		if exists {
			list = append(list, id)
		}
	}
	return list
}

// update changes the status or the role of a user.
func (s *school) update(id domain.UserID, set func(*learner)) {
	u := s.model.users[id]
	was := *u
	set(u)
	s.Must(s.updateUser(s.T.Context(), id, func(after *domain.User) {
		after.Status, after.Role = domain.Inactive, u.role
		if u.active {
			after.Status = domain.Active
		}
	}))
	if u.active && !was.active {
		s.model.renew(u)
	}
	s.model.enter(u)
}

// join makes a user a member of a collection.
func (s *school) join(id domain.UserID, to domain.CollectionID) {
	s.Must(s.addMember(s.T.Context(), s.client, to, id))
	s.model.users[id].in[to] = true
	s.model.enter(s.model.users[id])
}

// leave makes a user leave a collection, which withdraws nothing.
func (s *school) leave(id domain.UserID, from domain.CollectionID) {
	if !s.model.users[id].in[from] {
		return
	}
	s.Must(s.removeMember(s.T.Context(), s.client, from, id))
	delete(s.model.users[id].in, from)
}

// assignFramework assigns a framework: at once, or as to a large audience, whose batches
// follow.
func (s *school) assignFramework(rt *rapid.T) {
	f, _ := domain.FrameworkByID(rapid.SampledFrom(learnerFrameworks).Draw(rt, "framework"))
	n := domain.NewFrameworkAssignment{
		ID: db.NewID[domain.FrameworkAssignmentKind](), Framework: f, Audience: domain.Audience{Type: domain.AllUsers},
		Modules: domain.FrameworkModules{Training: rapid.IntRange(0, 5).Draw(rt, "training") > 0},
		Size:    rapid.SampledFrom([]int{1, domain.AssignAtOnce + 1}).Draw(rt, "size"),
	}
	if living := s.living(); len(living) > 0 && rapid.Bool().Draw(rt, "some") {
		n.Audience = domain.Audience{Type: domain.OfCollection, Collection: rapid.SampledFrom(living).Draw(rt, "collection")}
	}
	before := s.held()
	var scheduled []domain.Scheduled
	err := s.ChangeOf(s.T.Context(), s.client, func(ctx context.Context, c *db.Change, t *db.Tenant) (err error) {
		if err := c.LockAudiences(ctx, t.ID); err != nil {
			return err
		}
		scheduled, err = t.AssignFramework(ctx, c, n)
		return err
	})
	if domain.IsCode(err, domain.Conflict) {
		return
	}
	s.Must(err)
	s.model.follows[n.ID] = modelFramework{f.ID, n.Audience.Collection, !n.Modules.Training}
	s.assigned = append(s.assigned, n.ID)
	if n.Size > 1 && rapid.IntRange(0, 3).Draw(rt, "removed") == 0 { // before the batches
		s.removeFramework(n.ID)
	} else {
		for _, u := range s.model.users {
			s.model.enter(u)
		}
	}
	for more := 1; more > 0; {
		more, err = s.AssignWaiting(s.T.Context())
		s.Must(err)
	}
	if _, stands := s.model.follows[n.ID]; stands {
		given := 0
		for _, c := range scheduled {
			given += c.Users
		}
		if rounds := strings.Count(s.held(), "\n") - strings.Count(before, "\n"); before != "" && rounds != given {
			rt.Fatalf("%d courses are scheduled, and %d given", given, rounds)
		}
	}
}

// standing are the framework assignments that were not removed.
func (s *school) standing() (list []domain.FrameworkAssignmentID) {
	for _, id := range s.assigned {
		if _, stands := s.model.follows[id]; stands {
			list = append(list, id)
		}
	}
	return list
}

func (s *school) removeFramework(id domain.FrameworkAssignmentID) {
	s.Must(s.ChangeOf(s.T.Context(), s.client, func(ctx context.Context, c *db.Change, t *db.Tenant) error {
		return t.RemoveFramework(ctx, c, id)
	}))
	delete(s.model.follows, id)
	s.model.withdraw(id)
}

func (s *school) deleteCollection(id domain.CollectionID) {
	s.Must(s.ChangeOf(s.T.Context(), s.client, func(ctx context.Context, c *db.Change, t *db.Tenant) error {
		return t.DeleteCollection(ctx, c, id)
	}))
	for _, u := range s.model.users {
		delete(u.in, id)
	}
	for f, follows := range s.model.follows {
		if follows.collection == id {
			s.model.withdraw(f)
		}
	}
}

// train assigns a course directly.
func (s *school) train(id domain.UserID, course domain.CourseID) {
	s.Must(s.ChangeOf(s.T.Context(), s.client, func(ctx context.Context, c *db.Change, t *db.Tenant) error {
		users, err := t.LockUsers(ctx, c, []domain.UserID{id})
		if err != nil {
			return err
		}
		_, err = t.Assign(ctx, c, domain.CourseFor{
			Course: domain.Course{ID: course}, Users: users, DueOn: domain.DateOf(c.At).AddDays(5),
		})
		return err
	}))
	s.model.give(s.model.users[id], course, 5, heldRound{direct: true})
}

func (s *school) signal(kind domain.SignalType, id domain.UserID, course domain.CourseID) {
	s.Clock.Advance(time.Second)
	_, err := ingest.Apply(s.T.Context(), s.DB, []domain.Signal{{
		ID: db.NewID[domain.EventKind]().String(), Type: kind, At: s.Clock.Now(), User: id, Course: course,
	}})
	s.Must(err)
	if kind == domain.CourseStarted {
		s.model.start(s.model.users[id], course)
		return
	}
	s.model.complete(s.model.users[id], course)
}

// pass lets days pass, with the work of the last.
func (s *school) pass(days int) {
	s.Clock.Advance(time.Duration(days) * day)
	_, err := s.DailyRefresh(s.T.Context(), domain.DateOf(s.Clock.Now()), nil)
	s.Must(err)
	for _, u := range s.model.users {
		s.model.renew(u)
	}
}
