-- +goose NO TRANSACTION
-- +goose Up
-- locks: users, ACCESS EXCLUSIVE, a moment
-- locks: users, SHARE UPDATE EXCLUSIVE, 20 s per million rows
--
-- The list sorts users by last name and filters them by department and manager with keys that only the program can
-- compute (domain.SortKey, domain.EmailKey). Most texts are plain: printable ASCII without spaces at the ends, two spaces
-- in a row, or xn--. The key of a plain text is the text in lower case, which the database computes. The keys of other
-- texts are in sort_keys, each with the text that it belongs to: if 1.0 changes the text, the row has no key for it, and
-- users_unkeyed lists it. Until a background process of this version has computed the key, which takes seconds after a
-- change by 1.0 and about a minute per million users after this migration, the text in lower case is used instead.
--
-- users_by_group_status replaces users_by_group, for version 1.0 too. Audiences use it by its first three
-- columns.
ALTER TABLE users ADD COLUMN IF NOT EXISTS sort_keys jsonb;
COMMENT ON COLUMN users.sort_keys IS
    'Keys of the last_name, department and manager_email values that are not plain (printable ASCII without odd spaces or Punycode): for each column, an object that maps the value to its key. Null for most users.';

SET lock_timeout = 0;

DROP INDEX CONCURRENTLY IF EXISTS users_unkeyed;
CREATE INDEX CONCURRENTLY users_unkeyed ON users (id) WHERE
    last_name COLLATE "C" ~ '[^ -~]|^ | $|  |xn--' AND sort_keys->'last_name'->>last_name IS NULL
    OR department COLLATE "C" ~ '[^ -~]|^ | $|  |xn--' AND sort_keys->'department'->>department IS NULL
    OR manager_email COLLATE "C" ~ '[^ -~]|^ | $|  |xn--' AND sort_keys->'manager_email'->>manager_email IS NULL;
COMMENT ON INDEX users_unkeyed IS 'Users with a text whose key must still be computed.';

DROP INDEX CONCURRENTLY IF EXISTS users_by_last_name;
CREATE INDEX CONCURRENTLY users_by_last_name
    ON users (client_id, coalesce(sort_keys->'last_name'->>last_name, lower(last_name COLLATE "C")), id);
COMMENT ON INDEX users_by_last_name IS 'The list by last name.';

DROP INDEX CONCURRENTLY IF EXISTS users_by_department;
CREATE INDEX CONCURRENTLY users_by_department ON users (client_id,
    coalesce('=' || nullif(coalesce(sort_keys->'department'->>department, lower(department COLLATE "C")), ''), '>'));
COMMENT ON INDEX users_by_department IS
    'Departments, and the list''s filters department and no_department. The key follows an equals sign; users without a department come last, with a greater-than sign.';

DROP INDEX CONCURRENTLY IF EXISTS users_by_manager;
CREATE INDEX CONCURRENTLY users_by_manager
    ON users (client_id, coalesce(sort_keys->'manager_email'->>manager_email, lower(manager_email COLLATE "C")))
    WHERE manager_email IS NOT NULL;
COMMENT ON INDEX users_by_manager IS 'The list''s filter manager_email.';

DROP INDEX CONCURRENTLY IF EXISTS users_by_group_status;
CREATE INDEX CONCURRENTLY users_by_group_status ON users (client_id, group_id, status, created_at, id);
COMMENT ON INDEX users_by_group_status IS
    'The audience of a policy or framework that is assigned to a group, and the list''s filter group_id.';
DROP INDEX CONCURRENTLY IF EXISTS users_by_group;
