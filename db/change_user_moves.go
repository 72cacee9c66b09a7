package db

import (
	"context"
	"slices"

	"partnerapi/db/pg"
	"partnerapi/domain"
)

// userMoves gathers what changes of users mean for the audiences that they are in.
type userMoves struct {
	// clients are all that it concerns; true for one with users who came into or left all
	// of their audiences, which are those of turned.
	clients map[domain.ClientID]bool
	turned  []domain.UserID
	// groups are those that users came into or left.
	groups map[domain.GroupID]bool
	// entered are users who may have come into the audience of a framework, and
	// reactivated those whom renewals passed over while they were inactive.
	entered, reactivated []domain.UserKey
}

// UserChanged notes what follows from a change of a user's own fields, whoever wrote
// it: a caller, a directory sync or an import. before is nil for a new user, who is
// given the client's courses by enrol or the like. Events are not among it: see
// userEvent. The audiences of the client are shared.
func (c *Change) UserChanged(before, after *domain.User) {
	key := after.Key()
	if before == nil {
		c.Rescore(key)
		c.courseDueMoved(key)
		c.countUser(after, 1)
		c.userMoves.turn(key)
		c.userMoves.regroup(key.Client, after.Group)
		return
	}

	turned, regrouped := before.Status != after.Status, !sameGroup(before.Group, after.Group)
	aged := !before.CreatedAt.Equal(after.CreatedAt)
	if turned || aged {
		c.countUser(before, -1)
		c.countUser(after, 1)
	}
	if turned {
		c.userMoves.turn(key)
	}
	if turned || regrouped {
		c.userMoves.regroup(key.Client, before.Group, after.Group)
	}
	if turned && after.Status == domain.Active {
		c.Rescore(key)
		c.userMoves.reactivated = append(c.userMoves.reactivated, key)
	}
	if before.Role != after.Role || aged {
		c.Rescore(key) // whether a user is dormant depends on the age, too
	}
	if after.Status == domain.Active && (turned || regrouped || before.Role != after.Role) {
		c.userMoves.entered = append(c.userMoves.entered, key)
	}
}

// userEvent is the event of a change that callers see.
func userEvent(before, after *domain.User) domain.EventType {
	if before.Status == domain.Active && after.Status == domain.Inactive {
		return domain.UserDeactivated
	}
	return domain.UserUpdated
}

func (m *userMoves) turn(user domain.UserKey) {
	m.concern(user.Client, true)
	m.turned = append(m.turned, user.User)
}

func (m *userMoves) regroup(client domain.ClientID, groups ...*domain.Group) {
	m.concern(client, false)
	for _, g := range groups {
		if g != nil {
			m.groups[g.ID] = true
		}
	}
}

func (m *userMoves) concern(client domain.ClientID, all bool) {
	if m.clients == nil {
		m.clients, m.groups = map[domain.ClientID]bool{}, map[domain.GroupID]bool{}
	}
	m.clients[client] = m.clients[client] || all
}

// flushUserMoves marks the policies of the users' audiences, and gives courses to those
// who came into audiences or missed a round.
func (c *Change) flushUserMoves(ctx context.Context) error {
	m := &c.userMoves
	if len(m.clients) > 0 {
		clients := sortedIDs(m.clients)
		turned := slices.DeleteFunc(slices.Clone(clients), func(id domain.ClientID) bool { return !m.clients[id] })
		c.policiesOf(`p.client_id = ANY(?0::uuid[]) AND (p.scope_id = ANY(?1::uuid[])
			OR p.scope_type = 'tenant' AND p.client_id = ANY(?2::uuid[])
			OR p.scope_id IN (SELECT collection_id FROM collection_members
				WHERE client_id = ANY(?2::uuid[]) AND user_id = ANY(?3::uuid[])))`,
			pg.IDs(clients), pg.IDs(sortedIDs(m.groups)), pg.IDs(turned), pg.IDs(m.turned))
	}
	if err := c.renew(ctx, m.reactivated, domain.DateOf(c.At)); err != nil {
		return err
	}
	return c.enterAudiences(ctx, m.entered)
}

func sameGroup(a, b *domain.Group) bool { return a == b || a != nil && b != nil && a.ID == b.ID }
