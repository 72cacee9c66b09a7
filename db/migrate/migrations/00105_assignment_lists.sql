-- +goose NO TRANSACTION
-- +goose Up
-- locks: assignments, SHARE UPDATE EXCLUSIVE, 12 s per million rows
-- Few of a client's many assignments are found on one index, with all that a page shows:
-- by completion, by the day that open ones are due on, and by change.
SET lock_timeout = 0;
DROP INDEX CONCURRENTLY IF EXISTS assignments_by_completion;
CREATE INDEX CONCURRENTLY assignments_by_completion ON assignments (client_id, completed_at)
    INCLUDE (user_id, course_id, position, assigned_at, due_on, given_at, updated_at)
    WHERE NOT superseded AND completed_at IS NOT NULL;
DROP INDEX CONCURRENTLY IF EXISTS assignments_by_due;
CREATE INDEX CONCURRENTLY assignments_by_due ON assignments (client_id, due_on, assigned_at)
    INCLUDE (user_id, course_id, position, given_at, updated_at)
    WHERE NOT superseded AND completed_at IS NULL;
DROP INDEX CONCURRENTLY IF EXISTS assignments_by_change;
CREATE INDEX CONCURRENTLY assignments_by_change
    ON assignments (client_id, greatest(assigned_at, given_at, completed_at, updated_at))
    INCLUDE (user_id, course_id, position, assigned_at, due_on, completed_at, given_at, updated_at)
    WHERE NOT superseded;
DROP INDEX CONCURRENTLY IF EXISTS assignments_by_state;
