package db_test

import (
	"context"
	"math/rand/v2"
	"sync"
	"testing"

	"partnerapi/db"
	"partnerapi/domain"
)

// move moves a user into a collection, out of all others.
func (o *office) move(ctx context.Context, user domain.UserID, to domain.CollectionID) error {
	return o.ChangeOf(ctx, o.client, func(ctx context.Context, c *db.Change, t *db.Tenant) error {
		if err := c.ShareAudiences(ctx, t.ID); err != nil {
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
	for round := range 10 {
		var group sync.WaitGroup
		for worker := range 3 {
			r := rand.New(rand.NewPCG(uint64(round), uint64(worker)))
			group.Go(func() {
				for range 10 {
					err := o.move(t.Context(), o.users[r.IntN(len(o.users))], o.collections[r.IntN(len(o.collections))])
					if err == nil {
						err = o.step(t.Context(), r)
					}
					if err != nil {
						t.Error(err)
					}
				}
			})
		}
		group.Wait()
		o.check(round)
	}

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
