-- +goose NO TRANSACTION
-- +goose Up
-- locks: assignments, SHARE UPDATE EXCLUSIVE, 12 s per million rows
-- The training of all users of a client. The first index has all that a page shows of its
-- rows, so that those that a filter passes over are not read; the others find few rows of
-- many by course, by state and by change.
SET lock_timeout = 0;
DROP INDEX CONCURRENTLY IF EXISTS assignments_by_assigned;
CREATE INDEX CONCURRENTLY assignments_by_assigned ON assignments (client_id, assigned_at, user_id, course_id)
    INCLUDE (position, due_on, completed_at, given_at, updated_at) WHERE NOT superseded;
DROP INDEX CONCURRENTLY IF EXISTS assignments_by_course;
CREATE INDEX CONCURRENTLY assignments_by_course ON assignments (client_id, course_id, assigned_at, user_id)
    WHERE NOT superseded;
DROP INDEX CONCURRENTLY IF EXISTS assignments_by_state;
CREATE INDEX CONCURRENTLY assignments_by_state ON assignments (client_id, completed_at, due_on) WHERE NOT superseded;
DROP INDEX CONCURRENTLY IF EXISTS assignments_by_change;
CREATE INDEX CONCURRENTLY assignments_by_change
    ON assignments (client_id, greatest(assigned_at, given_at, completed_at, updated_at)) WHERE NOT superseded;
