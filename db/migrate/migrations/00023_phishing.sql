-- +goose Up
-- locks: phishing_results, ACCESS EXCLUSIVE, 90 s per million rows
-- locks: phishing_days, ROW EXCLUSIVE, 20 s per million rows
-- locks: clients, SHARE ROW EXCLUSIVE, a moment
-- contracts: programs of before 00023 do not know the outbox, and fail where they send mail
-- Simulated mails and the outbox.

-- What people did stands apart from what mail scanners did; a mail that will
-- never be sent has a status of its own. The old rows follow: a scanner's click
-- moves no status and no time.
ALTER TABLE phishing_results DROP CONSTRAINT phishing_results_status_check;
ALTER TABLE phishing_results DROP CONSTRAINT phishing_results_outcome_check;

UPDATE phishing_results SET status = 'failed', updated_at = greatest(updated_at, now()) WHERE failed_at IS NOT NULL;
UPDATE phishing_results SET opened_at = NULL, clicked_at = NULL, updated_at = greatest(updated_at, now())
    WHERE automated AND (opened_at IS NOT NULL OR clicked_at IS NOT NULL);
UPDATE phishing_results AS r SET status = n.status, updated_at = greatest(updated_at, now())
FROM (
    SELECT client_id, id, CASE
        WHEN credentials_submitted_at IS NOT NULL THEN 'credentials_submitted'
        WHEN clicked_at IS NOT NULL THEN 'clicked'
        WHEN attachment_opened_at IS NOT NULL THEN 'attachment_opened'
        WHEN opened_at IS NOT NULL THEN 'opened'
        ELSE 'sent' END AS status
    FROM phishing_results WHERE sent_at IS NOT NULL
) AS n
WHERE r.client_id = n.client_id AND r.id = n.id AND r.status <> n.status;
UPDATE phishing_results SET automated_reason = CASE automated_reason
    WHEN 'head_request' THEN 'head' WHEN 'scanner_network' THEN 'network' ELSE 'fast' END
WHERE automated;

ALTER TABLE phishing_results
    ADD CONSTRAINT phishing_results_status_check CHECK (status IN
        ('scheduled', 'sent', 'opened', 'attachment_opened', 'clicked', 'credentials_submitted', 'failed')),
    ADD CONSTRAINT phishing_results_outcome_check CHECK ((failed_at IS NULL) = (failure IS NULL)
        AND (failed_at IS NOT NULL) = (status = 'failed') AND (failed_at IS NULL OR sent_at IS NULL));

-- The mails that were fallen for, for the users who did so repeatedly.
DROP INDEX phishing_results_falls;
CREATE INDEX phishing_results_falls ON phishing_results (client_id, sent_at, user_id)
    WHERE clicked_at IS NOT NULL OR credentials_submitted_at IS NOT NULL OR attachment_opened_at IS NOT NULL;

-- A mail that was clicked counts as opened, too.
UPDATE phishing_days AS d SET opened = n.opened, clicked = n.clicked
FROM (
    SELECT client_id, (sent_at AT TIME ZONE 'UTC')::date AS day, count(*) FILTER (WHERE status <> 'sent') AS opened,
        count(*) FILTER (WHERE status IN ('attachment_opened', 'clicked', 'credentials_submitted')) AS clicked
    FROM phishing_results WHERE sent_at IS NOT NULL GROUP BY 1, 2
) AS n
WHERE d.client_id = n.client_id AND d.day = n.day AND (d.opened, d.clicked) IS DISTINCT FROM (n.opened, n.clicked);

-- The mails that wait to be sent: mail_requests and phishing_results that are
-- neither sent nor failed. A row belongs to whoever wrote its lease, until due_at;
-- without one, or after that, it is anybody's.
CREATE TABLE outbox (
    client_id uuid        NOT NULL REFERENCES clients,
    -- That of the mail_requests or the phishing_results row.
    id        uuid        NOT NULL,
    kind      text        NOT NULL CHECK (kind IN ('mail', 'simulation')),
    -- 1 for mail that somebody waits for, 2 for the rest.
    urgency   smallint    NOT NULL CHECK (urgency IN (1, 2)),
    -- When it is tried next; of a leased row, when the lease ends.
    due_at    timestamptz NOT NULL,
    -- How many tries failed.
    attempts  integer     NOT NULL DEFAULT 0,
    lease     uuid,
    -- How a mail scanner was told that followed a link while the mail was handed
    -- over.
    scanned   text,
    PRIMARY KEY (client_id, id)
) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.02);
CREATE INDEX outbox_by_due ON outbox (due_at);
CREATE INDEX outbox_by_turn ON outbox (client_id, urgency, due_at);

INSERT INTO outbox (client_id, id, kind, urgency, due_at)
SELECT client_id, id, 'mail', CASE WHEN type IN ('welcome', 'admin-invite') THEN 1 ELSE 2 END, created_at
FROM mail_requests WHERE sent_at IS NULL AND failed_at IS NULL
UNION ALL
SELECT client_id, id, 'simulation', 2, send_at FROM phishing_results WHERE status = 'scheduled';

-- The queue that was before the outbox.
DROP TABLE IF EXISTS river_job, river_leader, river_queue, river_client_queue, river_client, river_migration, river_notification CASCADE;
DROP FUNCTION IF EXISTS river_job_state_in_bitmask, river_job_notify CASCADE;
DROP TYPE IF EXISTS river_job_state;
