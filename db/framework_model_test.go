//go:build slow

package db_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"partnerapi/domain"
)

// heldRound is a round of a course as the naive model has it.
type heldRound struct {
	program, direct    bool
	frameworks         map[domain.FrameworkAssignmentID]bool
	due                domain.Date
	started, completed time.Time // zero for not yet
}

// learner is a user of the model.
type learner struct {
	active bool
	role   domain.Role
	in     map[domain.CollectionID]bool
	rounds map[domain.CourseID][]*heldRound
}

// modelFramework is a framework assignment of the model; a zero collection stands for all
// users.
type modelFramework struct {
	framework  string
	collection domain.CollectionID
	untrained  bool // its training module is off
}

// trainingModel says in a naive way which courses users should have, and why.
type trainingModel struct {
	now      func() time.Time
	program  map[domain.CourseID]int                    // days until each is due
	required map[string]map[domain.CourseID]domain.Role // by framework; no role for everybody
	users    map[domain.UserID]*learner
	follows  map[domain.FrameworkAssignmentID]modelFramework
}

func (m *trainingModel) today() domain.Date { return domain.DateOf(m.now()) }

// asks reports whether a framework assignment asks a user for a course.
func (m *trainingModel) asks(id domain.FrameworkAssignmentID, u *learner, course domain.CourseID) bool {
	f, stands := m.follows[id]
	role, required := m.required[f.framework][course]
	return stands && !f.untrained && required && u.active && (role == "" || role == u.role) &&
		(f.collection.IsZero() || u.in[f.collection])
}

// lapsed reports whether the renewal window of a completed round has ended.
func (m *trainingModel) lapsed(course domain.CourseID, r *heldRound) bool {
	end := r.completed.AddDate(1, 0, 0)
	if end.Day() != r.completed.Day() { // of a leap year
		end = end.AddDate(0, 0, -1)
	}
	return course != forGood && !r.completed.IsZero() && !domain.DateOf(end).After(m.today())
}

// carry are the reasons of a round that a further one has too.
func (m *trainingModel) carry(u *learner, course domain.CourseID, last *heldRound) *heldRound {
	next := &heldRound{program: last.program, direct: last.direct, frameworks: map[domain.FrameworkAssignmentID]bool{}}
	for id := range last.frameworks {
		if m.asks(id, u, course) {
			next.frameworks[id] = true
		}
	}
	return next
}

// give gives an active user a course for a reason.
func (m *trainingModel) give(u *learner, course domain.CourseID, days int, reason heldRound) {
	if !u.active {
		return
	}
	held := u.rounds[course]
	var to *heldRound
	switch {
	case len(held) == 0:
		to = &heldRound{frameworks: map[domain.FrameworkAssignmentID]bool{}}
	case m.lapsed(course, held[len(held)-1]):
		to = m.carry(u, course, held[len(held)-1])
	default:
		to = held[len(held)-1]
		if !to.completed.IsZero() {
			reason.direct = false // skipped
		}
	}
	if len(held) == 0 || to != held[len(held)-1] {
		to.due = m.today().AddDays(days)
		u.rounds[course] = append(held, to)
	}
	to.program, to.direct = to.program || reason.program, to.direct || reason.direct
	maps.Copy(to.frameworks, reason.frameworks)
}

// enter gives a user what the frameworks ask for.
func (m *trainingModel) enter(u *learner) {
	for id, f := range m.follows {
		for course := range m.required[f.framework] {
			if m.asks(id, u, course) {
				m.give(u, course, 30, heldRound{frameworks: map[domain.FrameworkAssignmentID]bool{id: true}})
			}
		}
	}
}

// renew gives a user again what has lapsed and has a reason.
func (m *trainingModel) renew(u *learner) {
	for course, held := range u.rounds {
		last := held[len(held)-1]
		next := m.carry(u, course, last)
		if u.active && m.lapsed(course, last) && (next.program || next.direct || len(next.frameworks) > 0) {
			next.due = m.today().AddDays(30)
			u.rounds[course] = append(held, next)
		}
	}
}

// withdraw takes back what a framework assignment asked for.
func (m *trainingModel) withdraw(id domain.FrameworkAssignmentID) {
	for _, u := range m.users {
		for course, held := range u.rounds {
			u.rounds[course] = slices.DeleteFunc(held, func(r *heldRound) bool {
				asked := r.frameworks[id]
				delete(r.frameworks, id)
				return asked && !r.program && !r.direct && len(r.frameworks) == 0 && r.completed.IsZero() && r.started.IsZero()
			})
			if len(u.rounds[course]) == 0 {
				delete(u.rounds, course)
			}
		}
	}
}

// complete and start are what signals of now do.
func (m *trainingModel) complete(u *learner, course domain.CourseID) {
	if len(u.rounds[course]) == 0 {
		u.rounds[course] = []*heldRound{{direct: true, due: m.today(), frameworks: map[domain.FrameworkAssignmentID]bool{}}}
	}
	last := u.rounds[course][len(u.rounds[course])-1]
	last.completed = m.now()
}

func (m *trainingModel) start(u *learner, course domain.CourseID) {
	held := u.rounds[course]
	if len(held) > 0 && held[len(held)-1].completed.IsZero() && held[len(held)-1].started.IsZero() {
		held[len(held)-1].started = m.now()
	}
}

// String shows what every user has.
func (m *trainingModel) String() string {
	var lines []string
	for id, u := range m.users {
		for course, held := range u.rounds {
			for n, r := range held {
				var frameworks []string
				for f := range r.frameworks {
					frameworks = append(frameworks, f.UUID())
				}
				slices.Sort(frameworks)
				due := r.due.String()
				if !r.completed.IsZero() {
					due = ""
				}
				lines = append(lines, fmt.Sprintf("%s %s %d %t %t {%s} %s %t %t", id.UUID(), course.UUID(), n+1, r.program, r.direct,
					strings.Join(frameworks, ","), due, r.completed.IsZero() && !r.started.IsZero(), !r.completed.IsZero()))
			}
		}
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}
