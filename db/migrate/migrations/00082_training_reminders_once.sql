-- +goose NO TRANSACTION
-- +goose Up
-- locks: mail_requests, SHARE UPDATE EXCLUSIVE, 2 s per million rows
-- A user is reminded once a day (UTC).
SET lock_timeout = 0;
ALTER TABLE mail_requests VALIDATE CONSTRAINT mail_requests_type_check;
DROP INDEX CONCURRENTLY IF EXISTS mail_requests_training_unique;
CREATE UNIQUE INDEX CONCURRENTLY mail_requests_training_unique
    ON mail_requests (client_id, user_id, date(created_at AT TIME ZONE 'UTC')) WHERE type = 'training-reminder';
