-- +goose NO TRANSACTION
-- +goose Up
-- locks: events, SHARE UPDATE EXCLUSIVE, 4 s per million rows
SET lock_timeout = 0;

DROP INDEX CONCURRENTLY IF EXISTS events_by_number;
CREATE INDEX CONCURRENTLY events_by_number ON events (number NULLS FIRST, recorded_at, id);
COMMENT ON INDEX events_by_number IS 'Publishes events in the order in which they were written.';
