package seed

import (
	"time"

	"partnerapi/domain"
)

// newAdmin makes a dashboard admin of a client, or of a whole partner where the
// client is nil.
func (g *generator) newAdmin(client *domain.ClientID, domainName string, role domain.AdminRole,
	at time.Time) domain.Admin {
	first, last := g.name(domain.English)
	login := g.at(g.today.AddDays(-g.between(1, 20)))
	a := domain.Admin{
		ID: newID[domain.AdminKind](g.random, at), Email: slug(first) + "." + slug(last) + "@" + domainName,
		Name: domain.FullName(first, last), Role: role, Client: client, CreatedAt: at,
	}
	if login.After(at) && g.chance(0.8) {
		a.LastLoginAt = &login
	}
	return a
}

// addInvite invites somebody to be an admin of a client so many days ago.
func (g *generator) addInvite(c *client, local string, role domain.AdminRole, daysAgo int, accepted bool) {
	at := g.at(g.today.AddDays(-daysAgo))
	v := invite{Invite: domain.Invite{
		ID: newID[domain.InviteKind](g.random, at), Client: c.ID, Email: local + "@" + c.domain,
		Role:      domain.InviteRole(role),
		CreatedAt: at, ExpiresAt: at.Add(domain.InviteLife),
	}}
	if accepted {
		v.acceptedAt = at.Add(26 * time.Hour)
	}
	c.invites = append(c.invites, v)
}
