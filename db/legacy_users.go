package db

// What the files of other subjects, which are not converted yet, still use of
// users and scores.

import (
	"context"
	"time"

	"partnerapi/domain"
)

func (d *DB) rescoreUsers(ctx context.Context, keys []domain.UserKey) error {
	return d.Change(ctx, func(_ context.Context, c *Change) error {
		c.Rescore(keys...)
		return nil
	})
}

// Rescore computes the scores of some of a client's users again.
func (d *DB) Rescore(ctx context.Context, client domain.ClientID, users []domain.UserID) error {
	return d.rescoreUsers(ctx, (&Tenant{Client: domain.Client{ID: client}}).keysOf(users))
}

// LockUser finds and locks a user.
func (d *DB) LockUser(ctx context.Context, id domain.UserID) (domain.User, error) {
	u, err := (&Change{DB: d}).LockUser(ctx, id)
	if err != nil {
		return domain.User{}, err
	}
	return u.User, nil
}

// LockUsers locks some of a client's users.
func (d *DB) LockUsers(ctx context.Context, client domain.ClientID, ids []domain.UserID) ([]domain.UserID, error) {
	return (&Tenant{Client: domain.Client{ID: client}}).LockUsers(ctx, &Change{DB: d}, ids)
}

// InsertEvent records that something happened to a client or one of its users.
func (d *DB) InsertEvent(
	ctx context.Context, kind domain.EventType, client domain.ClientID, user *domain.UserID, at time.Time,
) error {
	return d.Change(ctx, func(_ context.Context, c *Change) error {
		key := domain.UserKey{Client: client}
		if user != nil {
			key.User = *user
		}
		c.At = at
		c.UserEvent(kind, key)
		return nil
	})
}
