-- +goose Up
-- locks: reports, ACCESS EXCLUSIVE, a moment
-- Pending reports are claimed under leases, as mails of the outbox are, and are jobs of
-- River no longer. due_at is when a report is due for its next try, or its lease ends;
-- NULL, due at once, before the first claim: so are the reports that the release before
-- asks for, whatever became of their jobs. That release finds the reports that have no
-- job every five minutes. Its tables river_… stay; a later release drops them.
ALTER TABLE reports
    ADD COLUMN lease  uuid,
    ADD COLUMN due_at timestamptz,
    ADD COLUMN tries  smallint NOT NULL DEFAULT 0;

-- What one of the processes does again and again. due_at is when it is due, or its
-- lease ends; failed_at when it failed within the last week.
CREATE TABLE periodic_jobs (
    kind      text PRIMARY KEY,
    due_at    timestamptz NOT NULL,
    lease     uuid,
    failed_at timestamptz[] NOT NULL DEFAULT '{}'
);
