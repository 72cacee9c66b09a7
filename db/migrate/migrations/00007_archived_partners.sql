-- +goose Up
-- locks: partners, ACCESS EXCLUSIVE, a moment
-- An archived partner keeps its rows. Its clients are archived and its keys revoked, so that the release before, which
-- does not read this column, does not serve it either.
ALTER TABLE partners ADD COLUMN archived_at timestamptz;
COMMENT ON COLUMN partners.archived_at IS
    'When the partner was archived, with those of its clients that have the same time. Null for a partner that is not.';
