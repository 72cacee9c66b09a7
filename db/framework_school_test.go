//go:build slow

package db_test

import (
	"context"
	"slices"
	"strings"
	"time"

	"pgregory.net/rapid"

	"partnerapi/db"
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
	collections []domain.CollectionID
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

func newSchool(w *world) *school {
	s := &school{world: w, client: db.NewID[domain.ClientKind](), model: &trainingModel{
		now: w.Clock.Now, program: map[domain.CourseID]int{}, required: map[string]map[domain.CourseID]domain.Role{},
		users: map[domain.UserID]*learner{}, follows: map[domain.FrameworkAssignmentID]modelFramework{},
	}}
	w.Must(w.Change(w.caller(), func(ctx context.Context, c *db.Change) error {
		return c.InsertClient(ctx, domain.Client{
			ID: s.client, Partner: w.Partner, Name: s.client.String(), Summary: domain.EmptySummary(c.At),
			CreatedAt: c.At, UpdatedAt: c.At,
		})
	}))
	type course struct {
		CourseID     domain.CourseID
		DueAfterDays int
		FrameworkID  string
		Role         domain.Role
	}
	courses, err := pg.All[course](w.T.Context(), w.DB, "read the program and frameworks", pg.SQL(`
		SELECT course_id, due_after_days, '' AS framework_id, '' AS role FROM default_program
		UNION ALL SELECT course_id, 0, framework_id, coalesce(role, '') FROM framework_courses`))
	w.Must(err)
	for _, c := range courses {
		if c.FrameworkID == "" {
			s.model.program[c.CourseID] = c.DueAfterDays
			continue
		}
		if s.model.required[c.FrameworkID] == nil {
			s.model.required[c.FrameworkID] = map[domain.CourseID]domain.Role{}
		}
		s.model.required[c.FrameworkID][c.CourseID] = c.Role
	}
	return s
}

// What histories are about is little, so that they come back to it: the courses are
// one of the program that frameworks ask for too, one that two frameworks ask
// everybody for, one that one asks a role for and another everybody, and forGood, of
// no framework, which is never renewed.
var (
	learnerRoles      = []domain.Role{domain.RoleStandard, domain.RoleFinance}
	learnerFrameworks = []string{"nist_csf", "iso_27001", "soc2", "nydfs"}
	learnerCourses    = []domain.CourseID{courseNumber(1), courseNumber(9), courseNumber(9), courseNumber(10), forGood}
	forGood           = courseNumber(8)
)

// create adds a user, in a collection or in none.
func (s *school) create(rt *rapid.T) {
	u := &learner{
		active: true, role: rapid.SampledFrom(learnerRoles).Draw(rt, "role"),
		in: map[domain.CollectionID]bool{}, rounds: map[domain.CourseID][]*heldRound{},
	}
	var into []domain.CollectionID
	if len(s.collections) > 0 && rapid.Bool().Draw(rt, "member") {
		into = []domain.CollectionID{rapid.SampledFrom(s.collections).Draw(rt, "collection")}
		u.in[into[0]] = true
	}
	id := db.NewID[domain.UserKind]()
	s.Must(s.ChangeOf(s.T.Context(), s.client, func(ctx context.Context, c *db.Change, t *db.Tenant) error {
		if err := c.LockAudiencesShared(ctx, t.ID); err != nil {
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
	if len(s.collections) > 0 && rapid.Bool().Draw(rt, "some") {
		n.Audience = domain.Audience{Type: domain.OfCollection, Collection: rapid.SampledFrom(s.collections).Draw(rt, "collection")}
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
	s.collections = slices.DeleteFunc(s.collections, func(c domain.CollectionID) bool { return c == id })
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
	s.assign(s.client, course, domain.DateOf(s.Clock.Now()).AddDays(5), id)
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
