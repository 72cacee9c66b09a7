-- locks: sync_runs, ACCESS EXCLUSIVE, a moment

-- +goose Up

ALTER TABLE sync_runs ADD COLUMN without_email integer NOT NULL DEFAULT 0;
COMMENT ON COLUMN sync_runs.without_email IS 'How many accounts had no email address at its end, without guests.';
COMMENT ON COLUMN sync_runs.position IS
    'Where reading continues, and which release can read there; once it is complete, where the next run begins.';
