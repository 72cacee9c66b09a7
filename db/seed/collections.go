package seed

import (
	"partnerapi/db"
	"partnerapi/domain"
)

// addCollection adds a collection of some users to a client. An empty description is none.
func (g *generator) addCollection(c *client, name, description string, createdBy domain.Creator, users []*user) {
	at := g.at(laterDate(domain.DateOf(c.CreatedAt).AddDays(1), g.today.AddDays(-g.between(30, 300))))
	k := collection{CollectionRow: db.CollectionRow{NameKey: domain.SortKey(name), Collection: domain.Collection{
		Client: c.ID, ID: newID[domain.CollectionKind](g.random, at), Name: name,
		Members: len(users), CreatedBy: createdBy, CreatedAt: at, UpdatedAt: at,
	}}}
	if description != "" {
		k.Description = &description
	}
	for _, u := range users {
		m := member{owner: u.owner(), CollectionID: k.ID, AddedAt: latestTime(at, u.CreatedAt)}
		k.members = append(k.members, m)
		k.UpdatedAt = latestTime(k.UpdatedAt, m.AddedAt)
	}
	c.collections = append(c.collections, k)
}
