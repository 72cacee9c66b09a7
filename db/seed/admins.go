package seed

import (
	"time"

	"partnerapi/db"
	"partnerapi/domain"
)

// newAdmin creates a dashboard admin of a client or, if client is nil, of the partner.
func (g *generator) newAdmin(
	partner domain.PartnerID, client *domain.ClientID, domainName string, role domain.AdminRole, at time.Time,
) db.AdminRow {
	first, last := g.name(domain.English)
	login := g.at(g.today.AddDays(-g.between(1, 20)))
	a := db.AdminRow{PartnerID: partner, Admin: domain.Admin{
		ID: newID[domain.AdminKind](g.random, at), Client: client,
		Email: slug(first) + "." + slug(last) + "@" + domainName, Name: domain.FullName(first, last), Role: role,
		CreatedAt: at,
	}}
	if login.After(at) && g.chance(0.8) {
		a.LastLoginAt = &login
	}
	return a
}

// addInvite adds an invite, made daysAgo days ago, to become an admin of a client. local is the local part of its
// address.
func (g *generator) addInvite(c *client, local string, role domain.AdminRole, daysAgo int, accepted bool) {
	at := g.at(g.today.AddDays(-daysAgo))
	v := invite{
		ClientID: c.ID, ID: newID[domain.InviteKind](g.random, at), Email: local + "@" + c.domain,
		Role: domain.InviteRole(role), CreatedAt: at, ExpiresAt: at.Add(domain.InviteLife),
	}
	if accepted {
		v.AcceptedAt = at.Add(26 * time.Hour)
	}
	c.invites = append(c.invites, v)
}
