package seed

import (
	"time"

	"partnerapi/domain"
)

// story invents clients and what happened to their users before today.
type story struct {
	*dice
	today     domain.Date
	catalogue *catalogue
}

// founding is what a client is invented from.
type founding struct {
	partner   domain.PartnerID
	name      string
	industry  string
	created   domain.Date
	directory domain.Directory // empty for none
	noDarkWeb bool
	language  domain.Language // what most users speak
}

// directoryGroups are the groups of users that a directory has.
var directoryGroups = []string{"Head office", "Field staff", "Contractors"}

// found makes a client with its groups, the manual one first, and no users.
func (s *story) found(f founding) *client {
	at := s.at(f.created)
	c := &client{
		Client: domain.Client{
			ID: newID[domain.ClientKind](s.dice, at), Partner: f.partner, Name: f.name,
			DarkWebMonitoring: !f.noDarkWeb, CreatedAt: at, UpdatedAt: at,
		},
		domain: slug(f.name) + ".example",
	}
	if f.industry != "" {
		c.Industry = &f.industry
	}
	names := []string{domain.ManualGroup}
	if f.directory != "" {
		c.DirectorySync = &f.directory
		names = append(names, directoryGroups...)
	}
	for i, name := range names {
		c.groups = append(c.groups, group{Group: domain.Group{ID: newID[domain.GroupKind](s.dice, at), Name: name}, manual: i == 0})
	}
	return c
}

// hire makes a number of users of a client, without anything that happened to
// them. The first is active; most are as old as the client.
func (s *story) hire(c *client, language domain.Language, users int) {
	emails := &addresses{domain: c.domain, taken: make(map[string]int, users)}
	founded := domain.DateOf(c.CreatedAt)
	for i := range users {
		started := founded.AddDays(s.between(0, min(5, founded.DaysUntil(s.today)-2)) + 1)
		if s.chance(0.45) {
			started = started.AddDays(s.between(0, started.DaysUntil(s.today)-1))
		}
		u := s.person(language, emails)
		u.Client, u.CreatedAt = c.ID, s.at(started)
		u.ID = newID[domain.UserKind](s.dice, u.CreatedAt)
		u.Status = domain.Active
		if i > 0 && s.chance(0.08) {
			u.Status = domain.Inactive
		}
		if i > 0 && s.chance(0.6) {
			u.ManagerEmail = &c.users[0].Email
		}
		s.place(u, c)
		c.users = append(c.users, u)
	}
}

// person invents who somebody is.
func (s *story) person(language domain.Language, emails *addresses) *user {
	u := &user{}
	u.Language = language
	if s.chance(0.12) {
		u.Language = oneOf(s.dice, []domain.Language{domain.English, domain.Spanish, domain.French})
	}
	u.FirstName, u.LastName = s.name(u.Language)
	u.Email = emails.of(u.FirstName, u.LastName)
	u.Role = domain.RoleStandard
	if s.chance(0.95) {
		u.employ(s.job())
	}
	if s.chance(0.03) {
		u.Role, u.Overrides = domain.RoleFinance, []string{"role"}
	}
	return u
}

// employ gives a user a job and the role that follows from it.
func (u *user) employ(j job) {
	u.Department, u.JobTitle = &j.department, &j.title
	u.Role = domain.ClassifyRole(j.title, j.department, u.Email)
}

// place says where the record of a user came from.
func (s *story) place(u *user, c *client) {
	switch {
	case c.DirectorySync != nil && s.chance(0.88):
		c.enlist(u, domain.UserSource(*c.DirectorySync), s.between(1, len(c.groups)-1))
	case s.chance(0.5):
		c.enlist(u, domain.FromHand, 0)
	default:
		c.enlist(u, domain.FromAPI, 0)
	}
}

// enlist puts a user in one of the client's groups.
func (c *client) enlist(u *user, source domain.UserSource, group int) {
	u.Source, u.Group = source, &c.groups[group].Group
}

// active lists the users who take part and that match.
func (c *client) active(match func(*user) bool) (found []*user) {
	for _, u := range c.users {
		if u.Status == domain.Active && match(u) {
			found = append(found, u)
		}
	}
	return found
}

func anyone(*user) bool { return true }

// temper is how a user takes to training and to mail, each from 0 to 1.
type temper struct{ diligent, gullible, alert float64 }

func (s *story) temper() temper {
	x := s.Float64()
	diligent := 0.985 + 0.015*s.Float64() // of each course, and there are many
	if s.chance(0.15) {
		diligent = 0.3 + 0.6*s.Float64()
	}
	return temper{diligent: diligent, gullible: 0.02 + 0.45*x*x*x, alert: 0.5 * s.Float64()}
}

// live lets everything happen to the users of a client, simulated mails so
// many days apart.
func (s *story) live(c *client, every int) {
	for _, u := range c.users {
		t := s.temper()
		for _, l := range s.catalogue.program {
			s.study(u, l, t, u.CreatedAt, domain.FrameworkUseID{})
		}
		for i := range c.uses {
			s.comply(u, c, &c.uses[i], t)
		}
		s.phish(u, t, every)
		s.alarm(u, t)
		if c.DarkWebMonitoring {
			s.expose(u)
		}
	}
}

// study gives a user a course, and again whenever its renewal window ended.
func (s *story) study(u *user, l lesson, t temper, at time.Time, use domain.FrameworkUseID) {
	due := domain.DateOf(at).AddDays(l.dueAfter)
	for round := 1; ; round++ {
		a := assignment{lesson: l, round: round, use: use, assignedAt: at, dueOn: due}
		a.completedAt = s.completion(&a, t)
		u.training = append(u.training, a)
		if a.completedAt.IsZero() || l.months <= 0 || u.Status != domain.Active {
			return
		}
		again := addMonths(domain.DateOf(a.completedAt), l.months)
		if again.After(s.today) {
			return
		}
		at, due = again.Time(), again.AddDays(30)
	}
}

// completion is when a user completes a course, mostly in time; zero for not
// yet.
func (s *story) completion(a *assignment, t temper) time.Time {
	given := domain.DateOf(a.assignedAt)
	on := given.AddDays(s.between(1, given.DaysUntil(a.dueOn)))
	if s.chance(0.15) {
		on = a.dueOn.AddDays(s.between(1, 40))
	}
	if !s.chance(t.diligent) || !on.Before(s.today) {
		return time.Time{}
	}
	return s.at(on)
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

// comply gives a user the courses of a framework whose audience they are in
// and that they do not have.
func (s *story) comply(u *user, c *client, f *frameworkUse, t temper) {
	if u.Status != domain.Active || !c.inAudience(u, f.audienceID) {
		return
	}
	for _, l := range s.catalogue.required[f.framework] {
		if !u.has(l.course) {
			s.study(u, l, t, latest(f.createdAt, u.CreatedAt), f.id)
		}
	}
}

func (u *user) has(course domain.CourseID) bool {
	for i := range u.training {
		if u.training[i].course == course {
			return true
		}
	}
	return false
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
