-- +goose Up
-- locks: clients, SHARE ROW EXCLUSIVE, a moment
-- locks: mail_requests, ACCESS EXCLUSIVE, 6 s per million rows
-- Mail that the service sends of itself: certificates, reminders of simulations
-- that were fallen for, notices of exposures and monthly reports.

-- What is not as it is by default: which kinds of such mail a client wants.
CREATE TABLE mail_switches (
    client_id  uuid NOT NULL REFERENCES clients,
    kind       text NOT NULL CHECK (kind IN ('certificate', 'phish-reminder', 'exposure-notice', 'monthly-report')),
    enabled    boolean NOT NULL,
    changed_at timestamptz NOT NULL,
    PRIMARY KEY (client_id, kind)
);

ALTER TABLE mail_requests
    -- The round of the course that a certificate is for.
    ADD COLUMN round         smallint,
    ADD COLUMN result_id     uuid,
    ADD COLUMN breach_name   text COLLATE "C",
    ADD COLUMN admin_id      uuid,
    ADD COLUMN report_id     uuid,
    -- When it is to be sent first; null for at once.
    ADD COLUMN due_at        timestamptz,
    -- When it was due while its client had switched its kind off.
    ADD COLUMN suppressed_at timestamptz,
    DROP CONSTRAINT mail_requests_type_check,
    DROP CONSTRAINT mail_requests_check,
    DROP CONSTRAINT mail_requests_outcome_check,
    ADD CONSTRAINT mail_requests_type_check CHECK (type IN ('welcome', 'admin-invite', 'training-invite',
        'policy-reminder', 'certificate', 'phish-reminder', 'exposure-notice', 'monthly-report')),
    ADD CONSTRAINT mail_requests_check CHECK (
        (type = 'admin-invite') = (invite_id IS NOT NULL)
        AND (type IN ('admin-invite', 'monthly-report')) = (user_id IS NULL)
        AND (type IN ('training-invite', 'certificate')) = (course_id IS NOT NULL)
        AND (type = 'certificate') = (round IS NOT NULL)
        AND (type = 'phish-reminder') = (result_id IS NOT NULL)
        AND (type = 'exposure-notice') = (breach_name IS NOT NULL)
        AND (type = 'monthly-report') = (admin_id IS NOT NULL AND report_id IS NOT NULL)),
    ADD CONSTRAINT mail_requests_outcome_check CHECK (
        (failed_at IS NULL) = (failure IS NULL) AND num_nonnulls(sent_at, failed_at, suppressed_at) <= 1);

-- Each is sent once.
CREATE UNIQUE INDEX mail_requests_certificate_unique ON mail_requests (client_id, user_id, course_id, round)
    WHERE type = 'certificate';
CREATE UNIQUE INDEX mail_requests_reminder_unique ON mail_requests (client_id, result_id) WHERE type = 'phish-reminder';
CREATE UNIQUE INDEX mail_requests_notice_unique ON mail_requests (client_id, user_id, breach_name)
    WHERE type = 'exposure-notice';
CREATE UNIQUE INDEX mail_requests_report_unique ON mail_requests (client_id, report_id, admin_id)
    WHERE type = 'monthly-report';

DROP INDEX mail_requests_waiting;
CREATE INDEX mail_requests_waiting ON mail_requests (coalesce(due_at, created_at))
    WHERE sent_at IS NULL AND failed_at IS NULL AND suppressed_at IS NULL;
