-- +goose Up
-- locks: framework_assignments, ACCESS EXCLUSIVE, 10 s per million rows
-- An assignment that was never evaluated says so by a time that can be read.
ALTER TABLE framework_assignments ALTER COLUMN evaluated_at SET DEFAULT 'epoch';
UPDATE framework_assignments SET evaluated_at = 'epoch' WHERE evaluated_at = '-infinity';
