package seed

import (
	"time"

	"partnerapi/domain"
)

// collect makes a collection of some users.
func (s *story) collect(c *client, name, description, createdBy string, users []*user) *collection {
	at := s.at(laterDate(domain.DateOf(c.CreatedAt).AddDays(1), s.today.AddDays(-s.between(30, 300))))
	k := collection{id: newID[domain.CollectionKind](s.dice, at), name: name, description: description, createdBy: createdBy, createdAt: at, updatedAt: at}
	for _, u := range users {
		m := member{user: u, at: latest(at, u.CreatedAt)}
		k.members = append(k.members, m)
		k.updatedAt = latest(k.updatedAt, m.at)
	}
	c.collections = append(c.collections, k)
	return &c.collections[len(c.collections)-1]
}

func laterDate(a, b domain.Date) domain.Date {
	if a.After(b) {
		return a
	}
	return b
}

// publish makes a policy of a version, to be signed by its audience: most sign
// it, some signatures have lapsed or are of an older version.
func (s *story) publish(c *client, title, scope string, scopeID [16]byte, version int, audience []*user) *policy {
	created := laterDate(domain.DateOf(c.CreatedAt), s.today.AddDays(-700))
	p := policy{
		title: title, scope: scope, scopeID: scopeID, version: version, acknowledged: true, renewal: 365,
		createdAt: s.at(created),
	}
	p.id = newID[domain.PolicyKind](s.dice, p.createdAt)
	p.reviewedAt = p.createdAt
	if days := created.DaysUntil(s.today); days > 250 {
		p.reviewedAt = s.at(s.today.AddDays(-s.between(100, 200)))
	}
	for _, u := range audience {
		s.sign(&p, u)
	}
	c.policies = append(c.policies, p)
	return &c.policies[len(c.policies)-1]
}

// sign lets a user sign a policy, or not.
func (s *story) sign(p *policy, u *user) {
	version, daysAgo := p.version, s.between(1, min(p.renewal-5, 360))
	switch roll := s.Float64(); {
	case roll < 0.6:
	case roll < 0.75: // lapsed
		daysAgo = p.renewal + s.between(5, 250)
	case roll < 0.85 && p.version > 1:
		version = p.version - 1
	default:
		return
	}
	on := s.today.AddDays(-daysAgo)
	if on.After(laterDate(domain.DateOf(u.CreatedAt), domain.DateOf(p.createdAt))) {
		p.signatures = append(p.signatures, signature{user: u.ID, version: version, at: s.at(on)})
	}
}

// adopt assigns a framework to an audience; audienceID is nil for all users.
func (s *story) adopt(c *client, framework, audience string, audienceID *[16]byte, policies bool, daysAgo int) {
	at := s.at(laterDate(domain.DateOf(c.CreatedAt).AddDays(1), s.today.AddDays(-daysAgo)))
	c.uses = append(c.uses, frameworkUse{
		id: newID[domain.FrameworkUseKind](s.dice, at), framework: framework, audience: audience,
		audienceID: audienceID, policies: policies, createdAt: at,
	})
}

// appoint makes a dashboard admin of a client, or of a whole partner where the
// client is nil.
func (s *story) appoint(client *domain.ClientID, domainName string, role domain.AdminRole, at time.Time) domain.Admin {
	first, last := s.name(domain.English)
	login := s.at(s.today.AddDays(-s.between(1, 20)))
	a := domain.Admin{
		ID: newID[domain.AdminKind](s.dice, at), Email: slug(first) + "." + slug(last) + "@" + domainName,
		Name: domain.FullName(first, last), Role: role, Client: client, CreatedAt: at,
	}
	if login.After(at) && s.chance(0.8) {
		a.LastLoginAt = &login
	}
	return a
}

// ask invites somebody to be an admin of a client so many days ago.
func (s *story) ask(c *client, local string, role domain.AdminRole, daysAgo int, accepted bool) {
	at := s.at(s.today.AddDays(-daysAgo))
	v := invite{Invite: domain.Invite{
		ID: newID[domain.InviteKind](s.dice, at), Client: c.ID, Email: local + "@" + c.domain, Role: domain.InviteRole(role),
		CreatedAt: at, ExpiresAt: at.Add(domain.InviteLife),
	}}
	if accepted {
		v.acceptedAt = at.Add(26 * time.Hour)
	}
	c.invites = append(c.invites, v)
}

// historyDays is how many days of a client's average score are kept, today's
// included.
const historyDays = 90

// remember invents how a settled client's average score came to be what it is.
func (s *story) remember(c *client) {
	days := min(historyDays, domain.DateOf(c.CreatedAt).DaysUntil(s.today)+1)
	c.history = make([]int, days)
	score := c.Summary.AverageScore
	for i := days - 1; i >= 0; i-- {
		c.history[i] = score
		if c.ActiveUsers > 0 {
			score = min(max(score+s.between(-4, 4), 0), 1000)
		}
	}
}
