-- +goose Up
-- locks: policies, ACCESS EXCLUSIVE, a moment
-- When the counts of a policy were counted: after the clock was set back before that time, they are stale.

ALTER TABLE policies ADD COLUMN counted_at timestamptz;
COMMENT ON COLUMN policies.counted_at IS
    'When audience_count and acknowledged_count were counted. Null if 1.0 counted them.';
