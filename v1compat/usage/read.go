package usage

import (
	"context"
	"fmt"
	"strings"
	"time"

	"partnerapi/db/pg"
	"partnerapi/domain"
)

// Of reads what a key called of version 1 from a day on, the newest day first,
// then by operation. What was called in the last seconds is not written yet, by
// any process: it is not in the answer (every).
func (c *Counter) Of(ctx context.Context, key domain.KeyID, from domain.Date) ([]Row, error) {
	return rows(ctx, c.db, pg.SQL("surface = ? AND key_id = ? AND day >= ?::date ORDER BY day DESC, operation", V1, key, from))
}

// From reads what all keys, or those that are named, called of both versions from
// a day on, by the key, the newest day first, then by operation.
func From(ctx context.Context, d pg.Runner, from domain.Date, keys ...domain.KeyID) ([]Row, error) {
	return rows(ctx, d, pg.SQL("day >= ?::date AND ? ORDER BY key_id, day DESC, operation", from, among(keys)))
}

// among is the condition that a row is of one of the keys; none means of any.
func among(keys []domain.KeyID) pg.Query {
	return pg.SQL("(key_id = ANY (?0::uuid[]) OR cardinality(?0::uuid[]) = 0)", pg.IDs(keys))
}

func rows(ctx context.Context, d pg.Runner, which pg.Query) ([]Row, error) {
	return pg.All[Row](ctx, d, "read the use of v1", pg.SQL(`
		SELECT key_id AS key, day, surface, operation, calls, failures, first_at, last_at,
			nullif(user_agents, '{}') AS user_agents
		FROM v1_usage WHERE ?`, which))
}

// LastCall is the last call of version 1 that was made with a key.
type LastCall struct {
	Key domain.KeyID
	// Prefix is what the key is listed by, Name what it is for, and Partner whose it
	// is. They are empty where the key is no longer in the database.
	Prefix, Name, Partner string
	At                    time.Time
	// Operation is its method and path, such as "GET /v1/clients".
	Operation string
	// UserAgents are those that made calls of the operation on that day.
	UserAgents []string
}

// String is the call as an operator reads it.
func (c LastCall) String() string {
	text := fmt.Sprintf("%s (%s): last call %s", c.Prefix, c.Name, c.At.UTC().Format(time.RFC3339))
	if c.Operation != "" {
		text += ", " + c.Operation
	}
	if len(c.UserAgents) > 0 {
		text += fmt.Sprintf(", by %q", strings.Join(c.UserAgents, ", "))
	}
	return text
}

// LastCalls reads the last call of each key that called version 1 at a time or
// later, the latest first. A call that was answered with an error is one too.
func LastCalls(ctx context.Context, d pg.Runner, since time.Time) ([]LastCall, error) {
	return pg.All[LastCall](ctx, d, "look for the last calls of v1", pg.SQL(`
		SELECT l.key_id AS key, coalesce(k.prefix, '') AS prefix, coalesce(k.name, '') AS name, coalesce(p.name, '') AS partner,
			l.last_at AS at, l.operation, nullif(l.user_agents, '{}') AS user_agents
		FROM (
			SELECT DISTINCT ON (key_id) key_id, last_at, operation, user_agents FROM v1_usage
			WHERE surface = ? AND day >= ?::date AND last_at >= ?::timestamptz
			ORDER BY key_id, last_at DESC, operation
		) AS l
		LEFT JOIN api_keys AS k ON k.id = l.key_id LEFT JOIN partners AS p ON p.id = k.partner_id
		ORDER BY l.last_at DESC, l.key_id`, V1, domain.DateOf(since), since))
}
