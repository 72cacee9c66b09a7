-- +goose Up
-- locks: assignments, ACCESS EXCLUSIVE, a moment
-- Whether a later round of the course follows: a user's training shows the last one only.
ALTER TABLE assignments ADD COLUMN superseded boolean NOT NULL DEFAULT false;
-- A process of the release before does not mark the rounds before those that it adds.
INSERT INTO recounts SELECT 'superseded rounds', now() + interval '1 day' WHERE EXISTS (SELECT FROM partners)
ON CONFLICT DO NOTHING;
