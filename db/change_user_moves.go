package db

import (
	"context"
	"slices"

	"partnerapi/db/pg"
	"partnerapi/domain"
)

// userMoves collects the users of a change who joined or left audiences.
type userMoves struct {
	// clients are the clients of these users. The value is true if the client has a user in toggled.
	clients map[domain.ClientID]bool
	// toggled are users who are new or whose status changed: all of their audiences changed.
	toggled []domain.UserID
	// groups are the groups that users joined or left.
	groups map[domain.GroupID]bool
	// entered are users who may have joined the audience of a framework. reactivated are users who became active, and
	// whom renewals of courses may have skipped before.
	entered, reactivated []domain.UserKey
}

// UserChanged adds the effects of a new user, or of a change of the fields in a user's row that a caller, a directory
// sync or an import writes: counters, the score, and audiences that the user joined or left. before is nil for a new
// user. UserChanged does not enroll new users (EnrolUsers, EnrolSince), and records no event (UserUpdated). The caller
// must hold a lock of the client's audiences (LockAudiencesShared).
func (c *Change) UserChanged(before, after *domain.User) {
	key := after.Key()
	if before == nil {
		c.Rescore(key)
		c.NextDueChanged(key)
		c.countUser(after, 1)
		c.userMoves.addToggled(key)
		c.userMoves.addGroups(key.Client, after.Group)
		return
	}

	toggled, regrouped := before.Status != after.Status, !before.SameGroup(after)
	if toggled {
		c.countUser(before, -1)
		c.countUser(after, 1)
		c.userMoves.addToggled(key)
	}
	if toggled || regrouped {
		c.userMoves.addGroups(key.Client, before.Group, after.Group)
	}
	if toggled && after.Status == domain.Active {
		c.Rescore(key)
		c.userMoves.reactivated = append(c.userMoves.reactivated, key)
	}
	if before.Role != after.Role || !before.CreatedAt.Equal(after.CreatedAt) {
		c.Rescore(key) // the risk depends on the role, and on dormancy, which depends on CreatedAt
	}
	// A framework may require a course of one role only.
	if after.Status == domain.Active && (toggled || regrouped || before.Role != after.Role) {
		c.userMoves.entered = append(c.userMoves.entered, key)
	}
}

// UserUpdated records the event of a change of a user's visible fields: UserDeactivated if the user became inactive,
// and domain.UserUpdated otherwise.
func (c *Change) UserUpdated(before, after *domain.User) {
	kind := domain.UserUpdated
	if before.Status == domain.Active && after.Status == domain.Inactive {
		kind = domain.UserDeactivated
	}
	c.UserEvent(kind, after.Key())
}

// addToggled adds a user who is new, or whose status changed.
func (m *userMoves) addToggled(user domain.UserKey) {
	m.addClient(user.Client, true /* toggled */)
	m.toggled = append(m.toggled, user.User)
}

// addGroups adds groups of a client whose members changed. A nil group is none.
func (m *userMoves) addGroups(client domain.ClientID, groups ...*domain.Group) {
	m.addClient(client, false /* toggled */)
	for _, g := range groups {
		if g != nil {
			initMap(&m.groups)[g.ID] = true
		}
	}
}

// addClient adds the client of a user. toggled is true if the user is new, or if the user's status changed.
func (m *userMoves) addClient(client domain.ClientID, toggled bool) {
	initMap(&m.clients)[client] = m.clients[client] || toggled
}

// flushUserMoves marks as stale the counts of the policies whose audience changed: those of groups that users joined or
// left and, for users who are new or whose status changed, those of their client and collections. It renews the courses
// of reactivated users, and enrolls users who may have joined an audience.
func (c *Change) flushUserMoves(ctx context.Context) error {
	m := &c.userMoves
	if len(m.clients) > 0 {
		clients := sortedIDs(m.clients)
		toggledClients := slices.DeleteFunc(slices.Clone(clients), func(id domain.ClientID) bool { return !m.clients[id] })
		c.PoliciesChanged(`p.client_id = ANY(?clients::uuid[]) AND (p.scope_id = ANY(?groups::uuid[])
			OR p.scope_type = 'tenant' AND p.client_id = ANY(?toggledClients::uuid[])
			OR p.scope_id IN (SELECT collection_id FROM collection_members
				WHERE client_id = ANY(?toggledClients::uuid[]) AND user_id = ANY(?toggled::uuid[])))`,
			pg.Named{
				"clients": pg.IDs(clients), "groups": pg.IDs(sortedIDs(m.groups)),
				"toggledClients": pg.IDs(toggledClients), "toggled": pg.IDs(m.toggled),
			})
	}
	if err := c.renew(ctx, m.reactivated, domain.DateOf(c.At)); err != nil {
		return err
	}
	return c.EnterAudiences(ctx, m.entered)
}
