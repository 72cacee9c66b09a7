package seed

import (
	"slices"
	"time"

	"partnerapi/db"
	"partnerapi/domain"
)

// addShowcase adds all kinds of data to a large client, even rare ones.
func (g *generator) addShowcase(c *client) {
	g.varyUsers(c)
	g.addShowcaseCollections(c)
	g.addShowcaseFrameworks(c)
	g.addHistory(c, c.users, 30)
	g.addShowcaseTraining(c)
	g.addShowcasePhishing(c)
	g.addShowcaseExposures(c)
	g.addShowcasePolicies(c)
	g.addShowcaseAdmins(c)
	g.recordEmails(c, c.users)
	g.recordShowcaseEmails(c)
	g.addShowcaseReports(c)
}

// varyUsers changes the first 20 users: 0 to 9 have every role in both states, 10 to 13 every source, 14 to 16 every
// language, and 17 to 19 every kind of override. They are about as old as the client, for a long history.
func (g *generator) varyUsers(c *client) {
	for _, u := range c.users[:20] {
		u.CreatedAt = g.at(domain.DateOf(c.CreatedAt).AddDays(2))
		u.ID = newID[domain.UserKind](g.random, u.CreatedAt)
	}
	for i, role := range slices.Repeat(domain.RoleStandard.Values(), 2) {
		u := c.users[i]
		u.setJob(specialJobs[domain.Role(role)][0])
		u.Overrides = []string{}
		u.Status = domain.Active
		if i >= len(domain.RoleStandard.Values()) {
			u.Status = domain.Inactive
		}
	}
	for i, source := range domain.FromAPI.Values() {
		group := 0 // the Manual group
		if source == string(domain.FromMicrosoft) || source == string(domain.FromGoogle) {
			group = 1 + i // one of the directory
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

// hasRole returns a function that reports whether a user has a role.
func hasRole(role domain.Role) func(*user) bool { return func(u *user) bool { return u.Role == role } }

// addShowcaseCollections adds collections by both creators, the first one of the finance team and the last one empty.
func (g *generator) addShowcaseCollections(c *client) {
	everybody := c.active(anyUser)
	for _, k := range []struct {
		name, description string
		createdBy         domain.Creator
		members           []*user
	}{
		{"Finance team", "All who approve or make payments", domain.ByDashboard, c.active(hasRole(domain.RoleFinance))},
		{"Leadership", "", domain.ByDashboard, c.active(hasRole(domain.RoleExecutive))},
		{"New starters", "Hired this year", domain.ByAPI, everybody[len(everybody)*3/4:]},
		{"Équipe Québec", "Francophones", domain.ByAPI,
			c.active(func(u *user) bool { return u.Language == domain.French })},
		{"Former project", "No one is left", domain.ByDashboard, nil},
	} {
		g.addCollection(c, k.name, k.description, k.createdBy, k.members)
	}
}

// addShowcaseFrameworks adds a framework for each type of audience, the first one with the module policies.
func (g *generator) addShowcaseFrameworks(c *client) {
	finance, office := [16]byte(c.collections[0].ID), [16]byte(c.groups[1].ID)
	g.addFramework(c, "iso_27001", domain.FrameworkForAll, nil /* all users */, true /* policies */, 200 /* daysAgo */)
	g.addFramework(c, "pci_dss", domain.FrameworkForCollection, &finance, false, 120)
	g.addFramework(c, "hipaa", domain.FrameworkForGroup, &office, false, 20)
}

// addShowcaseTraining replaces the training of the first three users: one has completed all courses, one has only
// overdue courses of the program, and one has courses in their second round.
func (g *generator) addShowcaseTraining(c *client) {
	finished, overdue, renewed := c.users[0], c.users[1], c.users[2]
	for _, u := range []*user{finished, overdue, renewed} {
		u.training = nil
	}
	yesterday := g.today.AddDays(-1)
	for i, spec := range g.catalogue.program {
		late := overdue.newAssignment(spec, g.at(g.today.AddDays(-120)))
		late.FromProgram = true
		overdue.training = append(overdue.training, late)

		done := late // as that of the other user, but completed
		done.owner, done.CompletedAt = finished.owner(), g.at(yesterday.AddDays(-3*i))
		finished.training = append(finished.training, done)

		a := renewed.newAssignment(spec, renewed.CreatedAt)
		// The renewal times of the courses end in the last and in the next weeks.
		a.FromProgram, a.CompletedAt = true, g.at(addMonths(g.today, -spec.Months).AddDays(7*i-20))
		renewed.training = append(renewed.training, a)
		if renewedOn := addMonths(domain.DateOf(a.CompletedAt), spec.Months); !renewedOn.After(g.today) {
			renewed.training[len(renewed.training)-1].Superseded = true
			a.Round, a.AssignedAt, a.DueOn, a.CompletedAt = 2, renewedOn.Time(), renewedOn.AddDays(30), time.Time{}
			renewed.training = append(renewed.training, a)
		}
	}

	for _, u := range []*user{finished, overdue, renewed} {
		ofProgram := len(u.training)
		// The courses of frameworks get one round each, as a zero behavior completes nothing. Then all are completed.
		g.addFrameworkTraining(u, c, behavior{})
		for i := ofProgram; i < len(u.training); i++ {
			u.training[i].CompletedAt = g.at(yesterday)
		}
	}
}

// addShowcasePhishing adds simulated emails of the last weeks in every status, including reported, automated, scheduled
// and failed ones, most of them with one of two labels, and reports of real emails with every classification.
func (g *generator) addShowcasePhishing(c *client) {
	users := c.active(anyUser)
	for i, r := range []outcome{
		{}, {reported: true}, {opened: true}, {opened: true, reported: true},
		{opened: true, attachment: true}, {opened: true, clicked: true},
		{opened: true, attachment: true, clicked: true, credentials: true},
		{opened: true, clicked: true, credentials: true, reported: true},
		{automated: scannerReasons[0]}, {opened: true, clicked: true, automated: scannerReasons[1]},
	} {
		u, label := users[i], "Quarterly campaign"
		if i%3 == 0 {
			label = "Invoice drill"
		}
		u.simulations = append(u.simulations, g.sentSimulation(u, g.at(g.today.AddDays(-2-2*i)), r).labeled(label))
	}
	for i, u := range users[:3] {
		u.simulations = append(u.simulations, g.scheduledSimulation(u, g.at(g.today.AddDays(2+i))).labeled("Quarterly campaign"))
	}
	failed := g.scheduledSimulation(users[3], g.at(g.today.AddDays(-3)))
	failed.Status, failed.FailedAt = domain.ResultFailed, &failed.SendAt
	failed.Failure = "the mail server refuses the address: 550 5.1.1 unknown"
	users[3].simulations = append(users[3].simulations, failed)
	for i := range suspiciousEmails {
		g.addReportedEmail(users[0], i, 3+4*i)
		g.addReportedEmail(users[1], i, 200+4*i)
	}
}

// addShowcaseExposures adds an exposure in every breach for four users, so that the data has resolved and unresolved
// exposures of every severity.
func (g *generator) addShowcaseExposures(c *client) {
	users := c.active(anyUser)[:4]
	for i := range g.catalogue.breaches {
		b := &g.catalogue.breaches[i]
		for n, u := range users {
			if !slices.ContainsFunc(u.exposures, func(e exposure) bool { return e.Breach == b.Name }) {
				g.addExposure(u, b, 20+90*n+i, n%2 == 1)
			}
		}
	}
}

// addShowcasePolicies adds policies of every scope, with one that need not be signed, one that is archived, and one
// whose collection was deleted.
func (g *generator) addShowcasePolicies(c *client) {
	everybody := c.active(anyUser)
	office, finance := c.groups[1].ID, c.collections[0].ID
	use := g.addPolicy(c, "Acceptable use", domain.TenantScope, c.ID, 3, everybody)
	use.Description = new("What company devices and accounts may be used for")
	// A valid signature, an expired one, and one of an old version.
	for i, k := range []struct{ version, daysAgo int }{{3, 30}, {3, use.RenewalDays + 40}, {2, 60}} {
		use.signatures = slices.DeleteFunc(use.signatures, func(s signature) bool { return s.UserID == everybody[i].ID })
		use.sign(everybody[i], k.version, g.at(g.today.AddDays(-k.daysAgo)))
	}
	inOffice := c.active(func(u *user) bool { return *u.GroupID == office })
	g.addPolicy(c, "Clean desk", domain.GroupScope, office, 1, inOffice).RenewalDays = 180
	g.addPolicy(c, "Payment approval", domain.CollectionScope, finance, 2, c.active(hasRole(domain.RoleFinance)))
	g.addPolicy(c, "Travel handbook", domain.TenantScope, c.ID, 1, nil).MustSign = false
	const name = "Merger team"
	deleted := collection{deleted: true, CollectionRow: db.CollectionRow{NameKey: domain.SortKey(name), Collection: domain.Collection{
		Client: c.ID, ID: newID[domain.CollectionKind](g.random, c.CreatedAt), Name: name,
		CreatedBy: domain.ByDashboard, CreatedAt: c.CreatedAt, UpdatedAt: c.CreatedAt,
	}}}
	c.collections = append(c.collections, deleted)
	g.addPolicy(c, "Merger confidentiality", domain.CollectionScope, deleted.ID, 1, nil)
	old := g.addPolicy(c, "Fax machines", domain.TenantScope, c.ID, 1, everybody)
	old.ArchivedAt = g.at(g.today.AddDays(-90))
	old.UpdatedAt = latestTime(old.ReviewedAt, old.ArchivedAt)
}

// addShowcaseAdmins adds admins of every role, and an open, an expired and an accepted invite.
func (g *generator) addShowcaseAdmins(c *client) {
	for i, role := range []domain.AdminRole{domain.OwnerRole, domain.FullRole, domain.ViewerRole, domain.ViewerRole} {
		c.admins = append(c.admins, g.newAdmin(c.Partner, &c.ID, c.domain, role, c.CreatedAt.AddDate(0, 0, 60*i)))
	}
	g.addInvite(c, "new.auditor", domain.ViewerRole, 2, false)
	g.addInvite(c, "night.operator", domain.FullRole, 20, false)
	g.addInvite(c, "former.helpdesk", domain.FullRole, 300, true)
}

// recordShowcaseEmails adds emails of most types to the first user, recent and old ones.
func (g *generator) recordShowcaseEmails(c *client) {
	u := c.users[0]
	for i, kind := range []domain.MessageType{"training-invite", "phishing", "phish-reminder", "certificate",
		"monthly-report", "welcome", "policy-reminder", "admin-invite"} {
		for _, daysAgo := range []int{2 + 3*i, 45 + 10*i, 300 + 5*i} {
			if at := g.at(g.today.AddDays(-daysAgo)); kind == "phishing" {
				u.simulations = append(u.simulations, g.sentSimulation(u, at, outcome{opened: true}))
				g.recordSimulation(c, u, &u.simulations[len(u.simulations)-1])
			} else {
				g.recordEmail(c, u, kind, at)
			}
		}
	}
}
