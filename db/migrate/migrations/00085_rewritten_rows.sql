-- +goose Up
-- locks: user_risks, SHARE UPDATE EXCLUSIVE, a moment
-- locks: users, SHARE UPDATE EXCLUSIVE, a moment
-- The daily refresh writes every user's risk anew. On pages that are half full the new
-- row fits beside the old one, and the index keeps its entry; full pages become so by
-- themselves within some days.
ALTER TABLE user_risks SET (fillfactor = 50);
-- What is counted and skipped on an index alone looks at the rows of pages that were
-- written since the last vacuum: 20,000 of a million users, and not 200,000.
ALTER TABLE users SET (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_insert_scale_factor = 0.02);
