package retire

import (
	"context"
	"fmt"
	"time"

	"partnerapi/db/pg"
	"partnerapi/domain"
)

// Announce records the announcement of v1's end. It is refused while another one
// stands, where the sunset is less than twelve months after the announcement, and
// for an announcement in the future (decisions 11.2).
func (s *Store) Announce(ctx context.Context, a Announcement) error {
	const doing = "announce the end of v1"
	a = Announcement{a.Announced.UTC(), a.Sunset.UTC()}
	return s.change(ctx, doing, func(ctx context.Context, holds *State, now time.Time) error {
		if err := holds.checkAnnounce(a, now); err != nil {
			return err
		}
		return s.exec(ctx, doing, `UPDATE v1_state SET announced_at = ?, sunset_at = ?`, a.Announced, a.Sunset)
	})
}

// Postpone moves the sunset to a later time, and returns the one that was.
func (s *Store) Postpone(ctx context.Context, sunset time.Time) (before time.Time, err error) {
	const doing = "postpone the end of v1"
	err = s.change(ctx, doing, func(ctx context.Context, holds *State, now time.Time) error {
		if err := holds.checkPostpone(sunset, now); err != nil {
			return err
		}
		before = holds.Announcement.Sunset
		return s.exec(ctx, doing, `UPDATE v1_state SET sunset_at = ?`, sunset.UTC())
	})
	return before, err
}

// Cancel takes the announcement back, and returns it. Phases and brownouts stay.
// When v1 has ended it is refused.
func (s *Store) Cancel(ctx context.Context) (a Announcement, err error) {
	const doing = "take the announcement of v1's end back"
	err = s.change(ctx, doing, func(ctx context.Context, holds *State, _ time.Time) error {
		if a, err = holds.requireAnnouncement(); err != nil {
			return err
		}
		return s.exec(ctx, doing, `UPDATE v1_state SET announced_at = NULL, sunset_at = NULL`)
	})
	return a, err
}

// SetPhase sets a phase for the keys of a scope that there are, until a time or, where that
// is zero, for good: then all that was set before for any of them is forgotten. With a
// time, what was set before holds again from then on (Setting). When v1 has ended,
// only all keys can be set on, which takes the end back.
func (s *Store) SetPhase(ctx context.Context, of Scope, phase Phase, until time.Time) error {
	const doing = "set a phase of v1"
	set := Setting{Scope: of, Phase: phase, Until: until}
	return s.change(ctx, doing, func(ctx context.Context, holds *State, now time.Time) error {
		if err := holds.checkSetting(set, now); err != nil {
			return err
		}
		if holds.EndedAt != nil {
			if err := s.exec(ctx, doing, `UPDATE v1_state SET ended_at = NULL`); err != nil {
				return err
			}
		}
		return s.replaceSetting(ctx, doing, set, now)
	})
}

// replaceSetting adds a setting, and removes those that it hides for as long as they last.
func (s *Store) replaceSetting(ctx context.Context, doing string, set Setting, now time.Time) error {
	key, partner, until := domain.OrNil(set.Key), domain.OrNil(set.Partner), domain.OrNil(set.Until)
	err := s.exec(ctx, doing, `DELETE FROM v1_phases AS p
		WHERE p.until < @past::timestamptz OR ((@until::timestamptz IS NULL OR p.until <= @until::timestamptz)
			AND CASE
				WHEN @key::uuid IS NOT NULL THEN p.key_id = @key::uuid
				WHEN @partner::uuid IS NOT NULL THEN p.partner_id = @partner::uuid
					OR p.key_id IN (SELECT id FROM api_keys WHERE partner_id = @partner::uuid)
				ELSE true
			END)`, pg.Named{"key": key, "partner": partner, "until": until, "past": now.Add(-skew)})
	if err != nil {
		return err
	}
	return s.exec(ctx, doing, `INSERT INTO v1_phases (key_id, partner_id, phase, until, set_at) VALUES (?, ?, ?, ?, ?)`,
		key, partner, set.Phase, until, now)
}

// SetNewKeys says whether keys that are made from now on have no v1: they are created in the
// phase Off. Existing keys stay as they are.
func (s *Store) SetNewKeys(ctx context.Context, off bool) error {
	const doing = "set the phase of new keys"
	return s.change(ctx, doing, func(ctx context.Context, holds *State, _ time.Time) error {
		if err := holds.checkNotEnded(); err != nil {
			return err
		}
		return s.exec(ctx, doing, `UPDATE v1_state SET new_keys_off = ?`, off)
	})
}

// AllowNewKey gives a key v1 that the transaction of ctx has created, whatever new keys have.
// It is refused when v1 has ended.
func (s *Store) AllowNewKey(ctx context.Context, key domain.KeyID) error {
	const doing = "give a new key v1"
	return s.change(ctx, doing, func(ctx context.Context, holds *State, _ time.Time) error {
		if err := holds.checkNotEnded(); err != nil {
			return err
		}
		return s.exec(ctx, doing, `UPDATE v1_phases SET phase = 'on' WHERE key_id = ?`, key)
	})
}

// AddBrownout adds a brownout, and returns its id.
func (s *Store) AddBrownout(ctx context.Context, w Window) (id int64, err error) {
	const doing = "add a brownout of v1"
	err = s.change(ctx, doing, func(ctx context.Context, holds *State, now time.Time) error {
		if err := holds.checkBrownout(w, now); err != nil {
			return err
		}
		// Of those that are over, as many are kept as may stand.
		if err := s.exec(ctx, doing, `DELETE FROM v1_brownouts WHERE id IN (SELECT id FROM v1_brownouts
			WHERE ends_at < ? ORDER BY ends_at DESC OFFSET ?)`, now.Add(-skew), maxBrownouts); err != nil {
			return err
		}
		var err error
		id, err = pg.One[int64](ctx, s.db, doing, pg.SQL(`
			INSERT INTO v1_brownouts (start_at, for_seconds, every_seconds, windows, keys, ends_at)
			VALUES (?, ?, ?, ?, ?::uuid[], ?) RETURNING id`, w.Start, int64(w.For/time.Second), int64(w.Every/time.Second),
			w.Count, pg.IDs(w.Keys), w.Ends()))
		return err
	})
	return id, err
}

// CancelBrownout removes a brownout, also one whose window is open.
func (s *Store) CancelBrownout(ctx context.Context, id int64) error {
	const doing = "cancel a brownout of v1"
	return s.change(ctx, doing, func(ctx context.Context, _ *State, _ time.Time) error {
		n, err := pg.Exec(ctx, s.db, doing, pg.SQL("DELETE FROM v1_brownouts WHERE id = ?", id))
		if err == nil && n == 0 {
			err = fmt.Errorf("there is no brownout %d: partnerapi v1 brownout list shows them", id)
		}
		return err
	})
}

// End ends v1: from then on every key is off, those that are created later too. It
// is refused for every reason of decisions 11.7 at once.
func (s *Store) End(ctx context.Context, e EndRequest) error {
	const doing = "end v1"
	return s.change(ctx, doing, func(ctx context.Context, holds *State, now time.Time) error {
		if err := holds.checkEnd(e, now); err != nil {
			return err
		}
		if err := s.exec(ctx, doing, `UPDATE v1_state SET ended_at = ?`, now); err != nil {
			return err
		}
		return s.replaceSetting(ctx, doing, Setting{Phase: Off}, now)
	})
}

// RecordRelease records which release of v2 a process that serves v1 has. It writes
// nothing where that is what is recorded.
func (s *Store) RecordRelease(ctx context.Context, release string) error {
	return s.exec(ctx, "record the release that is served",
		"UPDATE v1_state SET served_release = ?0 WHERE served_release IS DISTINCT FROM ?0", release)
}
