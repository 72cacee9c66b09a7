-- +goose Up
-- locks: outbox, ACCESS EXCLUSIVE, a moment
-- Whether a mail may have gone out although it is not marked as sent: such a mail cannot be
-- cancelled any more.
ALTER TABLE outbox ADD COLUMN maybe_sent boolean NOT NULL DEFAULT false;
