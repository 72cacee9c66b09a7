-- +goose Up
-- locks: sync_runs, ACCESS EXCLUSIVE, a moment
-- How many of the users that a run updated have accounts that are disabled or the
-- like: a run counts unchanged users among the others.
ALTER TABLE sync_runs ADD COLUMN updated_inactive integer NOT NULL DEFAULT 0;
