package retire

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
	"time"
)

// Announce records the announcement of v1's end. It is refused while another one
// stands, where the sunset is less than twelve months after the announcement, and
// for an announcement in the future (decisions 11.2).
func (s *Store) Announce(ctx context.Context, a Announcement) error {
	const doing = "announce the end of v1"
	a = Announcement{a.Announced.UTC(), a.Sunset.UTC()}
	return s.change(ctx, doing, func(tx *sql.Tx, holds *State, now time.Time) error {
		if err := holds.mayAnnounce(a, now); err != nil {
			return err
		}
		return exec(ctx, tx, doing, `UPDATE v1_state SET announced_at = $1, sunset_at = $2`, a.Announced, a.Sunset)
	})
}

// Postpone moves the sunset to a later time, and returns the one that was.
func (s *Store) Postpone(ctx context.Context, sunset time.Time) (before time.Time, err error) {
	const doing = "postpone the end of v1"
	err = s.change(ctx, doing, func(tx *sql.Tx, holds *State, now time.Time) error {
		if err := holds.mayPostpone(sunset, now); err != nil {
			return err
		}
		before = holds.facts.Announcement.Sunset
		return exec(ctx, tx, doing, `UPDATE v1_state SET sunset_at = $1`, sunset.UTC())
	})
	return before, err
}

// Cancel takes the announcement back, and returns it. Phases and brownouts stay.
// When v1 has ended it is refused.
func (s *Store) Cancel(ctx context.Context) (a Announcement, err error) {
	const doing = "take the announcement of v1's end back"
	err = s.change(ctx, doing, func(tx *sql.Tx, holds *State, _ time.Time) error {
		if a, err = holds.announced(); err != nil {
			return err
		}
		return exec(ctx, tx, doing, `UPDATE v1_state SET announced_at = NULL, sunset_at = NULL`)
	})
	return a, err
}

// SetPhase sets a phase for the keys of a scope, until a time or, where that is
// zero, for good: then all that was set before for any of them is forgotten. With a
// time, what was set before holds again from then on (Setting). When v1 has ended,
// only all keys can be set on, which takes the end back.
func (s *Store) SetPhase(ctx context.Context, of Scope, phase Phase, until time.Time) error {
	const doing = "set a phase of v1"
	set := Setting{Scope: of, Phase: phase, Until: until}
	return s.change(ctx, doing, func(tx *sql.Tx, holds *State, now time.Time) error {
		if err := holds.maySet(set, now); err != nil {
			return err
		}
		if _, ended := holds.Ended(); ended {
			if err := exec(ctx, tx, doing, `UPDATE v1_state SET ended_at = NULL`); err != nil {
				return err
			}
		}
		return put(ctx, tx, doing, set, now)
	})
}

// put adds a setting, and removes those that it hides for as long as they last.
func put(ctx context.Context, tx *sql.Tx, doing string, set Setting, now time.Time) error {
	key, partner := sql.Null[string]{V: set.Key.UUID(), Valid: !set.Key.IsZero()},
		sql.Null[string]{V: set.Partner.UUID(), Valid: !set.Partner.IsZero()}
	until := sql.NullTime{Time: set.Until.UTC(), Valid: !set.Until.IsZero()}
	err := exec(ctx, tx, doing, `DELETE FROM v1_phases AS p
		WHERE p.until < $4 OR (($3::timestamptz IS NULL OR p.until <= $3)
			AND CASE
				WHEN $1::uuid IS NOT NULL THEN p.key_id = $1
				WHEN $2::uuid IS NOT NULL THEN p.partner_id = $2
					OR p.key_id IN (SELECT id FROM api_keys WHERE partner_id = $2)
				ELSE true
			END)`, key, partner, until, now.Add(-skew))
	if err != nil {
		return err
	}
	return exec(ctx, tx, doing, `INSERT INTO v1_phases (key_id, partner_id, phase, until, set_at)
		VALUES ($1::uuid, $2::uuid, $3, $4, $5)`, key, partner, string(set.Phase), until, now)
}

// AddBrownout adds a brownout, and returns its id.
func (s *Store) AddBrownout(ctx context.Context, w Window) (id int64, err error) {
	const doing = "add a brownout of v1"
	err = s.change(ctx, doing, func(tx *sql.Tx, holds *State, now time.Time) error {
		if err := holds.mayBrownOut(w, now); err != nil {
			return err
		}
		// Of those that are over, as many are kept as may stand.
		if err := exec(ctx, tx, doing, `DELETE FROM v1_brownouts WHERE id IN (SELECT id FROM v1_brownouts
			WHERE ends_at < $1 ORDER BY ends_at DESC OFFSET $2)`, now.Add(-skew), maxBrownouts); err != nil {
			return err
		}
		keys := make([]string, len(w.Keys))
		for i, key := range w.Keys {
			keys[i] = key.UUID()
		}
		err := tx.QueryRowContext(ctx, `INSERT INTO v1_brownouts
			(start_at, for_seconds, every_seconds, windows, keys, ends_at)
			VALUES ($1, $2, $3, $4, string_to_array($5, ',')::uuid[], $6) RETURNING id`, w.Start.UTC(), int64(w.For/time.Second),
			int64(w.Every/time.Second), w.Count, strings.Join(keys, ","), w.Ends().UTC()).Scan(&id)
		if err != nil {
			return failed(doing, err)
		}
		return nil
	})
	return id, err
}

// CancelBrownout removes a brownout, also one whose window is open.
func (s *Store) CancelBrownout(ctx context.Context, id int64) error {
	const doing = "cancel a brownout of v1"
	return s.change(ctx, doing, func(tx *sql.Tx, _ *State, _ time.Time) error {
		result, err := tx.ExecContext(ctx, `DELETE FROM v1_brownouts WHERE id = $1`, id)
		if err != nil {
			return failed(doing, err)
		}
		if n, err := result.RowsAffected(); err != nil || n == 0 {
			return fmt.Errorf("there is no brownout %d: partnerapi v1 brownout list shows them", id)
		}
		return nil
	})
}

// End ends v1: from then on every key is off, those that are created later too. It
// is refused for every reason of decisions 11.7 at once.
func (s *Store) End(ctx context.Context, e Ending) error {
	const doing = "end v1"
	return s.change(ctx, doing, func(tx *sql.Tx, holds *State, now time.Time) error {
		if err := holds.mayEnd(e, now); err != nil {
			return err
		}
		if err := exec(ctx, tx, doing, `UPDATE v1_state SET ended_at = $1`, now); err != nil {
			return err
		}
		return put(ctx, tx, doing, Setting{Phase: Off}, now)
	})
}

// Serves records which release of v2 a process that serves v1 has. It writes
// nothing where that is what is recorded.
func (s *Store) Serves(ctx context.Context, release string) error {
	_, err := s.db.ExecContext(ctx, `UPDATE v1_state SET served_release = $1 WHERE served_release IS DISTINCT FROM $1`,
		release)
	if err != nil {
		return failed("record the release that is served", err)
	}
	return nil
}
