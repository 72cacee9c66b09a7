-- +goose Up
-- locks: events, ACCESS EXCLUSIVE, 10 s per million rows
-- locks: published_events, SHARE, 1 s per million rows
-- locks: assignments, ACCESS EXCLUSIVE, 30 s per million rows
-- contracts: the events that programs of before 00044 wrote, which nothing reads
-- Events are published in the order in which they were written.

-- Until this release nobody read events, and their objects have moved on since: none
-- of before is published.
DELETE FROM events;
DROP INDEX events_by_age;
-- One index, whose new entries all go to its end, is what an event adds to a write.
-- The publisher drops an event without a client.
ALTER TABLE events
    DROP CONSTRAINT events_pkey,
    DROP CONSTRAINT events_client_id_fkey,
    ADD PRIMARY KEY (recorded_at, id),
    -- Until when an event waits that could not be published; NULL for the usual.
    ADD COLUMN postponed_until timestamptz;

-- For reads of some types of some clients.
CREATE INDEX published_events_by_client_type ON published_events (client_id, type, position);

-- Whether it was told that the assignment is overdue. What is overdue by now is as
-- told.
ALTER TABLE assignments ADD COLUMN overdue_noted boolean NOT NULL DEFAULT false;
UPDATE assignments SET overdue_noted = true
    WHERE completed_at IS NULL AND due_on < (now() AT TIME ZONE 'UTC')::date;
CREATE INDEX assignments_to_note ON assignments (due_on) WHERE completed_at IS NULL AND NOT overdue_noted;
