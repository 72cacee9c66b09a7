package seed

import (
	"slices"
	"time"

	"partnerapi/db"
	"partnerapi/domain"
)

// addFramework assigns a framework to an audience, daysAgo days ago but after the client's creation. audienceID is nil
// for all users.
func (g *generator) addFramework(
	c *client, framework string, audience domain.FrameworkAudienceType, audienceID *[16]byte, policies bool, daysAgo int,
) {
	at := g.at(laterDate(domain.DateOf(c.CreatedAt).AddDays(1), g.today.AddDays(-daysAgo)))
	c.frameworks = append(c.frameworks, db.FrameworkRow{
		ClientID: c.ID, ID: newID[domain.FrameworkAssignmentKind](g.random, at), FrameworkID: framework,
		AudienceType: audience, AudienceID: audienceID, Training: true, Phishing: true, Policies: policies,
		Reporting: true, CreatedAt: at,
	})
}

// newAssignment returns the first round of a course of a user, assigned at a time.
func (u *user) newAssignment(spec courseSpec, at time.Time) assignment {
	return assignment{
		owner: u.owner(), CourseID: spec.CourseID, Round: 1, Position: spec.Position, Frameworks: [][16]byte{}, AssignedAt: at,
		DueOn: domain.DateOf(at).AddDays(spec.DueAfterDays),
	}
}

// addAssignments adds all rounds of a user's course: the first one assigned at the time at, and for an active user one
// more whenever a completion is spec.Months old. The reason is the framework assignment f or, if nil, the program.
func (g *generator) addAssignments(u *user, spec courseSpec, b behavior, at time.Time, f *db.FrameworkRow) {
	a := u.newAssignment(spec, at)
	a.FromProgram = f == nil
	if f != nil {
		a.Frameworks = append(a.Frameworks, f.ID)
	}
	for ; ; a.Round++ {
		a.Frameworks = slices.Clone(a.Frameworks) // each round's own: addFrameworkTraining appends to them
		a.CompletedAt = g.completionTime(&a, b)
		u.training = append(u.training, a)
		if a.CompletedAt.IsZero() || spec.Months <= 0 || u.Status != domain.Active {
			return
		}
		renewedOn := addMonths(domain.DateOf(a.CompletedAt), spec.Months)
		if renewedOn.After(g.today) {
			return
		}
		u.training[len(u.training)-1].Superseded = true
		a.AssignedAt, a.DueOn = renewedOn.Time(), renewedOn.AddDays(30) // renewals are due in 30 days
	}
}

// completionTime returns a random time at which a user completes a course, mostly before it is due. It returns zero if
// the user has not completed it yet.
func (g *generator) completionTime(a *assignment, b behavior) time.Time {
	assigned := domain.DateOf(a.AssignedAt)
	on := assigned.AddDays(g.between(1, assigned.DaysUntil(a.DueOn)))
	if g.chance(0.15) {
		on = a.DueOn.AddDays(g.between(1, 40))
	}
	if !g.chance(b.diligent) || !on.Before(g.today) {
		return time.Time{}
	}
	return g.at(on)
}

// addMonths returns the same day of a later month or, if that month is shorter, its last day, like PostgreSQL's
// interval arithmetic.
func addMonths(d domain.Date, months int) domain.Date {
	t := d.Time().AddDate(0, months, 0)
	if t.Day() != d.Time().Day() {
		t = t.AddDate(0, 0, -t.Day())
	}
	return domain.DateOf(t)
}

// addFrameworkTraining adds the courses that the client's frameworks require of an active user. If the user already has
// the course, the framework assignment is added to its reasons.
func (g *generator) addFrameworkTraining(u *user, c *client, b behavior) {
	for i := range c.frameworks {
		f := &c.frameworks[i]
		if u.Status != domain.Active || !c.inAudience(u, f.AudienceID) {
			continue
		}
		for _, spec := range g.catalogue.required[f.FrameworkID] {
			if spec.Role != "" && spec.Role != u.Role {
				continue
			}
			if existing := u.latest(spec.CourseID); existing != nil {
				existing.Frameworks = append(existing.Frameworks, f.ID)
				continue
			}
			g.addAssignments(u, spec, b, latestTime(f.CreatedAt, u.CreatedAt), f)
		}
	}
}

// latest returns the user's last round of a course, or nil.
func (u *user) latest(course domain.CourseID) (last *assignment) {
	for i := range u.training {
		if u.training[i].CourseID == course {
			last = &u.training[i]
		}
	}
	return last
}

// inAudience reports whether a user is in the group or collection with an id. A nil audience contains all users.
func (c *client) inAudience(u *user, audience *[16]byte) bool {
	if audience == nil || [16]byte(*u.GroupID) == *audience {
		return true
	}
	return slices.ContainsFunc(c.collections, func(k collection) bool {
		return [16]byte(k.ID) == *audience && slices.ContainsFunc(k.members, func(m member) bool { return m.UserID == u.ID })
	})
}
