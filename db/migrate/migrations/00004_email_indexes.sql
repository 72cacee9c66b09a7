-- +goose NO TRANSACTION
-- +goose Up
-- locks: users, SHARE UPDATE EXCLUSIVE, 8 s per million rows
-- locks: admins, SHARE UPDATE EXCLUSIVE, 4 s per million rows
-- locks: admin_invites, SHARE UPDATE EXCLUSIVE, 4 s per million rows
--
-- The indexes of the keys of addresses (00003). They are built before any key is computed: until then every address is
-- its own key, and addresses are unique, so that no build fails at two rows with the same key.
--
-- users_by_creation takes the place of users_by_created, for version 1.0 too: its columns are those and email_key. The
-- unique indexes of addresses stay, because 1.0 finds conflicts by their names. A later version drops them.
SET lock_timeout = 0;

DROP INDEX CONCURRENTLY IF EXISTS users_email_key_unique;
CREATE UNIQUE INDEX CONCURRENTLY users_email_key_unique
    ON users (client_id, coalesce(email_key, email), (CASE WHEN email_state IS NULL THEN true END));
COMMENT ON INDEX users_email_key_unique IS
    'One user of a client claims a key; the list by email. Rows that claim none are in it with NULL, which is equal to none.';

DROP INDEX CONCURRENTLY IF EXISTS users_by_email_key;
CREATE INDEX CONCURRENTLY users_by_email_key ON users (email_key) WHERE email_key IS NOT NULL;
COMMENT ON INDEX users_by_email_key IS 'Users of all clients by the key of their address, if that is not the address itself.';

DROP INDEX CONCURRENTLY IF EXISTS users_email_unsettled;
CREATE INDEX CONCURRENTLY users_email_unsettled ON users (id) INCLUDE (email_state) WHERE email_state IS NOT NULL;
COMMENT ON INDEX users_email_unsettled IS 'The users whose key is to be computed, or is shared.';

DROP INDEX CONCURRENTLY IF EXISTS users_by_creation;
CREATE INDEX CONCURRENTLY users_by_creation
    ON users (client_id, created_at, id) INCLUDE (name_key, email, email_key, status, score);
COMMENT ON INDEX users_by_creation IS
    'The list, oldest first. A search reads what it compares here, and of the table only what it shows.';
DROP INDEX CONCURRENTLY IF EXISTS users_by_created;

DROP INDEX CONCURRENTLY IF EXISTS admins_email_key_unique;
CREATE UNIQUE INDEX CONCURRENTLY admins_email_key_unique
    ON admins (client_id, coalesce(email_key, email), (CASE WHEN email_state IS NULL THEN true END)) WHERE client_id IS NOT NULL;
COMMENT ON INDEX admins_email_key_unique IS 'One admin of a client claims a key; also the check of an invite.';

DROP INDEX CONCURRENTLY IF EXISTS admins_email_unsettled;
CREATE INDEX CONCURRENTLY admins_email_unsettled ON admins (id) INCLUDE (email_state) WHERE email_state IS NOT NULL;
COMMENT ON INDEX admins_email_unsettled IS 'The admins whose key is to be computed, or is shared.';

DROP INDEX CONCURRENTLY IF EXISTS admin_invites_by_email_key;
CREATE INDEX CONCURRENTLY admin_invites_by_email_key ON admin_invites (client_id, coalesce(email_key, email), expires_at);
COMMENT ON INDEX admin_invites_by_email_key IS 'Whether an address has an open invite.';

DROP INDEX CONCURRENTLY IF EXISTS admin_invites_email_unsettled;
CREATE INDEX CONCURRENTLY admin_invites_email_unsettled ON admin_invites (id)
    WHERE email_key IS NULL AND email ~ '[^ -~]|xn--';
COMMENT ON INDEX admin_invites_email_unsettled IS 'The invites whose key is to be computed.';
