//go:build slow

package db_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"testing"

	"partnerapi/db"
	"partnerapi/domain"
)

// move moves a user into a collection, out of all others.
func (o *office) move(ctx context.Context, user domain.UserID, to domain.CollectionID) error {
	return o.ChangeOf(ctx, o.client, func(ctx context.Context, c *db.Change, t *db.Tenant) error {
		if err := c.LockAudiencesShared(ctx, t.ID); err != nil {
			return err
		}
		if _, err := t.LockUsers(ctx, c, []domain.UserID{user}); err != nil {
			return err
		}
		return t.MoveMember(ctx, c, to, user)
	})
}

// TestPolicyCountsFollowMoves: users who move between collections move the counts
// of the policies of both, also while others write.
func TestPolicyCountsFollowMoves(t *testing.T) {
	o := newOffice(t)
	o.rounds(3, func(r *rand.Rand) error {
		err := o.move(t.Context(), o.users[r.IntN(len(o.users))], o.collections[r.IntN(len(o.collections))])
		return errors.Join(err, o.step(t.Context(), r))
	})

	for _, user := range o.users {
		o.Must(o.move(t.Context(), user, o.collections[0]))
	}
	o.check(11)
	err := o.move(t.Context(), o.users[0], db.NewID[domain.CollectionKind]())
	if !domain.IsCode(err, domain.NotFound) {
		t.Errorf("a move into no collection ends in %v", err)
	}
	o.check(12)
}
