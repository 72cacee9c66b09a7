// Package usage counts the calls of each key to the operations of version 1 and to their successors in version
// 2, which shows who still has to move (decisions 11.4). A Counter counts in memory and adds its counts to the
// database every ten seconds; the other functions read them.
package usage

import (
	"context"
	"fmt"
	"strings"
	"time"

	"partnerapi/db/pg"
	"partnerapi/domain"
)

const (
	// flushEvery is how often a Counter is flushed: a killed process loses at most the calls of that time.
	flushEvery = 10 * time.Second
	// Days is how many days are kept, today included.
	Days = 400
	// MaxAgents is how many user agents are kept per key, operation and day: the first ones.
	MaxAgents = 5
	// maxAgent is how many bytes are kept of a user agent.
	maxAgent = 200
)

// Surface is what a call counts as: a call of a version, or a call of v1 by parity.
type Surface string

// The surfaces. A call of v2 by parity is not counted.
const (
	V1     Surface = "v1"
	V2     Surface = "v2"
	Parity Surface = "parity"
)

// ParityAgent begins the User-Agent of parity, the comparison of both versions, whose calls of v1 say nothing of what a
// caller's programs need.
const ParityAgent = "partnerapi-parity/"

// Call is a request with its response.
type Call struct {
	Key domain.KeyID
	// Surface (V1 or V2) and Operation name the called operation, by method and path, such as
	// "GET /v1/clients/{client_id}/users".
	Surface   Surface
	Operation string
	// Status is the HTTP status of the response. From 400 on the call failed; 499 means that the caller did not wait.
	Status    int
	UserAgent string
}

// Row is one key's calls of one operation on one day.
type Row struct {
	Key       domain.KeyID
	Day       domain.Date // in UTC
	Surface   Surface
	Operation string
	Calls     int64
	// Failures counts the Calls that failed.
	Failures        int64
	FirstAt, LastAt time.Time
	// UserAgents are up to MaxAgents, in order of arrival, each of up to 200 bytes of printable text; nil if no
	// call had one.
	UserAgents []string
}

// oldestDay returns the first day of the retention.
func oldestDay(now time.Time) domain.Date { return domain.DateOf(now).AddDays(1 - Days) }

// ByKey reads a key's calls of version 1 since a day, those of parity too, newest day first, then by operation. Calls
// of the last few seconds are missing, as no process has flushed them yet (flushEvery).
func (c *Counter) ByKey(ctx context.Context, key domain.KeyID, from domain.Date) ([]Row, error) {
	return rows(ctx, c.db, pg.SQL("surface <> ?surface AND key_id = ?key AND day >= ?from::date ORDER BY day DESC, operation",
		pg.Named{"surface": V2, "key": key, "from": from}))
}

// ReadRows reads the calls on all surfaces since a day, of all keys or the given ones, by key, newest day first, then
// by operation.
func ReadRows(ctx context.Context, d pg.Runner, from domain.Date, keys ...domain.KeyID) ([]Row, error) {
	return rows(ctx, d, pg.SQL("day >= ?::date AND ? ORDER BY key_id, day DESC, operation", from, keyCondition(keys)))
}

// keyCondition returns the SQL condition that a row is of one of the keys; true for none.
func keyCondition(keys []domain.KeyID) pg.Query {
	return pg.SQL("(key_id = ANY (?0::uuid[]) OR cardinality(?0::uuid[]) = 0)", pg.IDs(keys))
}

// rows reads the rows that match a condition, in the order of the ORDER BY at its end.
func rows(ctx context.Context, d pg.Runner, condition pg.Query) ([]Row, error) {
	return pg.All[Row](ctx, d, "read the use of v1", pg.SQL(`
		SELECT key_id AS key, day, surface, operation, calls, failures, first_at, last_at,
			nullif(user_agents, '{}') AS user_agents
		FROM v1_usage WHERE ?`, condition))
}

// LastCall is the last call of version 1 with a key.
type LastCall struct {
	Key domain.KeyID
	// Prefix and Name are the key's, and Partner is the name of its partner. They are empty if the key is no
	// longer in the database.
	Prefix, Name, Partner string
	At                    time.Time
	// Operation is its method and path, such as "GET /v1/clients".
	Operation string
	// UserAgents are the user agents of the operation's calls on that day.
	UserAgents []string
}

// String formats the call for an operator.
func (c LastCall) String() string {
	text := "a deleted key"
	if c.Prefix != "" {
		text = fmt.Sprintf("%s (%s)", c.Prefix, c.Name)
	}
	if c.Partner != "" {
		text += " of " + c.Partner
	}
	text += ": last call " + c.At.UTC().Format(time.RFC3339)
	if c.Operation != "" {
		text += ", " + c.Operation
	}
	if len(c.UserAgents) > 0 {
		text += fmt.Sprintf(", by %q", strings.Join(c.UserAgents, ", "))
	}
	return text
}

// LastCalls reads the last call, failed or not, of each key that called version 1 since a time, the latest first. Calls
// of parity do not count.
func LastCalls(ctx context.Context, d pg.Runner, since time.Time) ([]LastCall, error) {
	return pg.All[LastCall](ctx, d, "look for the last calls of v1", pg.SQL(`
		SELECT l.key_id AS key, coalesce(k.prefix, '') AS prefix, coalesce(k.name, '') AS name, coalesce(p.name, '') AS partner,
			l.last_at AS at, l.operation, nullif(l.user_agents, '{}') AS user_agents
		FROM (
			SELECT DISTINCT ON (key_id) key_id, last_at, operation, user_agents FROM v1_usage
			WHERE surface = ?surface AND day >= ?firstDay::date AND last_at >= ?since::timestamptz
			ORDER BY key_id, last_at DESC, operation
		) AS l
		LEFT JOIN api_keys AS k ON k.id = l.key_id LEFT JOIN partners AS p ON p.id = k.partner_id
		ORDER BY l.last_at DESC, l.key_id`, pg.Named{"surface": V1, "firstDay": domain.DateOf(since), "since": since}))
}
