package seed

import (
	"slices"
	"time"

	"partnerapi/domain"
)

// showcase gives a large client some of everything, whatever the dice say.
func (s *story) showcase(c *client) {
	s.variety(c)
	s.showCollections(c)
	s.showFrameworks(c)
	s.live(c, 30)
	s.showTraining(c)
	s.showPhishing(c)
	s.showExposures(c)
	s.showPolicies(c)
	s.showAdmins(c)
	s.correspond(c)
	s.showLetters(c)
}

// variety makes users of every role in both states, and of every source,
// language and kind of override. They are as old as the client, so that
// anything may have happened to them.
func (s *story) variety(c *client) {
	for _, u := range c.users[:20] {
		u.CreatedAt = s.at(domain.DateOf(c.CreatedAt).AddDays(2))
		u.ID = newID[domain.UserKind](s.dice, u.CreatedAt)
	}
	for i, role := range slices.Repeat(domain.RoleStandard.Values(), 2) {
		u := c.users[i]
		u.employ(specialJobs[domain.Role(role)][0])
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
		c.enlist(c.users[10+i], domain.UserSource(source), group)
	}
	emails := &addresses{domain: "contractors." + c.domain, taken: map[string]int{}}
	for i, language := range domain.English.Values() {
		u := c.users[14+i]
		u.Language = domain.Language(language)
		u.FirstName, u.LastName = s.name(u.Language)
		u.Email = emails.of(u.FirstName, u.LastName)
		u.Status = domain.Active
	}
	c.users[17].Role, c.users[17].Overrides = domain.RoleHR, []string{"role"}
	c.users[18].Overrides = []string{"department", "job_title"}
	c.users[19].Status, c.users[19].Overrides = domain.Inactive, []string{"status"}
}

func (s *story) showCollections(c *client) {
	role := func(role domain.Role) func(*user) bool { return func(u *user) bool { return u.Role == role } }
	everybody := c.active(anyone)
	s.collect(c, "Finance team", "All who approve or make payments", "dashboard", c.active(role(domain.RoleFinance)))
	s.collect(c, "Leadership", "", "dashboard", c.active(role(domain.RoleExecutive)))
	s.collect(c, "New starters", "Hired this year", "api", everybody[len(everybody)*3/4:])
	s.collect(c, "Équipe Québec", "Francophones", "api", c.active(func(u *user) bool { return u.Language == domain.French }))
	s.collect(c, "Former project", "Nobody is left", "dashboard", nil)
}

func (s *story) showFrameworks(c *client) {
	finance, office := uuid(c.collections[0].id), uuid(c.groups[1].ID)
	s.adopt(c, "iso_27001", "all", nil, true, 200)
	s.adopt(c, "pci_dss", "collection", &finance, false, 120)
	s.adopt(c, "hipaa", "group", &office, false, 20)
}

// showTraining makes sure of one user without anything left to do, one who is
// behind and one whose second round has begun.
func (s *story) showTraining(c *client) {
	done, behind, renewed := c.users[0], c.users[1], c.users[2]
	for _, u := range []*user{done, behind, renewed} {
		u.training = nil
	}
	yesterday := s.today.AddDays(-1)
	for i, l := range s.catalogue.program {
		a := assignment{lesson: l, round: 1, assignedAt: s.at(s.today.AddDays(-120))}
		a.dueOn = domain.DateOf(a.assignedAt).AddDays(l.dueAfter)
		behind.training = append(behind.training, a)

		a.completedAt = s.at(yesterday.AddDays(-3 * i))
		done.training = append(done.training, a)

		a.assignedAt = renewed.CreatedAt
		a.dueOn = domain.DateOf(a.assignedAt).AddDays(l.dueAfter)
		// Their windows have ended in the last weeks, and end in the next.
		a.completedAt = s.at(addMonths(s.today, -l.months).AddDays(7*i - 20))
		renewed.training = append(renewed.training, a)
		if again := addMonths(domain.DateOf(a.completedAt), l.months); !again.After(s.today) {
			renewed.training = append(renewed.training, assignment{lesson: l, round: 2, assignedAt: again.Time(), dueOn: again.AddDays(30)})
		}
	}
}

// showPhishing makes sure of mails in every status, reported ones and
// automated ones, all of the last weeks; and of real mails of every kind.
func (s *story) showPhishing(c *client) {
	users := c.active(anyone)
	for i, r := range []reaction{
		{}, {reported: true}, {opened: true}, {opened: true, reported: true},
		{opened: true, attachment: true}, {opened: true, clicked: true},
		{opened: true, attachment: true, clicked: true, credentials: true},
		{opened: true, clicked: true, credentials: true, reported: true},
		{automated: scannerReasons[0]}, {opened: true, clicked: true, automated: scannerReasons[1]},
	} {
		u := users[i]
		u.mails = append(u.mails, s.simulate(u, s.at(s.today.AddDays(-2-2*i)), r))
	}
	for i, u := range users[:3] {
		u.mails = append(u.mails, s.schedule(u, s.at(s.today.AddDays(2+i))))
	}
	refused := s.schedule(users[3], s.at(s.today.AddDays(-3)))
	refused.failure = "the mail server refuses the address: 550 5.1.1 unknown"
	users[3].mails = append(users[3].mails, refused)
	for i := range suspicious {
		s.report(users[0], i, 3+4*i)
		s.report(users[1], i, 200+4*i)
	}
}

// showExposures makes sure of exposures of every severity, resolved and not.
func (s *story) showExposures(c *client) {
	users := c.active(anyone)[:4]
	for i := range s.catalogue.breaches {
		b := &s.catalogue.breaches[i]
		for n, u := range users {
			if !u.exposed(b) {
				s.discover(u, b, 20+90*n+i, n%2 == 1)
			}
		}
	}
}

func (u *user) exposed(b *breach) bool {
	return slices.ContainsFunc(u.exposures, func(e exposure) bool { return e.breach == b })
}

// showPolicies publishes policies of every scope, some of which nobody needs to
// sign, are archived, or whose collection is gone.
func (s *story) showPolicies(c *client) {
	everybody := c.active(anyone)
	office, finance := &c.groups[1].Group, &c.collections[0]
	var payers []*user
	for _, m := range finance.members {
		payers = append(payers, m.user)
	}
	use := s.publish(c, "Acceptable use", "tenant", uuid(c.ID), 3, everybody)
	use.description = "What company devices and accounts may be used for"
	for i, version := range []int{3, 3, 2} { // one signature stands, one has lapsed, one is of an old version
		daysAgo := []int{30, use.renewal + 40, 60}[i]
		use.resign(everybody[i].ID, version, s.at(s.today.AddDays(-daysAgo)))
	}
	s.publish(c, "Clean desk", "user_container", uuid(office.ID), 1, c.active(func(u *user) bool { return u.Group == office })).renewal = 180
	s.publish(c, "Payment approval", "collection", uuid(finance.id), 2, payers)
	s.publish(c, "Travel handbook", "tenant", uuid(c.ID), 1, nil).acknowledged = false
	gone := collection{id: newID[domain.CollectionKind](s.dice, c.CreatedAt), name: "Merger team", createdBy: "dashboard", createdAt: c.CreatedAt, updatedAt: c.CreatedAt}
	c.dissolved = append(c.dissolved, gone)
	s.publish(c, "Merger confidentiality", "collection", uuid(gone.id), 1, nil)
	old := s.publish(c, "Fax machines", "tenant", uuid(c.ID), 1, everybody)
	old.archivedAt = s.at(s.today.AddDays(-90))
}

// resign replaces a user's signatures of a policy by one.
func (p *policy) resign(user domain.UserID, version int, at time.Time) {
	p.signatures = slices.DeleteFunc(p.signatures, func(s signature) bool { return s.user == user })
	p.signatures = append(p.signatures, signature{user: user, version: version, at: at})
}

func (s *story) showAdmins(c *client) {
	for i, role := range []domain.AdminRole{domain.OwnerRole, domain.FullRole, domain.ViewerRole, domain.ViewerRole} {
		c.admins = append(c.admins, s.appoint(&c.ID, c.domain, role, c.CreatedAt.AddDate(0, 0, 60*i)))
	}
	s.ask(c, "new.auditor", domain.ViewerRole, 2, false)
	s.ask(c, "night.operator", domain.FullRole, 20, false)
	s.ask(c, "former.helpdesk", domain.FullRole, 300, true)
}

// showLetters makes sure that one user was sent mail of every type, lately and
// long ago.
func (s *story) showLetters(c *client) {
	u := c.users[0]
	for i, kind := range []string{"training-invite", "phishing", "phish-reminder", "certificate", "monthly-report", "welcome", "policy-reminder", "admin-invite"} {
		for _, daysAgo := range []int{2 + 3*i, 45 + 10*i, 300 + 5*i} {
			if at := s.at(s.today.AddDays(-daysAgo)); kind != "phishing" {
				s.send(c, u, kind, at)
			} else {
				u.mails = append(u.mails, s.simulate(u, at, reaction{opened: true}))
				s.recount(c, u, &u.mails[len(u.mails)-1])
			}
		}
	}
}
