package seed

import (
	"time"

	"partnerapi/domain"
)

// addFramework assigns a framework to an audience; audienceID is nil for all users.
func (g *generator) addFramework(c *client, framework, audience string, audienceID *[16]byte, policies bool,
	daysAgo int) {
	at := g.at(laterDate(domain.DateOf(c.CreatedAt).AddDays(1), g.today.AddDays(-daysAgo)))
	c.uses = append(c.uses, frameworkUse{
		id: newID[domain.FrameworkAssignmentKind](g.random, at), framework: framework, audience: audience,
		audienceID: audienceID, policies: policies, createdAt: at,
	})
}

// addAssignments gives a user a course for a framework, nil for the program, and
// again whenever its renewal window ended.
func (g *generator) addAssignments(u *user, l courseSpec, t behaviour, at time.Time, f *frameworkUse) {
	due := domain.DateOf(at).AddDays(l.dueAfter)
	for round := 1; ; round++ {
		a := assignment{courseSpec: l, round: round, program: f == nil, assignedAt: at, dueOn: due}
		if f != nil {
			a.frameworks = append(a.frameworks, uuid(f.id))
		}
		a.completedAt = g.completionTime(&a, t)
		u.training = append(u.training, a)
		if a.completedAt.IsZero() || l.months <= 0 || u.Status != domain.Active {
			return
		}
		again := addMonths(domain.DateOf(a.completedAt), l.months)
		if again.After(g.today) {
			return
		}
		at, due = again.Time(), again.AddDays(30)
	}
}

// completionTime is when a user completes a course, mostly in time; zero for not
// yet.
func (g *generator) completionTime(a *assignment, t behaviour) time.Time {
	given := domain.DateOf(a.assignedAt)
	on := given.AddDays(g.between(1, given.DaysUntil(a.dueOn)))
	if g.chance(0.15) {
		on = a.dueOn.AddDays(g.between(1, 40))
	}
	if !g.chance(t.diligent) || !on.Before(g.today) {
		return time.Time{}
	}
	return g.at(on)
}

// addMonths is the same day of a later month, or its last day where it is
// shorter: what PostgreSQL makes of an interval.
func addMonths(d domain.Date, months int) domain.Date {
	t := d.Time().AddDate(0, months, 0)
	if t.Day() != d.Time().Day() {
		t = t.AddDate(0, 0, -t.Day())
	}
	return domain.DateOf(t)
}

// addFrameworkTraining gives a user the courses of a framework whose audience they are in;
// those that they have get the framework as one more reason.
func (g *generator) addFrameworkTraining(u *user, c *client, f *frameworkUse, t behaviour) {
	if u.Status != domain.Active || !c.inAudience(u, f.audienceID) {
		return
	}
	for _, l := range g.catalogue.required[f.framework] {
		if l.role != "" && l.role != u.Role {
			continue
		}
		if held := u.latest(l.course); held != nil {
			held.frameworks = append(held.frameworks, uuid(f.id))
			continue
		}
		g.addAssignments(u, l, t, latestTime(f.createdAt, u.CreatedAt), f)
	}
}

// latest is the last round of a course that the user has; nil for none.
func (u *user) latest(course domain.CourseID) (last *assignment) {
	for i := range u.training {
		if u.training[i].course == course {
			last = &u.training[i]
		}
	}
	return last
}

// inAudience reports whether a user is in a group or collection of the client;
// in no particular one is everybody.
func (c *client) inAudience(u *user, audience *[16]byte) bool {
	if audience == nil || uuid(u.Group.ID) == *audience {
		return true
	}
	for i := range c.collections {
		if uuid(c.collections[i].id) != *audience {
			continue
		}
		for _, m := range c.collections[i].members {
			if m.user == u {
				return true
			}
		}
	}
	return false
}
