package db

import (
	"context"
	"time"

	"github.com/uptrace/bun/dialect/pgdialect"

	"partnerapi/domain"
)

// FailedMail is a mail that was given up, for an operator.
type FailedMail struct {
	Client domain.ClientID `bun:"client_id"`
	// ID is that of the mail's request, or of a simulation's result: as a UUID.
	ID string
	// Type is domain.PhishingMail of a simulation.
	Type     domain.MessageType
	To       string `bun:"recipient"`
	FailedAt time.Time
	Failure  string
}

// failedMails are the mails that were given up from ?0 on, and that have one of
// the ids ?1, where that is not null.
const failedMails = `
	SELECT r.client_id, r.id::text AS id, r.type, coalesce(i.email, u.email) AS recipient, r.failed_at, r.failure
	FROM mail_requests AS r
	LEFT JOIN admin_invites AS i ON i.client_id = r.client_id AND i.id = r.invite_id
	LEFT JOIN users AS u ON u.client_id = r.client_id AND u.id = r.user_id
	WHERE r.failed_at >= ?0 AND (?1::uuid[] IS NULL OR r.id = ANY(?1::uuid[]))
	UNION ALL
	SELECT r.client_id, r.id::text, 'phishing', u.email, r.failed_at, r.failure
	FROM phishing_results AS r
	JOIN users AS u ON u.client_id = r.client_id AND u.id = r.user_id
	WHERE r.failed_at >= ?0 AND (?1::uuid[] IS NULL OR r.id = ANY(?1::uuid[]))`

// FailedMails lists the mails that were given up from a time on, the oldest
// failure first, and limit of them at the most.
func (d *DB) FailedMails(ctx context.Context, since time.Time, limit int) ([]FailedMail, error) {
	var mails []FailedMail
	err := d.conn(ctx).NewRaw("SELECT * FROM ("+failedMails+") AS m ORDER BY failed_at, id LIMIT ?2",
		since, (*string)(nil), limit).Scan(ctx, &mails)
	return mails, d.bad("list failed mails", err)
}

// RetryMails makes mails wait again that were given up from a time on: those
// with the ids, as UUIDs, or all where ids is nil. It returns those that it
// changed, limit at the most. Their jobs are to be enqueued in the same
// transaction, that of ctx.
func (d *DB) RetryMails(ctx context.Context, since time.Time, ids []string, limit int) ([]FailedMail, error) {
	var wanted any = (*string)(nil)
	if ids != nil {
		wanted = pgdialect.Array(ids)
	}
	var mails []FailedMail
	err := d.conn(ctx).NewRaw(`
		WITH chosen AS MATERIALIZED (SELECT * FROM (`+failedMails+`) AS m ORDER BY failed_at, id LIMIT ?2),
		requests AS (
			UPDATE mail_requests AS r SET failed_at = NULL, failure = NULL FROM chosen AS c
			WHERE c.type <> 'phishing' AND r.client_id = c.client_id AND r.id = c.id::uuid AND r.failed_at IS NOT NULL
			RETURNING r.client_id, r.id::text
		), results AS (
			UPDATE phishing_results AS r SET failed_at = NULL, failure = NULL, status = 'scheduled', updated_at = greatest(r.updated_at, ?3)
			FROM chosen AS c
			WHERE c.type = 'phishing' AND r.client_id = c.client_id AND r.id = c.id::uuid AND r.failed_at IS NOT NULL
			RETURNING r.client_id, r.id::text
		)
		SELECT c.* FROM chosen AS c WHERE (c.client_id, c.id) IN (SELECT * FROM requests UNION ALL SELECT * FROM results)
		ORDER BY c.failed_at, c.id`, since, wanted, limit, d.Now()).Scan(ctx, &mails)
	return mails, d.bad("retry failed mails", err)
}

// MailBacklog is how much mail waits to be sent, and how much was given up.
type MailBacklog struct {
	// Waiting counts what is due: a simulation that is scheduled for later is not.
	Waiting, Failed int
	// Oldest is since when the oldest of them waits; zero where none does.
	Oldest time.Time
}

// MailBacklogs counts mail that was asked for, and simulated mail.
func (d *DB) MailBacklogs(ctx context.Context) (mail, simulated MailBacklog, err error) {
	var rows []struct {
		Waiting, Failed int
		Oldest          *time.Time
	}
	err = d.conn(ctx).NewRaw(`
		SELECT (SELECT count(*) FROM mail_requests WHERE sent_at IS NULL AND failed_at IS NULL) AS waiting,
		       (SELECT count(*) FROM mail_requests WHERE failed_at IS NOT NULL) AS failed,
		       (SELECT min(created_at) FROM mail_requests WHERE sent_at IS NULL AND failed_at IS NULL) AS oldest
		UNION ALL
		SELECT (SELECT count(*) FROM phishing_results WHERE sent_at IS NULL AND failed_at IS NULL AND send_at <= ?0),
		       (SELECT count(*) FROM phishing_results WHERE failed_at IS NOT NULL),
		       (SELECT min(send_at) FROM phishing_results WHERE sent_at IS NULL AND failed_at IS NULL AND send_at <= ?0)`,
		d.Now()).Scan(ctx, &rows)
	if err != nil || len(rows) != 2 {
		return mail, simulated, d.bad("count mail", err)
	}
	backlog := func(i int) MailBacklog {
		return MailBacklog{Waiting: rows[i].Waiting, Failed: rows[i].Failed, Oldest: or(rows[i].Oldest, time.Time{})}
	}
	return backlog(0), backlog(1), nil
}
