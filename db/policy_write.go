package db

import (
	"context"

	"partnerapi/db/pg"
	"partnerapi/domain"
)

// Remind asks for a mail to every active user of the locked policy's audience who
// has not signed, and returns the ids of the mails: none where nobody has to
// sign. RateLimited, until the next day (UTC), where the policy's reminders were
// sent today.
func (p *Policy) Remind(ctx context.Context, c *Change) ([]domain.MessageID, error) {
	today := domain.DateOf(c.At)
	if p.RemindedOn != nil && p.RemindedOn.DaysUntil(today) <= 0 {
		return nil, &domain.Error{
			Code: domain.RateLimited, Object: p.ID.Noun(), RetryAfter: domain.UntilTomorrow(c.At),
			Message: "the reminders of this policy were sent today already; the next can be sent tomorrow (UTC)",
		}
	}
	return pg.All[domain.MessageID](ctx, c, "ask for reminders", pg.SQL(`
		WITH reminded AS (
			UPDATE policies SET reminded_on = ?3::date WHERE client_id = ?0 AND id = ?1
		)
		INSERT INTO mail_requests (client_id, id, type, user_id, policy_id, created_at)
		SELECT u.client_id, uuid_v7(?2), 'policy-reminder', u.id, ?1, ?2
		FROM users AS u
		WHERE ?4::boolean AND ?5 AND NOT EXISTS (SELECT 1 FROM policy_signatures AS s WHERE ?6)
		RETURNING id`, p.Client, p.ID, c.At, today, p.MustSign, p.audience(), p.signature()))
}
