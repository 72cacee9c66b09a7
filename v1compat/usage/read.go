package usage

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
	"time"

	"partnerapi/db/pg"
	"partnerapi/domain"
)

// Of reads what a key called of version 1 from a day on, the newest day first,
// then by operation. What was called in the last seconds is not written yet, by
// any process: it is not in the answer (Every).
func (c *Counter) Of(ctx context.Context, key domain.KeyID, from domain.Date) ([]Row, error) {
	return rows(ctx, c.db, `WHERE surface = 'v1' AND key_id = $1::text::uuid AND day >= $2::text::date
		ORDER BY day DESC, operation`, key.UUID(), from.String())
}

// From reads what all keys, or those that are named, called of both versions from
// a day on, by the key, the newest day first, then by operation.
func From(ctx context.Context, db *sql.DB, from domain.Date, keys ...domain.KeyID) ([]Row, error) {
	return rows(ctx, db, `WHERE day >= $1::text::date AND (key_id = ANY ($2::text[]::uuid[]) OR cardinality($2::text[]) = 0)
		ORDER BY key_id, day DESC, operation`, from.String(), texts(keys))
}

// texts are the ids as UUIDs; empty, and not nil, for none.
func texts(keys []domain.KeyID) []string {
	out := make([]string, len(keys))
	for i, key := range keys {
		out[i] = key.UUID()
	}
	return out
}

func rows(ctx context.Context, db *sql.DB, which string, args ...any) ([]Row, error) {
	return each(ctx, db, "read the use of v1", func(scan func(...any) error, r *Row) error {
		err := scan(&r.Key, &r.Day, &r.Surface, &r.Operation, &r.Calls, &r.Failures, &r.FirstAt, &r.LastAt, lines{&r.UserAgents})
		r.FirstAt, r.LastAt = r.FirstAt.UTC(), r.LastAt.UTC()
		return err
	}, `SELECT key_id, day, surface, operation, calls, failures, first_at, last_at, array_to_string(user_agents, E'\n')
		FROM v1_usage `+which,
		args...)
}

// Total is what one key called of one operation in all days that are kept.
type Total struct {
	Key       domain.KeyID
	Surface   Surface
	Operation string
	FirstAt   time.Time
	LastAt    time.Time
	// AnsweredAt is the last call of the last day on which not all failed; zero for
	// none.
	AnsweredAt time.Time
	// UserAgents are those of the last day.
	UserAgents []string
}

// Totals reads what all keys, or those that are named, called of both versions in
// all days that are kept, by the key, the version and the operation.
func Totals(ctx context.Context, db *sql.DB, keys ...domain.KeyID) ([]Total, error) {
	// Of arrays that begin with a day, the greatest is the last day's.
	return each(ctx, db, "sum up the use of v1", func(scan func(...any) error, t *Total) error {
		var answered sql.NullTime
		err := scan(&t.Key, &t.Surface, &t.Operation, &t.FirstAt, &t.LastAt, &answered, lines{&t.UserAgents})
		t.FirstAt, t.LastAt = t.FirstAt.UTC(), t.LastAt.UTC()
		if answered.Valid {
			t.AnsweredAt = answered.Time.UTC()
		}
		return err
	}, `SELECT key_id, surface, operation, min(first_at), max(last_at), max(last_at) FILTER (WHERE calls > failures),
			array_to_string((max(to_char(day, 'YYYY-MM-DD') || user_agents))[2:], E'\n')
		FROM v1_usage WHERE key_id = ANY ($1::text[]::uuid[]) OR cardinality($1::text[]) = 0
		GROUP BY key_id, surface, operation ORDER BY key_id, surface, operation`, texts(keys))
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

// LastCalls reads the last call of each key that called version 1 at a time or
// later, the latest first. A call that was answered with an error is one too.
func LastCalls(ctx context.Context, db *sql.DB, since time.Time) ([]LastCall, error) {
	return each(ctx, db, "look for the last calls of v1", func(scan func(...any) error, l *LastCall) error {
		err := scan(&l.Key, &l.Prefix, &l.Name, &l.Partner, &l.At, &l.Operation, lines{&l.UserAgents})
		l.At = l.At.UTC()
		return err
	}, `SELECT l.key_id, coalesce(k.prefix, ''), coalesce(k.name, ''), coalesce(p.name, ''), l.last_at, l.operation,
			array_to_string(l.user_agents, E'\n')
		FROM (
			SELECT DISTINCT ON (key_id) key_id, last_at, operation, user_agents FROM v1_usage
			WHERE surface = 'v1' AND day >= $1::text::date AND last_at >= $2::timestamptz
			ORDER BY key_id, last_at DESC, operation
		) AS l
		LEFT JOIN api_keys AS k ON k.id = l.key_id LEFT JOIN partners AS p ON p.id = k.partner_id
		ORDER BY l.last_at DESC, l.key_id`, domain.DateOf(since).String(), since)
}

// each runs a query and reads each row of its answer by read.
func each[T any](
	ctx context.Context, db *sql.DB, doing string, read func(scan func(...any) error, into *T) error, query string, args ...any,
) (list []T, err error) {
	found, err := db.QueryContext(ctx, query, args...)
	if err != nil {
		return nil, failed(doing, err)
	}
	defer found.Close()
	for found.Next() {
		var row T
		if err := read(found.Scan, &row); err != nil {
			return nil, failed(doing, err)
		}
		list = append(list, row)
	}
	if err := found.Err(); err != nil {
		return nil, failed(doing, err)
	}
	return list, nil
}

// failed is Unavailable for an error of a database that cannot be reached.
func failed(doing string, err error) error {
	if away := pg.Unavailable(doing, err); away != nil {
		return away
	}
	return fmt.Errorf("%s: %w", doing, err)
}

// lines are the lines of a text: user agents as they are read, which hold no line
// break.
type lines struct{ into *[]string }

// Scan reads the lines; an empty text has none.
func (l lines) Scan(src any) error {
	text, ok := src.(string)
	if !ok {
		return fmt.Errorf("scan %T into lines", src)
	}
	*l.into = nil
	if text != "" {
		*l.into = strings.Split(text, "\n")
	}
	return nil
}
