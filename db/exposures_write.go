package db

import (
	"context"
	"time"

	"partnerapi/domain"
)

// Finding is that a user's data was found in a breach of the catalogue.
type Finding struct {
	Client domain.ClientID
	User   domain.UserID
	Breach string
	// Severity is empty to take that of the data classes or, where they are nil
	// too, of the breach.
	Severity domain.Severity
	// DataClasses is nil to take those of the breach.
	DataClasses []string
	At          time.Time
}

// FindExposure records a finding, whether or not the client is watched, and
// scores the user again. A user has at most one exposure of a breach: of
// several findings, in whichever order they come, the earliest is kept.
// NotFound where there is no such user of the client or no such breach.
func (d *DB) FindExposure(ctx context.Context, f Finding) error {
	return d.exposing(ctx, f, domain.ExposureFound)
}

// SettleExposure records that an exposure was resolved, and scores the user
// again. It may come before the finding, which it then stands in for until
// that comes; of several times the earliest is kept. NotFound where there is
// no such user of the client or no such breach.
func (d *DB) SettleExposure(ctx context.Context, f Finding) error {
	f.Severity, f.DataClasses = "", nil
	return d.exposing(ctx, f, domain.ExposureResolved)
}

// exposing records what is told of a user's exposure with the user locked, as
// whoever scores a user locks first, and scores the user.
func (d *DB) exposing(ctx context.Context, f Finding, kind domain.SignalType) error {
	return d.Tx(ctx, func(ctx context.Context) error {
		found, err := d.LockUsers(ctx, f.Client, []domain.UserID{f.User})
		if err != nil {
			return err
		}
		if len(found) == 0 {
			return domain.ErrNotFound(f.User.Noun())
		}
		breaches, err := d.lockBreaches(ctx, []string{f.Breach})
		if err != nil {
			return err
		}
		breach := breaches[f.Breach]
		if breach == nil {
			return domain.ErrNotFound(breachNoun)
		}
		told := domain.Signal{Type: kind, At: f.At, Severity: f.Severity, DataClasses: f.DataClasses}
		moved, err := d.sight(ctx, []sighting{breach.sighting(domain.UserKey{Client: f.Client, User: f.User}, &told)})
		if err != nil {
			return err
		}
		return d.rescoreKeys(ctx, moved)
	})
}

// ResolveExposure ends an exposure of a user, whom its caller has locked, at
// the time, and scores the user again. One that was resolved before stays as
// it is. NotFound where the user has none of that breach.
func (d *DB) ResolveExposure(ctx context.Context, client domain.ClientID, user domain.UserID, breach string, at time.Time) (domain.Exposure, error) {
	done, err := d.conn(ctx).NewRaw(`
		UPDATE exposures SET resolved_at = ?3, updated_at = ?4
		WHERE client_id = ?0 AND user_id = ?1 AND breach_name = ?2 AND resolved_at IS NULL`,
		client, user, breach, at, d.Now()).Exec(ctx)
	if err != nil {
		return domain.Exposure{}, d.bad("resolve an exposure", err)
	}
	if n, _ := done.RowsAffected(); n > 0 {
		if err := d.scoreExposed(ctx, client, user); err != nil {
			return domain.Exposure{}, err
		}
	}
	return d.Exposure(ctx, client, user, breach)
}

// scoreExposed scores a user whose exposures changed; a user's read shows how
// many there are, whether or not they move the score.
func (d *DB) scoreExposed(ctx context.Context, client domain.ClientID, user domain.UserID) error {
	if err := d.Rescore(ctx, client, []domain.UserID{user}); err != nil {
		return err
	}
	_, err := d.conn(ctx).NewRaw("UPDATE users SET updated_at = ? WHERE client_id = ? AND id = ?", d.Now(), client, user).Exec(ctx)
	return d.bad("touch a user", err)
}
