-- +goose NO TRANSACTION
-- +goose Up
-- locks: published_events, SHARE UPDATE EXCLUSIVE, 3 s per million rows
SET lock_timeout = 0;

DROP INDEX CONCURRENTLY IF EXISTS published_events_by_time;
CREATE INDEX CONCURRENTLY published_events_by_time ON published_events (partner_id, created_at) INCLUDE (position);
COMMENT ON INDEX published_events_by_time IS 'Where the feed begins that is read since a time.';
