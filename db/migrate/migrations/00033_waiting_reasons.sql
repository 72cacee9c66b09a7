-- +goose Up
-- locks: waiting_assignments, ACCESS EXCLUSIVE, a moment
-- Who waits for a course remembers why it is to be given, as an assignment does.
-- A batch takes those of one client, whatever they wait for.
ALTER TABLE waiting_assignments
    ADD COLUMN direct     boolean NOT NULL DEFAULT true,
    ADD COLUMN frameworks uuid[] NOT NULL DEFAULT '{}';
DROP INDEX waiting_assignments_by_course;
