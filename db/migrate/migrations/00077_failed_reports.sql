-- +goose NO TRANSACTION
-- +goose Up
-- locks: reports, SHARE UPDATE EXCLUSIVE, 1 s per million rows
-- The reports that failed within the last week, which metrics count.
SET lock_timeout = 0;
DROP INDEX CONCURRENTLY IF EXISTS reports_failed;
CREATE INDEX CONCURRENTLY reports_failed ON reports (updated_at) WHERE status = 'failed';
