-- +goose NO TRANSACTION
-- +goose Up
-- locks: outbox, SHARE UPDATE EXCLUSIVE, 2 s per million rows
-- The kinds of mails are those of 00099.
SET lock_timeout = 0;
ALTER TABLE outbox VALIDATE CONSTRAINT outbox_kind_check;
