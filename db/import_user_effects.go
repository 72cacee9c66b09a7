package db

import (
	"context"

	"partnerapi/db/pg"
	"partnerapi/domain"
)

// importEffects gathers what follows from a batch of users, of any clients.
type importEffects struct {
	// clients are those with users who came into or left all of their audiences, and
	// moved those users.
	clients map[domain.ClientID]bool
	moved   []domain.UserID
	// groups are those that users came into or left.
	groups               map[domain.GroupID]bool
	entered, reactivated []domain.UserKey
}

// effects notes what follows from the batch. New users write no events.
func (m *importingUsers) effects(ctx context.Context) error {
	e := importEffects{clients: map[domain.ClientID]bool{}, groups: map[domain.GroupID]bool{}}
	created := make([]domain.UserKey, len(m.created))
	for i := range m.created {
		u := &m.created[i]
		created[i] = domain.UserKey{Client: u.Client, User: u.ID}
		active, inactive := 1, 0
		if u.Status != domain.Active {
			active, inactive = 0, 1
		}
		m.countUsers(u.Client, active, inactive)
		e.clients[u.Client] = true
		e.regroup(u.Group)
	}
	for i := range m.changed {
		m.effect(&e, &m.changed[i].before, &m.changed[i].after)
	}

	m.hold(created...)
	m.Rescore(created...)
	m.courseDueMoved(created...)
	m.audiencesMoved(&e)
	if err := m.enrolSince(ctx, created); err != nil {
		return err
	}
	if err := m.renew(ctx, e.reactivated, domain.DateOf(m.At)); err != nil {
		return err
	}
	return m.enterAudiences(ctx, e.entered)
}

// effect gathers what follows from the change of one user.
func (m *importingUsers) effect(e *importEffects, before, after *domain.User) {
	key := domain.UserKey{Client: after.Client, User: after.ID}
	event := domain.UserUpdated
	regrouped, turned := !sameGroup(before.Group, after.Group), before.Status != after.Status
	switch {
	case !turned:
	case after.Status == domain.Inactive:
		event = domain.UserDeactivated
		m.countUsers(key.Client, -1, 1)
	default:
		m.countUsers(key.Client, 1, -1)
		e.reactivated = append(e.reactivated, key)
		m.Rescore(key)
	}
	if turned {
		e.clients[key.Client] = true
		e.moved = append(e.moved, key.User)
	}
	if before.Role != after.Role || !before.CreatedAt.Equal(after.CreatedAt) {
		m.Rescore(key) // whether a user is dormant depends on the age, too
	}
	if regrouped || turned {
		e.regroup(before.Group, after.Group)
	}
	if (regrouped || turned || before.Role != after.Role) && after.Status == domain.Active {
		e.entered = append(e.entered, key)
	}
	if !sameRecord(before, after) && !m.clients[key.Client].Archived {
		m.UserEvent(event, key)
	}
}

func (e *importEffects) regroup(groups ...*domain.Group) {
	for _, g := range groups {
		if g != nil {
			e.groups[g.ID] = true
		}
	}
}

// audiencesMoved notes that the audiences changed of the policies of users.
func (m *importingUsers) audiencesMoved(e *importEffects) {
	clients := make([]domain.ClientID, 0, len(m.clients))
	for id := range m.clients {
		clients = append(clients, id)
	}
	m.policiesOf(`p.client_id = ANY(?0::uuid[]) AND (p.scope_id = ANY(?1::uuid[])
		OR p.scope_type = 'tenant' AND p.client_id = ANY(?2::uuid[])
		OR p.scope_id IN (SELECT collection_id FROM collection_members
			WHERE client_id = ANY(?2::uuid[]) AND user_id = ANY(?3::uuid[])))`,
		pg.IDs(sortedUnique(clients)), pg.IDs(sortedIDs(e.groups)), pg.IDs(sortedIDs(e.clients)), pg.IDs(e.moved))
}

// enrolSinceSQL gives new users the courses that ?2 asks them for, as of when they
// would have been given them: those of the program when they were created, those of a
// framework when that was assigned, where that was later. What is past its due date on
// the day ?0 is as told of.
const enrolSinceSQL = `
	WITH asked AS MATERIALIZED (
		SELECT a.*, u.created_at FROM (?2) AS a JOIN users AS u ON u.client_id = a.client_id AND u.id = a.user_id
	), wanted AS (
		SELECT a.client_id, a.user_id, a.course_id, true AS from_program, NULL::uuid AS framework, a.place,
			a.created_at AS since, a.due_after_days
		FROM asked AS a WHERE a.framework IS NULL
		UNION ALL
		SELECT a.client_id, a.user_id, a.course_id, false, a.framework, NULL,
			greatest(a.created_at, f.created_at), a.due_after_days
		FROM asked AS a JOIN framework_assignments AS f ON f.client_id = a.client_id AND f.id = a.framework
	)
	INSERT INTO assignments (client_id, user_id, course_id, position, from_program, frameworks, assigned_at, due_on,
		overdue_noted, given_at)
	SELECT client_id, user_id, course_id,
		coalesce(min(place), ?1::integer + row_number() OVER (PARTITION BY client_id, user_id ORDER BY course_id)),
		bool_or(from_program), array_remove(array_agg(DISTINCT framework), NULL), min(since),
		min(since::date + due_after_days), min(since::date + due_after_days) < ?0::date, ?3::timestamptz
	FROM wanted GROUP BY client_id, user_id, course_id`

// enrolSince enrols new users as of their creation: inactive ones too, who were active
// then. Frameworks ask active users only. The audiences of their clients are
// shared.
func (c *Change) enrolSince(ctx context.Context, users []domain.UserKey) error {
	if len(users) == 0 {
		return nil
	}
	c.wantAudiences(users)
	clients, ids := keyLists(users)
	are := pg.SQL(isKey, clients, ids)
	wanted := pg.SQL(`SELECT client_id, user_id, course_id, framework, due_after_days, NULL::integer AS place FROM (?) AS f
		UNION ALL
		SELECT u.client_id, u.id, p.course_id, NULL, p.due_after_days, p.position
		FROM users AS u JOIN program_courses AS p ON p.client_id = u.client_id WHERE ?`, asked(are), are)
	_, err := pg.Exec(ctx, c, "enrol imported users", pg.SQL(enrolSinceSQL, domain.DateOf(c.At), appendedFrom, wanted, c.At))
	return err
}
