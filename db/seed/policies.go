package seed

import (
	"partnerapi/domain"
)

// addPolicy makes a policy of a version, to be signed by its audience: most sign
// it, some signatures have lapsed or are of an older version.
func (g *generator) addPolicy(c *client, title, scope string, scopeID [16]byte, version int, audience []*user) *policy {
	created := laterDate(domain.DateOf(c.CreatedAt), g.today.AddDays(-700))
	p := policy{
		title: title, scope: scope, scopeID: scopeID, version: version, acknowledged: true, renewal: 365,
		createdAt: g.at(created),
	}
	p.id = newID[domain.PolicyKind](g.random, p.createdAt)
	p.reviewedAt = p.createdAt
	if days := created.DaysUntil(g.today); days > 250 {
		p.reviewedAt = g.at(g.today.AddDays(-g.between(100, 200)))
	}
	for _, u := range audience {
		g.addSignature(&p, u)
	}
	c.policies = append(c.policies, p)
	return &c.policies[len(c.policies)-1]
}

// addSignature lets a user sign a policy, or not.
func (g *generator) addSignature(p *policy, u *user) {
	version, daysAgo := p.version, g.between(1, min(p.renewal-5, 360))
	switch roll := g.Float64(); {
	case roll < 0.6:
	case roll < 0.75: // lapsed
		daysAgo = p.renewal + g.between(5, 250)
	case roll < 0.85 && p.version > 1:
		version = p.version - 1
	default:
		return
	}
	on := g.today.AddDays(-daysAgo)
	if on.After(laterDate(domain.DateOf(u.CreatedAt), domain.DateOf(p.createdAt))) {
		p.signatures = append(p.signatures, signature{of: p.id, user: u.ID, version: version, at: g.at(on)})
	}
}
