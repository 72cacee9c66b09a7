-- +goose Up
-- locks: reports, ACCESS EXCLUSIVE, 1 s per million rows
-- The reports that the service makes of itself for a month, and mails to the
-- client's admins. Null for those that a caller asked for.
ALTER TABLE reports ADD COLUMN mailed_for date;
CREATE UNIQUE INDEX reports_mailed_unique ON reports (client_id, mailed_for) WHERE mailed_for IS NOT NULL;

-- The months (their first days) on whose first day the reports of the month before
-- were queued.
CREATE TABLE monthly_mailings (
    month     date PRIMARY KEY,
    queued_at timestamptz NOT NULL
);
