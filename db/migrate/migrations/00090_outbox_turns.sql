-- +goose NO TRANSACTION
-- +goose Up
-- locks: outbox, SHARE UPDATE EXCLUSIVE, 2 s per million rows
-- Claims go from client to client in turns, urgent mails first. A later release drops
-- outbox_by_turn, which the release before claims by.
SET lock_timeout = 0;
DROP INDEX CONCURRENTLY IF EXISTS outbox_by_urgency;
CREATE INDEX CONCURRENTLY outbox_by_urgency ON outbox (urgency, client_id, due_at);
