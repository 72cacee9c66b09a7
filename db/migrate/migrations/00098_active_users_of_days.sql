-- +goose Up
-- locks: risk_history, ACCESS EXCLUSIVE, a moment
-- How many active users a client had on a day; null for days before it was counted.
ALTER TABLE risk_history ADD COLUMN active_users integer;
