-- +goose Up
-- locks: sync_runs, ACCESS EXCLUSIVE, a moment
-- How many processes died in a row that worked on a run, without any progress between
-- them.
ALTER TABLE sync_runs ADD COLUMN deaths integer NOT NULL DEFAULT 0;
