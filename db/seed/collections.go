package seed

import (
	"partnerapi/domain"
)

// addCollection makes a collection of some users.
func (g *generator) addCollection(c *client, name, description, createdBy string, users []*user) *collection {
	at := g.at(laterDate(domain.DateOf(c.CreatedAt).AddDays(1), g.today.AddDays(-g.between(30, 300))))
	k := collection{id: newID[domain.CollectionKind](g.random, at), name: name, description: description,
		createdBy: createdBy, createdAt: at, updatedAt: at}
	for _, u := range users {
		m := member{of: k.id, user: u, at: latestTime(at, u.CreatedAt)}
		k.members = append(k.members, m)
		k.updatedAt = latestTime(k.updatedAt, m.at)
	}
	c.collections = append(c.collections, k)
	return &c.collections[len(c.collections)-1]
}
