-- +goose Up
-- An assignment that was never evaluated says so by a time that can be read.
ALTER TABLE framework_assignments ALTER COLUMN evaluated_at SET DEFAULT 'epoch';
UPDATE framework_assignments SET evaluated_at = 'epoch' WHERE evaluated_at = '-infinity';
