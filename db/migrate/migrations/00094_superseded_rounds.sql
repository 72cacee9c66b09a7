-- +goose Up
-- locks: assignments, ACCESS EXCLUSIVE, a moment
-- Whether a later round of the course follows: a user's training shows the last one only.
ALTER TABLE assignments ADD COLUMN superseded boolean NOT NULL DEFAULT false;
-- Those of rounds that are there already, and of those that a process of the release before adds.
INSERT INTO recounts SELECT 'superseded rounds', now() + interval '1 day' WHERE EXISTS (SELECT FROM partners)
ON CONFLICT DO NOTHING;
