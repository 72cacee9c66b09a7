-- +goose Up
-- locks: collections, SHARE, 1 s per million rows
-- locks: groups, SHARE, 1 s per million rows
-- locks: framework_assignments, SHARE, 1 s per million rows
-- locks: courses, ACCESS EXCLUSIVE, a moment
-- What the import of a platform's objects needs.

-- A record names an object by its id alone.
CREATE UNIQUE INDEX collections_id_unique ON collections (id);
CREATE UNIQUE INDEX groups_id_unique ON groups (id);
CREATE UNIQUE INDEX framework_assignments_id_unique ON framework_assignments (id);

-- The title of a course in the languages that it has one of its own in.
ALTER TABLE courses ADD COLUMN titles jsonb NOT NULL DEFAULT '{}';
