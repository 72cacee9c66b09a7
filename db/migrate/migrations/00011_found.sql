-- +goose Up
-- locks: exposures, ACCESS EXCLUSIVE, 20 s per million rows
-- Whether an exposure was told of as found. One that is known by its resolving
-- alone is described by the catalogue, and announced once its finding comes.
ALTER TABLE exposures ADD COLUMN found boolean NOT NULL DEFAULT true;
UPDATE exposures SET found = false WHERE resolved_at = first_seen_at;
