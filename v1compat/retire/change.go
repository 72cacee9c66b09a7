package retire

import (
	"context"
	"fmt"
	"time"

	"partnerapi/db/pg"
	"partnerapi/domain"
)

// Announce records the announcement of v1's end. It returns an error if another one stands, if the sunset is less than
// twelve months after the announcement, or if the announcement is in the future (decisions 11.1).
func (s *Store) Announce(ctx context.Context, a Announcement) error {
	const action = "announce the end of v1"
	a = Announcement{a.Announced.UTC(), a.Sunset.UTC()}
	return s.change(ctx, action, func(ctx context.Context, state *State, now time.Time) error {
		if err := state.checkAnnounce(a, now); err != nil {
			return err
		}
		return s.exec(ctx, action, `WITH earlier AS (DELETE FROM v1_postponements)
			UPDATE v1_state SET announced_at = ?, sunset_at = ?`, a.Announced, a.Sunset)
	})
}

// Postpone moves the sunset to a later time, and returns the previous one.
func (s *Store) Postpone(ctx context.Context, sunset time.Time) (before time.Time, err error) {
	const action = "postpone the end of v1"
	err = s.change(ctx, action, func(ctx context.Context, state *State, now time.Time) error {
		if err := state.checkPostpone(sunset, now); err != nil {
			return err
		}
		before = state.Announcement.Sunset
		return s.exec(ctx, action, `WITH postponed AS (
				INSERT INTO v1_postponements (postponed_at, previous_at, sunset_at) SELECT ?, sunset_at, ? FROM v1_state
			) UPDATE v1_state SET sunset_at = ?`, now.UTC(), sunset.UTC(), sunset.UTC())
	})
	return before, err
}

// Cancel withdraws and returns the announcement; an error if there is none or v1 has ended. Phases and brownouts stay.
func (s *Store) Cancel(ctx context.Context) (a Announcement, err error) {
	const action = "take the announcement of v1's end back"
	err = s.change(ctx, action, func(ctx context.Context, state *State, _ time.Time) error {
		if a, err = state.requireAnnouncement(); err != nil {
			return err
		}
		return s.exec(ctx, action, `UPDATE v1_state SET announced_at = NULL, sunset_at = NULL`)
	})
	return a, err
}

// SetPhase sets the phase of the existing keys of a scope until a time, after which earlier settings apply again
// (Setting). If the time is zero, the phase has no end, and earlier settings of the scope and of scopes within it are
// deleted. After v1 has ended, only setting all keys to On is allowed, which reverses the end.
func (s *Store) SetPhase(ctx context.Context, scope Scope, phase Phase, until time.Time) error {
	const action = "set a phase of v1"
	set := Setting{Scope: scope, Phase: phase, Until: until}
	return s.change(ctx, action, func(ctx context.Context, state *State, now time.Time) error {
		if err := state.checkSetting(set, now); err != nil {
			return err
		}
		if state.EndedAt != nil {
			if err := s.exec(ctx, action, `UPDATE v1_state SET ended_at = NULL`); err != nil {
				return err
			}
		}
		return s.replaceSetting(ctx, action, set, now)
	})
}

// replaceSetting adds a setting. It deletes settings that have expired by the clock of every process (skew). It also
// deletes settings that the new one replaces for good: they have its scope or one within it, and do not outlast it.
func (s *Store) replaceSetting(ctx context.Context, action string, set Setting, now time.Time) error {
	key, partner, until := domain.OrNil(set.Key), domain.OrNil(set.Partner), domain.OrNil(set.Until)
	err := s.exec(ctx, action, `DELETE FROM v1_phases AS p
		WHERE p.until < ?past::timestamptz OR ((?until::timestamptz IS NULL OR p.until <= ?until::timestamptz)
			AND CASE
				WHEN ?key::uuid IS NOT NULL THEN p.key_id = ?key::uuid
				WHEN ?partner::uuid IS NOT NULL THEN p.partner_id = ?partner::uuid
					OR p.key_id IN (SELECT id FROM api_keys WHERE partner_id = ?partner::uuid)
				ELSE true
			END)`, pg.Named{"key": key, "partner": partner, "until": until, "past": now.Add(-skew)})
	if err != nil {
		return err
	}
	return s.exec(ctx, action, `INSERT INTO v1_phases (key_id, partner_id, phase, until, set_at) VALUES (?, ?, ?, ?, ?)`,
		key, partner, set.Phase, until, now)
}

// SetNewKeys sets whether keys created from now on are in the phase Off. Existing keys keep their phase.
func (s *Store) SetNewKeys(ctx context.Context, off bool) error {
	const action = "set the phase of new keys"
	return s.change(ctx, action, func(ctx context.Context, state *State, _ time.Time) error {
		if err := state.checkNotEnded(); err != nil {
			return err
		}
		return s.exec(ctx, action, `UPDATE v1_state SET new_keys_off = ?`, off)
	})
}

// AllowNewKey sets a key that the transaction of ctx created to On, whatever SetNewKeys says: it changes the setting
// that a trigger gave the key. A key without a setting is On. It returns an error if v1 has ended.
func (s *Store) AllowNewKey(ctx context.Context, key domain.KeyID) error {
	const action = "give a new key v1"
	return s.change(ctx, action, func(ctx context.Context, state *State, _ time.Time) error {
		if err := state.checkNotEnded(); err != nil {
			return err
		}
		return s.exec(ctx, action, `UPDATE v1_phases SET phase = 'on' WHERE key_id = ?`, key)
	})
}

// AddBrownout adds a brownout, and returns its id.
func (s *Store) AddBrownout(ctx context.Context, w Window) (id int64, err error) {
	const action = "add a brownout of v1"
	err = s.change(ctx, action, func(ctx context.Context, state *State, now time.Time) error {
		if err := state.checkBrownout(w, now); err != nil {
			return err
		}
		// Of the brownouts that have ended by the clock of every process (skew), keep the last maxBrownouts.
		if err := s.exec(ctx, action, `DELETE FROM v1_brownouts WHERE id IN (SELECT id FROM v1_brownouts
			WHERE ends_at < ? ORDER BY ends_at DESC OFFSET ?)`, now.Add(-skew), maxBrownouts); err != nil {
			return err
		}
		var err error
		id, err = pg.One[int64](ctx, s.db, action, pg.SQL(`
			INSERT INTO v1_brownouts (start_at, for_seconds, every_seconds, windows, keys, ends_at)
			VALUES (?start, ?forSeconds, ?everySeconds, ?windows, ?keys::uuid[], ?ends) RETURNING id`,
			pg.Named{
				"start":        w.Start,
				"forSeconds":   int64(w.For / time.Second),
				"everySeconds": int64(w.Every / time.Second),
				"windows":      w.Count,
				"keys":         pg.IDs(w.Keys),
				"ends":         w.Ends(),
			}))
		return err
	})
	return id, err
}

// CancelBrownout removes a brownout, also one whose window is open.
func (s *Store) CancelBrownout(ctx context.Context, id int64) error {
	const action = "cancel a brownout of v1"
	return s.change(ctx, action, func(ctx context.Context, _ *State, _ time.Time) error {
		n, err := pg.Exec(ctx, s.db, action, pg.SQL("DELETE FROM v1_brownouts WHERE id = ?", id))
		if err == nil && n == 0 {
			err = fmt.Errorf("there is no brownout %d; partnerapi v1 brownout list shows them", id)
		}
		return err
	})
}

// End ends v1: every key is Off from then on, also keys created later. If it is not allowed (decisions 11.6), the error
// lists every reason.
func (s *Store) End(ctx context.Context, e EndRequest) error {
	const action = "end v1"
	return s.change(ctx, action, func(ctx context.Context, state *State, now time.Time) error {
		if err := state.CheckEnd(e, now); err != nil {
			return err
		}
		if err := s.exec(ctx, action, `UPDATE v1_state SET ended_at = ?`, now); err != nil {
			return err
		}
		return s.replaceSetting(ctx, action, Setting{Phase: Off}, now) // deletes all earlier ones
	})
}

// RecordRelease records the release of v2 that a process serves along with v1. It writes nothing if that release is
// already recorded.
func (s *Store) RecordRelease(ctx context.Context, release string) error {
	return s.exec(ctx, "record the release that is served",
		"UPDATE v1_state SET served_release = ?0 WHERE served_release IS DISTINCT FROM ?0", release)
}
