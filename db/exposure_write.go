package db

import (
	"context"
	"time"

	"partnerapi/domain"
)

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
