package retire

import (
	"context"
	"time"

	"partnerapi/db/pg"
	"partnerapi/domain"
)

// A rehearsal puts a key into the phase Off for some minutes by its own wish, so that whoever
// calls with it sees whether anything still needs v1 (decisions 11.9).

const (
	// MaxRehearsal is the longest rehearsal.
	MaxRehearsal = time.Hour
	// RehearsalEvery is the minimum time between the starts of two rehearsals of a key.
	RehearsalEvery = 24 * time.Hour
)

// StartRehearsal begins a rehearsal of a key, and returns its end, in whole seconds. It returns RateLimited if the
// key's last one began less than RehearsalEvery ago.
func (s *Store) StartRehearsal(ctx context.Context, key domain.KeyID, duration time.Duration) (until time.Time, err error) {
	const action = "start a rehearsal"
	now := s.clock.Now()
	until = now.Add(duration).Truncate(time.Second)
	err = s.db.Tx(ctx, func(ctx context.Context) error {
		n, err := pg.Exec(ctx, s.db, action, pg.SQL(`
			INSERT INTO v1_rehearsals AS r (key_id, started_at, ended_at) VALUES (?key, ?now, ?until)
			ON CONFLICT (key_id) DO UPDATE SET started_at = excluded.started_at, ended_at = excluded.ended_at
			WHERE r.started_at <= ?since::timestamptz`,
			pg.Named{"key": key, "now": now, "until": until, "since": now.Add(-RehearsalEvery)}))
		if err != nil {
			return err
		}
		if n == 0 {
			return s.tooSoon(ctx, key, now)
		}
		return s.exec(ctx, action, "NOTIFY "+channel)
	})
	return until, err
}

// tooSoon returns RateLimited, with when the key's next rehearsal may begin, or the error of reading the last one.
func (s *Store) tooSoon(ctx context.Context, key domain.KeyID, now time.Time) error {
	last, err := pg.One[time.Time](ctx, s.db, "read the last rehearsal", pg.SQL(
		"SELECT started_at FROM v1_rehearsals WHERE key_id = ?", key))
	if err != nil {
		return err
	}
	next := last.Add(RehearsalEvery)
	return &domain.Error{
		Code: domain.RateLimited, RetryAfter: max(next.Sub(now), time.Second), // 0 would send no header
		Message: "this key had a rehearsal within the last 24 hours; the next one can start at " + next.UTC().Format(time.RFC3339),
	}
}

// EndRehearsal ends a key's rehearsal, if one is in progress: now, but not before its start by another process's clock.
func (s *Store) EndRehearsal(ctx context.Context, key domain.KeyID) error {
	const action = "end a rehearsal"
	now := s.clock.Now()
	return s.db.Tx(ctx, func(ctx context.Context) error {
		n, err := pg.Exec(ctx, s.db, action, pg.SQL(
			"UPDATE v1_rehearsals SET ended_at = greatest(started_at, ?0::timestamptz) WHERE key_id = ?1 AND ended_at > ?0::timestamptz", now, key))
		if err != nil || n == 0 {
			return err
		}
		return s.exec(ctx, action, "NOTIFY "+channel)
	})
}

// Rehearsal is the last rehearsal of a key.
type Rehearsal struct {
	Key domain.KeyID
	// Prefix and Name are the key's, and Partner is the name of its partner. They are empty
	// if the key is no longer in the database.
	Prefix, Name, Partner string
	// EndedAt is when it ended, or ends.
	StartedAt, EndedAt time.Time
}

// Running reports whether the rehearsal has not ended.
func (r Rehearsal) Running(now time.Time) bool { return now.Before(r.EndedAt) }

// Rehearsals returns the last rehearsal of each key that had one, the latest first.
func (s *Store) Rehearsals(ctx context.Context) ([]Rehearsal, error) {
	return pg.All[Rehearsal](ctx, s.db, "list rehearsals", pg.SQL(`
		SELECT r.key_id AS key, coalesce(k.prefix, '') AS prefix, coalesce(k.name, '') AS name, coalesce(p.name, '') AS partner,
			r.started_at, r.ended_at
		FROM v1_rehearsals AS r LEFT JOIN api_keys AS k ON k.id = r.key_id LEFT JOIN partners AS p ON p.id = k.partner_id
		ORDER BY r.started_at DESC, r.key_id`))
}

// readRehearsals returns the ends of the rehearsals that end after since, by key; nil for none.
func (s *Store) readRehearsals(ctx context.Context, since time.Time) (map[domain.KeyID]time.Time, error) {
	rows, err := pg.All[struct {
		KeyID   domain.KeyID
		EndedAt time.Time
	}](ctx, s.db, readAction, pg.SQL("SELECT key_id, ended_at FROM v1_rehearsals WHERE ended_at > ?", since))
	if err != nil || len(rows) == 0 {
		return nil, err
	}
	ends := make(map[domain.KeyID]time.Time, len(rows))
	for _, r := range rows {
		ends[r.KeyID] = r.EndedAt
	}
	return ends, nil
}
