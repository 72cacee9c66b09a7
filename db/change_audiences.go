package db

import (
	"context"

	"partnerapi/db/pg"
	"partnerapi/domain"
)

// A framework that is assigned gives its courses to those who are in its audience
// then, and whoever enters an audience later gets the courses of the frameworks that
// are assigned then. So that neither of two transactions misses the other, each
// client has an advisory lock: who enters shares it, and who changes the framework
// assignments has it alone.

// ShareAudiences keeps the framework assignments of clients as they are until the
// transaction ends. Whoever may bring users into an audience (a new user, one who
// becomes active or has another role, group or collection) calls it before anything
// is locked, and enrol or enterAudiences afterwards.
func (c *Change) ShareAudiences(ctx context.Context, clients ...domain.ClientID) error {
	return c.lockAudiences(ctx, "pg_advisory_xact_lock_shared", pg.SQL("unnest(?::uuid[]) AS l (id)", pg.IDs(clients)))
}

// ShareAudiencesOf is ShareAudiences for the client of a user, who need not exist.
func (c *Change) ShareAudiencesOf(ctx context.Context, user domain.UserID) error {
	return c.lockAudiences(ctx, "pg_advisory_xact_lock_shared",
		pg.SQL("(SELECT client_id AS id FROM users WHERE id = ?) AS l", user))
}

// LockAudiences keeps others from changing the framework assignments of a client,
// and users from entering its audiences, until the transaction ends.
func (c *Change) LockAudiences(ctx context.Context, client domain.ClientID) error {
	return c.lockAudiences(ctx, "pg_advisory_xact_lock", pg.SQL("(SELECT ?::uuid AS id) AS l", client))
}

func (c *Change) lockAudiences(ctx context.Context, function string, clients pg.Query) error {
	type lockedRow struct {
		ID   domain.ClientID
		Lock string // empty
	}
	c.Lock(AudienceLocks)
	lock := function + "(hashtextextended('audiences/' || l.id, 0))::text"
	if trying(ctx) { // for any number of clients in one transaction, which leaves nothing
		lock = "''"
	}
	rows, err := pg.All[lockedRow](ctx, c, "lock the audiences of clients", pg.SQL(
		"SELECT l.id, "+lock+" AS lock FROM ? ORDER BY l.id", clients))
	if c.audiences == nil {
		c.audiences = map[domain.ClientID]bool{}
	}
	for _, r := range rows {
		c.audiences[r.ID] = true
	}
	return err
}

// wantAudiences holds that the audiences of the users' clients are locked or
// shared. Without it is a programming error, which panics where the database was
// opened for tests.
func (c *Change) wantAudiences(users []domain.UserKey) {
	for _, u := range users {
		if c.strict && !c.audiences[u.Client] {
			panic("users enter audiences that are not shared")
		}
	}
}
