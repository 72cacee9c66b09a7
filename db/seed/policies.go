package seed

import (
	"time"

	"partnerapi/db"
	"partnerapi/domain"
)

// addPolicy adds a policy that its audience has to sign, and returns it; the pointer is valid until the next policy is
// added. Most users have signed it; some signatures have expired, or are of the previous version.
func (g *generator) addPolicy(
	c *client, title string, scope domain.ScopeType, scopeID [16]byte, version int, audience []*user,
) *policy {
	created := laterDate(domain.DateOf(c.CreatedAt), g.today.AddDays(-700))
	at := g.at(created)
	p := policy{policyRow: policyRow{ReviewedAt: at, PolicyRow: db.PolicyRow{ScopeID: scopeID, Policy: domain.Policy{
		Client: c.ID, ID: newID[domain.PolicyKind](g.random, at), Title: title, Version: version, ScopeType: scope,
		MustSign: true, RenewalDays: 365, CreatedAt: at,
	}}}}
	if days := created.DaysUntil(g.today); days > 250 {
		p.ReviewedAt = g.at(g.today.AddDays(-g.between(100, 200)))
	}
	p.UpdatedAt = p.ReviewedAt
	for _, u := range audience {
		g.addSignature(&p, u)
	}
	c.policies = append(c.policies, p)
	return &c.policies[len(c.policies)-1]
}

// addSignature adds a user's signature of a policy, at random valid, expired or of the previous version, or none. It
// adds only one that is after the days on which the user and the policy were created.
func (g *generator) addSignature(p *policy, u *user) {
	version, daysAgo := p.Version, g.between(1, min(p.RenewalDays-5, 360))
	switch roll := g.Float64(); {
	case roll < 0.6: // valid
	case roll < 0.75: // expired
		daysAgo = p.RenewalDays + g.between(5, 250)
	case roll < 0.85 && p.Version > 1:
		version = p.Version - 1
	default:
		return
	}
	on := g.today.AddDays(-daysAgo)
	if on.After(laterDate(domain.DateOf(u.CreatedAt), domain.DateOf(p.CreatedAt))) {
		p.sign(u, version, g.at(on))
	}
}

// sign adds a user's signature of a version at a time.
func (p *policy) sign(u *user, version int, at time.Time) {
	p.signatures = append(p.signatures, signature{owner: u.owner(), PolicyID: p.ID, Version: version, SignedAt: at})
}
