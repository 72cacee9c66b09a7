-- +goose NO TRANSACTION
-- +goose Up
-- locks: users, SHARE UPDATE EXCLUSIVE, 2 s per million rows
-- The users who have something overdue, and those who have not, where they are few of a
-- client's. A user with nothing left to do is due at no time. The column itself stands in
-- the index too, for without it they could not be counted on the index alone.
SET lock_timeout = 0;
DROP INDEX CONCURRENTLY IF EXISTS users_by_due;
CREATE INDEX CONCURRENTLY users_by_due ON users (client_id, coalesce(next_due_on, 'infinity')) INCLUDE (next_due_on);
