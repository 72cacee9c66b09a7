package retire

import (
	"context"
	"time"

	"partnerapi/db/pg"
	"partnerapi/domain"
)

// Store keeps the retirement of v1 in the database. Its tables are those of idmap's migrations.
//
// Each change of the announcement, phases, brownouts or the end is one transaction, which locks the only row of
// v1_state before it reads the state. So concurrent changes are checked against the rules one after the other. An error
// about a broken rule is written for operators.
type Store struct {
	db    *pg.DB
	clock domain.Clock
}

// NewStore returns a store on the database.
func NewStore(d *pg.DB, clock domain.Clock) *Store { return &Store{d, clock} }

// channel is the notification channel of changes.
const channel = "v1_retirement"

// Load reads the state of the retirement in one snapshot.
func (s *Store) Load(ctx context.Context) (state *State, err error) {
	err = s.db.Snapshot(ctx, func(ctx context.Context) error {
		state, err = s.load(ctx, s.clock.Now())
		return err
	})
	return state, err
}

const readAction = "read the retirement of v1"

// load reads the state in the transaction of ctx. It leaves out settings and rehearsals that ended more than skew
// before now: the others may still are valid for a process whose clock is behind.
func (s *Store) load(ctx context.Context, now time.Time) (*State, error) {
	row, err := pg.One[struct {
		AnnouncedAt, SunsetAt, EndedAt *time.Time
		ServedRelease                  string
		NewKeysOff                     bool
	}](ctx, s.db, readAction, pg.SQL("SELECT announced_at, sunset_at, ended_at, "+
		"coalesce(served_release, '') AS served_release, new_keys_off FROM v1_state"))
	if err != nil {
		return nil, err
	}
	state := &State{EndedAt: row.EndedAt, Release: row.ServedRelease, NewKeysOff: row.NewKeysOff}
	if row.AnnouncedAt != nil {
		state.Announcement = &Announcement{*row.AnnouncedAt, *row.SunsetAt}
	}
	if state.Postponements, err = pg.All[Postponement](ctx, s.db, readAction, pg.SQL(
		"SELECT postponed_at AS at, previous_at AS previous, sunset_at AS sunset FROM v1_postponements ORDER BY id")); err != nil {
		return nil, err
	}
	if state.Settings, err = s.readSettings(ctx, now.Add(-skew)); err != nil {
		return nil, err
	}
	if state.Windows, err = s.readWindows(ctx); err != nil {
		return nil, err
	}
	state.Rehearsals, err = s.readRehearsals(ctx, now.Add(-skew))
	return state, err
}

// skew is how far the clocks of processes may be apart.
const skew = time.Hour

// readSettings returns the settings that end after since or never.
func (s *Store) readSettings(ctx context.Context, since time.Time) (Settings, error) {
	rows, err := pg.All[struct {
		ID        int64
		KeyID     *domain.KeyID
		PartnerID *domain.PartnerID
		Phase     Phase
		Until     *time.Time
		SetAt     time.Time
	}](ctx, s.db, readAction, pg.SQL(
		"SELECT id, key_id, partner_id, phase, until, set_at FROM v1_phases WHERE until IS NULL OR until > ? ORDER BY id", since))
	var list []Setting
	for _, r := range rows {
		list = append(list, Setting{
			ID: r.ID, Scope: Scope{Key: domain.OrZero(r.KeyID), Partner: domain.OrZero(r.PartnerID)}, Phase: r.Phase, Until: domain.OrZero(r.Until),
			SetAt: r.SetAt,
		})
	}
	return NewSettings(list...), err
}

// readWindows returns all brownouts, in the order in which they were added.
func (s *Store) readWindows(ctx context.Context) ([]Window, error) {
	rows, err := pg.All[struct {
		ID                       int64
		StartAt                  time.Time
		ForSeconds, EverySeconds int64
		Windows                  int
		Keys                     []domain.KeyID
	}](ctx, s.db, readAction, pg.SQL(
		"SELECT id, start_at, for_seconds, every_seconds, windows, nullif(keys, '{}') AS keys FROM v1_brownouts ORDER BY id"))
	var list []Window
	for _, r := range rows {
		list = append(list, Window{
			ID: r.ID, Start: r.StartAt, Count: r.Windows, Keys: r.Keys,
			For: time.Duration(r.ForSeconds) * time.Second, Every: time.Duration(r.EverySeconds) * time.Second,
		})
	}
	return list, err
}

// change calls fn with the state and the clock's time, in a transaction that locks the state, and notifies the
// processes that serve v1 when it commits.
func (s *Store) change(
	ctx context.Context, action string, fn func(ctx context.Context, state *State, now time.Time) error,
) error {
	return s.db.Tx(ctx, func(ctx context.Context) error {
		if err := s.exec(ctx, action, "SELECT FROM v1_state FOR UPDATE"); err != nil {
			return err
		}
		now := s.clock.Now()
		state, err := s.load(ctx, now)
		if err != nil {
			return err
		}
		if err := fn(ctx, state, now); err != nil {
			return err
		}
		return s.exec(ctx, action, "NOTIFY "+channel)
	})
}

// exec runs a statement whose number of changed rows the caller does not need.
func (s *Store) exec(ctx context.Context, action, query string, args ...any) error {
	return pg.Run(ctx, s.db, action, pg.SQL(query, args...))
}
