package db

import (
	"context"
	"time"

	"partnerapi/db/pg"
	"partnerapi/domain"
)

const (
	// longestLease is the duration of the longest lease of an email, a delivery, a report or a sync run.
	longestLease = 2 * time.Minute
	// renewWithin is how long after a step back, or its own start, a process ends leases that lie too far ahead. By then
	// the processes that hold leases have noticed the step and renewed them (lease.Queue).
	renewWithin = time.Minute
)

// putBack are statements that make waiting work due at ?0, which is now, if a clock that was ahead has queued it or put
// it off. They read this from the row alone: its creation or its last attempt lies ahead of the clock, or it waits for
// longer than any pause after so many attempts. So no wait grows by a step back, and any process may run them at any
// time. They end the leases that end after ?2, if that is not NULL. They skip locked rows and those of suspended
// senders. ?1 is domain.Ahead, ?3 mailPauses and ?4 domain.SyncEvery in seconds.
//
// Events, periodic jobs and computed values need no statement: their readers ignore a time that lies too far ahead
// (outbox.EventsWait, ClaimPeriodic, domain.Ahead).
var putBack = []string{
	// A simulation is not due before its caller's time, nor a reminder before the time since its request. An email that
	// was leased may have been sent.
	`WITH late AS (
		SELECT o.client_id, o.id, t.due
		FROM outbox AS o LEFT JOIN phishing_results AS r ON r.client_id = o.client_id AND r.id = o.id AND o.kind = 'simulation'
		LEFT JOIN mail_requests AS m ON m.client_id = o.client_id AND m.id = o.id AND o.kind = 'mail'
		CROSS JOIN LATERAL (
			SELECT greatest(?0::timestamptz, CASE WHEN r.send_at > r.created_at THEN r.send_at END,
					CASE WHEN m.due_at > m.created_at THEN m.due_at - greatest(m.created_at - ?0, interval '0') END) AS due,
				(?3::float8[])[1 + least(o.attempts, cardinality(?3::float8[]) - 1)] * interval '1 second' AS pause
		) AS t
		WHERE o.due_at > ?0 AND o.client_id NOT IN (` + SuspendedSenders + `)
			AND CASE WHEN o.lease IS NULL THEN o.due_at > t.due + t.pause ELSE o.due_at > ?2::timestamptz END
		FOR NO KEY UPDATE OF o SKIP LOCKED
	)
	UPDATE outbox AS o SET due_at = late.due, lease = NULL, maybe_sent = o.maybe_sent OR o.lease IS NOT NULL
	FROM late WHERE o.client_id = late.client_id AND o.id = late.id`,
	// The longest pauses are of keyRetry and, after an attempt, of longestPause (package webhook).
	`UPDATE webhook_deliveries SET due_at = ?0, lease = NULL WHERE (webhook_id, id) IN (
		SELECT webhook_id, id FROM webhook_deliveries
		WHERE status = 'waiting' AND due_at > ?0 AND partner_id NOT IN (` + SuspendedPartners + `)
			AND CASE WHEN lease IS NOT NULL THEN due_at > ?2::timestamptz
				ELSE created_at > ?1::timestamptz OR (tries -> -1 ->> 'at')::timestamptz > ?1::timestamptz
					OR due_at > ?1::timestamptz + CASE WHEN first_try_at IS NULL THEN interval '1 minute' ELSE interval '132 minutes' END END
		FOR NO KEY UPDATE SKIP LOCKED)`,
	// A report waits for its next attempt for at most 18 seconds, or for what is outside for some minutes: then it is
	// attempted early.
	`UPDATE reports SET due_at = ?0, lease = NULL WHERE (client_id, id) IN (
		SELECT client_id, id FROM reports
		WHERE status = 'pending' AND coalesce(due_at, created_at) > ?0 AND client_id NOT IN (` + SuspendedClients + `)
			AND CASE WHEN lease IS NOT NULL THEN due_at > ?2::timestamptz
				ELSE created_at > ?1::timestamptz OR due_at > ?1::timestamptz + interval '20 seconds' END
		FOR NO KEY UPDATE SKIP LOCKED)`,
	`UPDATE sync_runs SET leased_until = NULL, lease = NULL WHERE (client_id, id) IN (
		SELECT client_id, id FROM sync_runs
		WHERE status IN ('queued', 'running') AND client_id NOT IN (` + SuspendedClients + `)
			AND leased_until > CASE WHEN lease IS NULL THEN ?0 ELSE ?2::timestamptz END
		FOR NO KEY UPDATE SKIP LOCKED)`,
	`UPDATE directory_connections SET next_run_at = ?0 WHERE client_id IN (
		SELECT client_id FROM directory_connections
		WHERE next_run_at > ?1::timestamptz + ?4::float8 * interval '1 second' AND client_id NOT IN (` + SuspendedClients + `)
		FOR NO KEY UPDATE SKIP LOCKED)`,
	// Numbers of active users that were written while the clock was far ahead are those of today. The trigger of clients
	// merges them too, when the number changes; stamps never lie ahead by more than 15 minutes.
	`WITH ahead AS (
		DELETE FROM active_user_days WHERE (client_id, day) IN (
			SELECT a.client_id, a.day FROM clients AS c CROSS JOIN LATERAL (
				SELECT client_id, day FROM active_user_days
				WHERE client_id = c.id AND day > ((?0::timestamptz + interval '15 minutes') AT TIME ZONE 'UTC')::date
				FOR UPDATE SKIP LOCKED
			) AS a WHERE c.id NOT IN (` + SuspendedClients + `))
		RETURNING *
	)
	INSERT INTO active_user_days AS d (client_id, day, active_users_max, active_users_last)
	SELECT client_id, (?0::timestamptz AT TIME ZONE 'UTC')::date, max(active_users_max), (array_agg(active_users_last ORDER BY day DESC))[1]
	FROM ahead GROUP BY client_id ORDER BY client_id
	ON CONFLICT (client_id, day) DO UPDATE SET
		active_users_max = greatest(d.active_users_max, excluded.active_users_max), active_users_last = excluded.active_users_last`,
}

// mailPauses are the longest pauses of an unleased email in seconds, by its number of failed attempts: before the first
// attempt a short one if it did not begin, then domain.MailPauses with their jitter.
var mailPauses = func() []float64 {
	pauses := []float64{5}
	for _, pause := range domain.MailPauses {
		pauses = append(pauses, 1+1.1*pause.Seconds())
	}
	return pauses
}()

// putBackLate makes work due again that a clock which was ahead of now has queued or put off. It ends leases that lie
// too far ahead only if leases is true.
func (d *DB) putBackLate(ctx context.Context, now time.Time, leases bool) error {
	ahead := domain.Ahead(now)
	var leased *time.Time
	if leases {
		leased = new(ahead.Add(longestLease))
	}
	for _, statement := range putBack {
		err := pg.Run(ctx, d, "put late work back", pg.SQL(statement, now, ahead, leased, mailPauses, domain.SyncEvery.Seconds()))
		if err != nil {
			return err
		}
	}
	return nil
}

// putBackAfterStep puts late work back if the clock is plausible, and was set back or ahead of now until a moment ago,
// or this process has just started. After renewWithin it does so again, with the leases that no one has renewed.
func (d *DB) putBackAfterStep(ctx context.Context, now time.Time, elapsed time.Duration) error {
	w := d.watch
	if w.behind {
		if err := d.putBackLate(ctx, now, false); err != nil {
			return err
		}
		w.behind, w.leasesAt = false, elapsed+renewWithin
	}
	if w.leasesAt == 0 || elapsed < w.leasesAt {
		return nil
	}
	err := d.putBackLate(ctx, now, true)
	if err == nil {
		w.leasesAt = 0
	}
	return err
}
