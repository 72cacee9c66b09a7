package seed

import (
	"partnerapi/domain"
)

// addUsers adds users, without history, to a client that has none and is at least two days old. The first user is
// active, and is the manager of each other with a chance of 60%. A user is as old as the client with a chance of 55%.
func (g *generator) addUsers(c *client, language domain.Language, users int) {
	emails := &emailAllocator{domain: c.domain, taken: make(map[string]int, users)}
	created := domain.DateOf(c.CreatedAt)
	for i := range users {
		// The user is created in the first six days of the client or later, but before today.
		started := created.AddDays(g.between(0, min(5, created.DaysUntil(g.today)-2)) + 1)
		if g.chance(0.45) {
			started = started.AddDays(g.between(0, started.DaysUntil(g.today)-1))
		}
		u := g.newUser(language, emails)
		u.Client, u.CreatedAt = c.ID, g.at(started)
		u.ID = newID[domain.UserKind](g.random, u.CreatedAt)
		u.Status = domain.Active
		if i > 0 && g.chance(0.08) {
			u.Status = domain.Inactive
		}
		if i > 0 && g.chance(0.6) {
			u.ManagerEmail = &c.users[0].Email
		}
		g.setSource(u, c)
		c.users = append(c.users, u)
	}
}

// newUser returns a user with a random name, email, job and role. Most users have the given language.
func (g *generator) newUser(language domain.Language, emails *emailAllocator) *user {
	u := &user{}
	u.Language, u.Overrides = language, []string{}
	if g.chance(0.12) {
		u.Language = oneOf(g.random, []domain.Language{domain.English, domain.Spanish, domain.French})
	}
	u.FirstName, u.LastName = g.name(u.Language)
	u.Email = emails.newEmail(u.FirstName, u.LastName)
	u.Role = domain.RoleStandard
	if g.chance(0.95) {
		u.setJob(g.job())
	}
	if g.chance(0.03) {
		u.Role, u.Overrides = domain.RoleFinance, []string{"role"}
	}
	return u
}

// setJob sets a user's job, and the role as which it is classified.
func (u *user) setJob(j job) {
	u.Department, u.JobTitle = &j.department, &j.title
	u.Role = domain.ClassifyRole(j.title, j.department, u.Email)
}

// setSource sets a random source of a user, and a group of that source: one of the directory's groups, or the Manual
// group.
func (g *generator) setSource(u *user, c *client) {
	switch {
	case c.DirectorySync != nil && g.chance(0.88):
		c.setSourceAndGroup(u, domain.UserSource(*c.DirectorySync), g.between(1, len(c.groups)-1))
	case g.chance(0.5):
		c.setSourceAndGroup(u, domain.FromHand, 0)
	default:
		c.setSourceAndGroup(u, domain.FromAPI, 0)
	}
}

// setSourceAndGroup sets a user's source, and the group to the client's group with an index.
func (c *client) setSourceAndGroup(u *user, source domain.UserSource, group int) {
	u.Source, u.GroupID = source, &c.groups[group].ID
}

// active returns the active users for whom match returns true.
func (c *client) active(match func(*user) bool) (found []*user) {
	for _, u := range c.users {
		if u.Status == domain.Active && match(u) {
			found = append(found, u)
		}
	}
	return found
}

// anyUser matches all users; see active.
func anyUser(*user) bool { return true }
