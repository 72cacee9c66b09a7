-- +goose NO TRANSACTION
-- +goose Up
-- locks: reports, SHARE UPDATE EXCLUSIVE, 1 s per million rows
-- Pending reports in the order in which they are claimed: those that callers asked for,
-- and the service's own.
SET lock_timeout = 0;
DROP INDEX CONCURRENTLY IF EXISTS reports_asked;
CREATE INDEX CONCURRENTLY reports_asked ON reports (coalesce(due_at, created_at)) WHERE status = 'pending' AND mailed_for IS NULL;
DROP INDEX CONCURRENTLY IF EXISTS reports_own;
CREATE INDEX CONCURRENTLY reports_own ON reports (coalesce(due_at, created_at)) WHERE status = 'pending' AND mailed_for IS NOT NULL;
