package db

import (
	"context"
	"time"

	"partnerapi/domain"
)

// TakeReminderDay notes that a policy's reminders go out today (UTC), in the
// transaction of ctx. They do so once a day: RateLimited, until the next day,
// from then on. Of transactions at once, one goes on.
func (d *DB) TakeReminderDay(ctx context.Context, p domain.Policy) error {
	now := d.Now()
	done, err := d.conn(ctx).NewRaw(`
		UPDATE policies SET reminded_on = ?2 WHERE client_id = ?0 AND id = ?1 AND (reminded_on IS NULL OR reminded_on < ?2)`,
		p.Client, p.ID, domain.DateOf(now)).Exec(ctx)
	if err != nil {
		return d.bad("take the day of a policy's reminders", err)
	}
	if n, _ := done.RowsAffected(); n == 0 {
		return &domain.Error{
			Code: domain.RateLimited, Object: p.ID.Noun(), RetryAfter: domain.UntilTomorrow(now),
			Message: "the reminders of this policy went out today already; they can once a day (UTC)",
		}
	}
	return nil
}

// RequestReminders asks for a mail to every active user of a policy's audience
// who has not signed, in one statement, and returns the mails' ids. A policy
// that nobody has to sign has none.
func (d *DB) RequestReminders(ctx context.Context, p domain.Policy) ([]domain.MessageID, error) {
	if !p.MustSign {
		return nil, nil
	}
	now := d.Now()
	asked, args := audience(p)
	signature, signed := d.signature(p)
	unsigned := d.conn(ctx).NewSelect().TableExpr("users AS u").
		ColumnExpr("u.client_id, uuid_v7(?), 'policy-reminder', u.id, ?::uuid, ?::timestamptz", now, p.ID, now).
		Where(asked, args...).Where("NOT EXISTS (SELECT 1 FROM policy_signatures AS s WHERE "+signature+")", signed...)
	var ids []domain.MessageID
	err := d.conn(ctx).NewRaw("INSERT INTO mail_requests (client_id, id, type, user_id, policy_id, created_at) ? RETURNING id", unsigned).Scan(ctx, &ids)
	return ids, d.bad("ask for reminders", err)
}

// SignPolicy records that a user signed a version of a policy. It may come
// more than once, late, and before the version is published: what is kept is
// the latest signature of each version. NotFound where the client has no such
// policy or user.
func (d *DB) SignPolicy(ctx context.Context, client domain.ClientID, user domain.UserID, policy domain.PolicyID, version int, at time.Time) error {
	return d.Tx(ctx, func(ctx context.Context) error {
		found, err := d.LockUsers(ctx, client, []domain.UserID{user})
		if err != nil {
			return err
		}
		if _, err := d.lockPolicy(ctx, client, policy); err != nil {
			return err
		}
		if len(found) == 0 {
			return domain.ErrNotFound(user.Noun())
		}
		return d.sign(ctx, []signature{{domain.UserKey{Client: client, User: user}, policy, version, at}})
	})
}

// lockPolicy locks a policy. NotFound where the client has no such one.
func (d *DB) lockPolicy(ctx context.Context, client domain.ClientID, id domain.PolicyID) (policyState, error) {
	states, err := d.lockPolicies(ctx, []domain.PolicyID{id})
	if err == nil && states[id].ClientID != client {
		err = domain.ErrNotFound(id.Noun())
	}
	return states[id], err
}

// PublishPolicy makes a new version of a policy the current one: sign-off
// starts anew. NotFound where the client has no such policy, or archived it.
func (d *DB) PublishPolicy(ctx context.Context, client domain.ClientID, policy domain.PolicyID, at time.Time) error {
	return d.Tx(ctx, func(ctx context.Context) error {
		state, err := d.lockPolicy(ctx, client, policy)
		if err != nil {
			return err
		}
		if state.Archived {
			return domain.ErrNotFound(policy.Noun())
		}
		return d.publish(ctx, []publication{{client, policy, at}})
	})
}

// touchPolicies notes that the audiences changed of those of a client's
// policies, alias p, that the condition selects: their counts are shown. They
// are locked in the order of their ids, after whatever else a transaction
// locks.
func (d *DB) touchPolicies(ctx context.Context, client domain.ClientID, at time.Time, condition string, args ...any) error {
	chosen := d.conn(ctx).NewSelect().TableExpr("policies AS p").Column("p.id").
		Where("p.client_id = ? AND p.requires_acknowledgment AND p.archived_at IS NULL", client).
		Where(condition, args...).OrderExpr("p.id").For("NO KEY UPDATE")
	_, err := d.conn(ctx).NewRaw("UPDATE policies SET updated_at = ? WHERE client_id = ? AND id IN (?)", at, client, chosen).Exec(ctx)
	return d.bad("touch policies", err)
}
