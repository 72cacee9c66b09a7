-- +goose NO TRANSACTION
-- +goose Up
-- locks: mail_requests, SHARE UPDATE EXCLUSIVE, 1 s per million rows
SET lock_timeout = 0;

DROP INDEX CONCURRENTLY IF EXISTS mail_requests_by_invite;
CREATE INDEX CONCURRENTLY mail_requests_by_invite ON mail_requests (client_id, invite_id) WHERE invite_id IS NOT NULL;
COMMENT ON INDEX mail_requests_by_invite IS 'Whether an old invite has a mail, and so stays.';
