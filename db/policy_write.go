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
			Message: "reminders of a policy can be sent once a day (UTC), and those of today were sent",
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
