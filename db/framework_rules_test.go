package db_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"partnerapi/db"
	"partnerapi/domain"
)

// frameworkWith is a framework that asks for a measure.
func frameworkWith(m domain.Measure) string {
	return domain.Frameworks[slices.IndexFunc(domain.Frameworks, func(f domain.Framework) bool {
		return slices.Contains(f.Measures, m)
	})].ID
}

// Courses of cis_v8, for all and for finance, and one that no framework asks for.
var forAll, forFinance, forNobody = courseNumber(1), courseNumber(10), courseNumber(5)

// trained adds a user of a role, who was created the given number of days ago and then
// completed a course.
func (e *evaluatedRows) trained(role domain.Role, created int, course domain.CourseID, at time.Time) {
	e.round(e.user(row{"role": role, "created_at": daysAgo(created, 0)}), course, at)
}

// due adds users whose next courses are due in so many days.
func (e *evaluatedRows) due(days ...int) {
	for _, n := range days {
		e.user(row{"next_due_on": today.AddDays(n)})
	}
}

// mailed adds users who were sent a simulated mail at noon, of whom some clicked it.
func (e *evaluatedRows) mailed(users, clicked int) {
	for i := range users {
		if u := e.user(nil); i < clicked {
			e.click(u, noon, noon)
		} else {
			e.mail(u, noon, nil)
		}
	}
}

// rules are cases of what each measure counts (decisions 7.7): its words, the borders of its
// periods, and what many users are needed for. The detail, the value and whether it is met are wanted.
var rules = []struct {
	name string
	key  domain.Measure
	want string
	rows func(e *evaluatedRows)
}{
	{"within a year", "T1", "1 of 2 users completed all required courses within a year; 50; false", func(e *evaluatedRows) {
		e.trained("standard", 730, forAll, daysAgo(365, 0))
		e.trained("standard", 730, forAll, daysAgo(365, time.Microsecond))
	}},
	{"new users", "T2", "2 of 5 new users completed a required course within 30 days; 40; false", func(e *evaluatedRows) {
		e.trained("standard", 365, forAll, daysAgo(335, 0))
		e.trained("standard", 30, forAll, daysAgo(30, 0))
		e.trained("standard", 100, forAll, daysAgo(70, -time.Microsecond))
		e.trained("standard", 100, forAll, daysAgo(100, time.Microsecond))
		e.trained("standard", 100, forFinance, daysAgo(99, 0))
	}},
	{"in a role", "T3", "1 of 3 users in non-standard roles completed the course of their role within a year; 33.3; false",
		func(e *evaluatedRows) {
			e.trained("finance", 730, forFinance, daysAgo(365, 0))
			e.trained("finance", 730, forFinance, daysAgo(365, time.Microsecond))
			e.trained("hr", 730, forAll, noon)
		}},
	{"overdue", "T4", "2 of 3 users had nothing overdue; 66.7; false", func(e *evaluatedRows) { e.due(0, 1, -1) }},
	{"at the target", "T4", "19 of 20 users had nothing overdue; 95; true",
		func(e *evaluatedRows) { e.due(append(make([]int, 19), -1)...) }},
	{"simulated", "P1", "1 of 2 users received a simulation within 90 days; 50; false", func(e *evaluatedRows) {
		e.mail(e.user(nil), daysAgo(90, 0), nil)
		e.mail(e.user(nil), daysAgo(90, time.Microsecond), nil)
	}},
	{"no mails", "P2", "0 of 0 simulated emails of the last 90 days led to a click; 0; true", func(e *evaluatedRows) { e.user(nil) }},
	{"the click rate at the target", "P2", "1 of 20 simulated emails of the last 90 days led to a click; 5; true",
		func(e *evaluatedRows) { e.mailed(20, 1) }},
	{"judged before it is rounded", "P2", "8 of 159 simulated emails of the last 90 days led to a click; 5; false",
		func(e *evaluatedRows) { e.mailed(159, 8) }},
	{"half away from zero", "P2", "1 of 16 simulated emails of the last 90 days led to a click; 6.3; false",
		func(e *evaluatedRows) { e.mailed(16, 1) }},
	{"nothing to report", "P3", "0 of 0 simulated emails of the last 90 days led to a report; null; false",
		func(e *evaluatedRows) { e.user(nil) }},
	{"reported", "P3", "1 of 5 simulated emails of the last 90 days led to a report; 20; true", func(e *evaluatedRows) {
		e.mailed(4, 0)
		e.mail(e.user(nil), noon, row{"reported": true})
	}},
	{"no failing", "P4", "0 of 0 users who failed a simulation completed a course within 30 days; 100; true", func(e *evaluatedRows) {
		e.mail(e.user(nil), daysAgo(60, 0), row{"reported": true})
		e.click(e.user(nil), daysAgo(60, 0), daysAgo(30, -time.Microsecond))
		e.click(e.user(nil), daysAgo(400, 0), daysAgo(365, time.Microsecond))
	}},
	{"followed up", "P4", "2 of 3 users who failed a simulation completed a course within 30 days; 66.7; false", func(e *evaluatedRows) {
		for _, at := range []struct {
			failed  int
			trained time.Time
		}{{30, noon}, {365, daysAgo(365, 0)}, {200, daysAgo(170, -time.Microsecond)}} {
			user := e.user(nil)
			e.click(user, daysAgo(at.failed, 0), daysAgo(at.failed, 0))
			e.round(user, forNobody, at.trained)
		}
	}},
	{"signed", "A1", "1 of 4 users signed the current version of every policy that they must sign; 25; false", func(e *evaluatedRows) {
		p := e.policy(nil)
		e.sign(e.user(nil), p, 2, daysAgo(365, -time.Microsecond))
		e.sign(e.user(nil), p, 2, daysAgo(365, 0))
		e.sign(e.user(nil), p, 1, noon)
		e.user(nil)
	}},
	{"no policies", "A2", "0 of 0 policies had a review within a year; null; false", func(e *evaluatedRows) { e.user(nil) }},
	{"reviewed", "A2", "1 of 2 policies had a review within a year; 50; false", func(e *evaluatedRows) {
		e.user(nil)
		e.policy(row{"requires_acknowledgment": false})
		e.policy(row{"reviewed_at": daysAgo(365, time.Microsecond)})
		e.policy(row{"archived_at": noon})
	}},
	{"no report", "R1", "0 compliance reports generated within 90 days; 0; false", func(e *evaluatedRows) {
		e.user(nil)
		e.report("compliance", "ready", daysAgo(90, time.Microsecond))
		e.report("compliance", "pending", noon)
		e.report("policy", "ready", noon)
	}},
	{"a report", "R1", "1 compliance report generated within 90 days; 1; true", func(e *evaluatedRows) {
		e.user(nil)
		e.report("compliance", "ready", daysAgo(90, 0))
	}},
	{"an empty audience", "A2", "0 users in the audience; null; false", func(e *evaluatedRows) {
		e.user(row{"status": domain.Inactive})
		e.policy(nil)
	}},
	{"reports for an empty audience", "R1", "0 users in the audience; null; false",
		func(e *evaluatedRows) { e.report("compliance", "ready", noon) }},
}

// TestMeasures: what each measure counts, on each side of each border.
func TestMeasures(t *testing.T) {
	w := newWorld(t)
	for _, c := range rules {
		e := newEvaluatedRows(w.AddClient())
		c.rows(e)
		id := e.follow(frameworkWith(c.key), nil)
		w.store(e)
		w.Must(db.EvaluateAll(t.Context(), w.DB))
		if got := said(w.evaluations(e.client)[id], c.key); got != c.want {
			t.Errorf("%s, %s:\n got %s\nwant %s", c.key, c.name, got, c.want)
		}
		w.Exec("UPDATE framework_assignments SET evaluated_at = $1", noon)
	}
}

// said is a requirement's detail, value and whether it is met.
func said(e domain.Evaluation, key domain.Measure) string {
	for _, r := range e.Requirements {
		if r.Key == key {
			value := "null"
			if r.Value != nil {
				value = fmt.Sprint(*r.Value)
			}
			return fmt.Sprintf("%s; %s; %t", r.Detail, value, r.Met)
		}
	}
	return "no such requirement"
}
