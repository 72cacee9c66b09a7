package seed

import (
	"slices"
	"time"

	"partnerapi/domain"
)

// addShowcase gives a large client some of everything, at whatever probability.
func (g *generator) addShowcase(c *client) {
	g.varyUsers(c)
	g.addShowcaseCollections(c)
	g.addShowcaseFrameworks(c)
	g.addHistory(c, 30)
	g.addShowcaseTraining(c)
	g.addShowcasePhishing(c)
	g.addShowcaseExposures(c)
	g.addShowcasePolicies(c)
	g.addShowcaseAdmins(c)
	g.recordEmails(c)
	g.recordShowcaseEmails(c)
	g.addShowcaseReports(c)
}

// varyUsers makes users of every role in both states, and of every source,
// language and kind of override. They are as old as the client, so that
// anything may have happened to them.
func (g *generator) varyUsers(c *client) {
	for _, u := range c.users[:20] {
		u.CreatedAt = g.at(domain.DateOf(c.CreatedAt).AddDays(2))
		u.ID = newID[domain.UserKind](g.random, u.CreatedAt)
	}
	for i, role := range slices.Repeat(domain.RoleStandard.Values(), 2) {
		u := c.users[i]
		u.setJob(specialJobs[domain.Role(role)][0])
		u.Overrides = nil
		u.Status = domain.Active
		if i >= len(domain.RoleStandard.Values()) {
			u.Status = domain.Inactive
		}
	}
	for i, source := range domain.FromAPI.Values() {
		group := 0
		if source == string(domain.FromMicrosoft) || source == string(domain.FromGoogle) {
			group = 1 + i
		}
		c.setSourceAndGroup(c.users[10+i], domain.UserSource(source), group)
	}
	emails := &emailAllocator{domain: "contractors." + c.domain, taken: map[string]int{}}
	for i, language := range domain.English.Values() {
		u := c.users[14+i]
		u.Language = domain.Language(language)
		u.FirstName, u.LastName = g.name(u.Language)
		u.Email = emails.newEmail(u.FirstName, u.LastName)
		u.Status = domain.Active
	}
	c.users[17].Role, c.users[17].Overrides = domain.RoleHR, []string{"role"}
	c.users[18].Overrides = []string{"department", "job_title"}
	c.users[19].Status, c.users[19].Overrides = domain.Inactive, []string{"status"}
}

func (g *generator) addShowcaseCollections(c *client) {
	role := func(role domain.Role) func(*user) bool { return func(u *user) bool { return u.Role == role } }
	everybody := c.active(anyUser)
	g.addCollection(c, "Finance team", "All who approve or make payments", "dashboard", c.active(role(domain.RoleFinance)))
	g.addCollection(c, "Leadership", "", "dashboard", c.active(role(domain.RoleExecutive)))
	g.addCollection(c, "New starters", "Hired this year", "api", everybody[len(everybody)*3/4:])
	g.addCollection(c, "Équipe Québec", "Francophones", "api",
		c.active(func(u *user) bool { return u.Language == domain.French }))
	g.addCollection(c, "Former project", "Nobody is left", "dashboard", nil)
}

func (g *generator) addShowcaseFrameworks(c *client) {
	finance, office := uuid(c.collections[0].id), uuid(c.groups[1].ID)
	g.addFramework(c, "iso_27001", "all", nil, true, 200)
	g.addFramework(c, "pci_dss", "collection", &finance, false, 120)
	g.addFramework(c, "hipaa", "group", &office, false, 20)
}

// addShowcaseTraining makes sure of one user without anything left to do, one who is
// behind and one whose second round has begun.
func (g *generator) addShowcaseTraining(c *client) {
	done, behind, renewed := c.users[0], c.users[1], c.users[2]
	for _, u := range []*user{done, behind, renewed} {
		u.training = nil
	}
	yesterday := g.today.AddDays(-1)
	for i, l := range g.catalogue.program {
		a := assignment{courseSpec: l, round: 1, program: true, assignedAt: g.at(g.today.AddDays(-120))}
		a.dueOn = domain.DateOf(a.assignedAt).AddDays(l.dueAfter)
		behind.training = append(behind.training, a)

		a.completedAt = g.at(yesterday.AddDays(-3 * i))
		done.training = append(done.training, a)

		a.assignedAt = renewed.CreatedAt
		a.dueOn = domain.DateOf(a.assignedAt).AddDays(l.dueAfter)
		// Their windows have ended in the last weeks, and end in the next.
		a.completedAt = g.at(addMonths(g.today, -l.months).AddDays(7*i - 20))
		renewed.training = append(renewed.training, a)
		if again := addMonths(domain.DateOf(a.completedAt), l.months); !again.After(g.today) {
			renewed.training = append(renewed.training,
				assignment{courseSpec: l, round: 2, program: true, assignedAt: again.Time(), dueOn: again.AddDays(30)})
		}
	}

	for _, u := range []*user{done, behind, renewed} {
		held := len(u.training)
		for i := range c.uses {
			g.addFrameworkTraining(u, c, &c.uses[i], behaviour{})
		}
		for i := held; i < len(u.training); i++ {
			u.training[i].completedAt = g.at(yesterday)
		}
	}
}

// addShowcasePhishing makes sure of mails in every status, reported ones and
// automated ones, all of the last weeks; and of real mails of every kind.
func (g *generator) addShowcasePhishing(c *client) {
	users := c.active(anyUser)
	for i, r := range []outcome{
		{}, {reported: true}, {opened: true}, {opened: true, reported: true},
		{opened: true, attachment: true}, {opened: true, clicked: true},
		{opened: true, attachment: true, clicked: true, credentials: true},
		{opened: true, clicked: true, credentials: true, reported: true},
		{automated: scannerReasons[0]}, {opened: true, clicked: true, automated: scannerReasons[1]},
	} {
		u := users[i]
		u.simulations = append(u.simulations, g.sentSimulation(u, g.at(g.today.AddDays(-2-2*i)), r))
	}
	for i, u := range users[:3] {
		u.simulations = append(u.simulations, g.scheduledSimulation(u, g.at(g.today.AddDays(2+i))))
	}
	refused := g.scheduledSimulation(users[3], g.at(g.today.AddDays(-3)))
	refused.failure = "the mail server refuses the address: 550 5.1.1 unknown"
	users[3].simulations = append(users[3].simulations, refused)
	for i := range suspiciousEmails {
		g.addReportedEmail(users[0], i, 3+4*i)
		g.addReportedEmail(users[1], i, 200+4*i)
	}
}

// addShowcaseExposures makes sure of exposures of every severity, resolved and not.
func (g *generator) addShowcaseExposures(c *client) {
	users := c.active(anyUser)[:4]
	for i := range g.catalogue.breaches {
		b := &g.catalogue.breaches[i]
		for n, u := range users {
			if !u.hasExposure(b) {
				g.addExposure(u, b, 20+90*n+i, n%2 == 1)
			}
		}
	}
}

func (u *user) hasExposure(b *breach) bool {
	return slices.ContainsFunc(u.exposures, func(e exposure) bool { return e.breach == b })
}

// addShowcasePolicies publishes policies of every scope, some of which nobody needs to
// sign, are archived, or whose collection is gone.
func (g *generator) addShowcasePolicies(c *client) {
	everybody := c.active(anyUser)
	office, finance := &c.groups[1].Group, &c.collections[0]
	var payers []*user
	for _, m := range finance.members {
		payers = append(payers, m.user)
	}
	use := g.addPolicy(c, "Acceptable use", "tenant", uuid(c.ID), 3, everybody)
	use.description = "What company devices and accounts may be used for"
	for i, version := range []int{3, 3, 2} { // one signature stands, one has lapsed, one is of an old version
		daysAgo := []int{30, use.renewal + 40, 60}[i]
		use.replaceSignature(everybody[i].ID, version, g.at(g.today.AddDays(-daysAgo)))
	}
	g.addPolicy(c, "Clean desk", "user_container", uuid(office.ID), 1,
		c.active(func(u *user) bool { return u.Group == office })).renewal = 180
	g.addPolicy(c, "Payment approval", "collection", uuid(finance.id), 2, payers)
	g.addPolicy(c, "Travel handbook", "tenant", uuid(c.ID), 1, nil).acknowledged = false
	deleted := collection{id: newID[domain.CollectionKind](g.random, c.CreatedAt), name: "Merger team",
		createdBy: "dashboard", createdAt: c.CreatedAt, updatedAt: c.CreatedAt}
	c.deletedCollections = append(c.deletedCollections, deleted)
	g.addPolicy(c, "Merger confidentiality", "collection", uuid(deleted.id), 1, nil)
	old := g.addPolicy(c, "Fax machines", "tenant", uuid(c.ID), 1, everybody)
	old.archivedAt = g.at(g.today.AddDays(-90))
}

// replaceSignature replaces a user's signatures of a policy by one.
func (p *policy) replaceSignature(user domain.UserID, version int, at time.Time) {
	p.signatures = slices.DeleteFunc(p.signatures, func(s signature) bool { return s.user == user })
	p.signatures = append(p.signatures, signature{of: p.id, user: user, version: version, at: at})
}

func (g *generator) addShowcaseAdmins(c *client) {
	for i, role := range []domain.AdminRole{domain.OwnerRole, domain.FullRole, domain.ViewerRole, domain.ViewerRole} {
		c.admins = append(c.admins, g.newAdmin(&c.ID, c.domain, role, c.CreatedAt.AddDate(0, 0, 60*i)))
	}
	g.addInvite(c, "new.auditor", domain.ViewerRole, 2, false)
	g.addInvite(c, "night.operator", domain.FullRole, 20, false)
	g.addInvite(c, "former.helpdesk", domain.FullRole, 300, true)
}

// recordShowcaseEmails makes sure that one user was sent mail of every type, lately and
// long ago.
func (g *generator) recordShowcaseEmails(c *client) {
	u := c.users[0]
	for i, kind := range []string{"training-invite", "phishing", "phish-reminder", "certificate", "monthly-report",
		"welcome", "policy-reminder", "admin-invite"} {
		for _, daysAgo := range []int{2 + 3*i, 45 + 10*i, 300 + 5*i} {
			if at := g.at(g.today.AddDays(-daysAgo)); kind != "phishing" {
				g.recordEmail(c, u, kind, at)
			} else {
				u.simulations = append(u.simulations, g.sentSimulation(u, at, outcome{opened: true}))
				g.recordSimulation(c, u, &u.simulations[len(u.simulations)-1])
			}
		}
	}
}
