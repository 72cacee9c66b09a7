-- +goose Up
-- locks: users, ACCESS EXCLUSIVE, a moment
-- locks: admins, ACCESS EXCLUSIVE, a moment
-- locks: admin_invites, ACCESS EXCLUSIVE, a moment
--
-- Email addresses are compared by a key that only the program can compute (domain.EmailKey). It is stored beside the
-- address, but only if the address is not plain ASCII: an ASCII address is its own key. So nearly all rows of 1.0, and
-- those that 1.0 inserts while it runs alongside this version, are right as they are, and no upgrade rewrites the table.
--
-- email_state says whether a key is unique. Only rows with the state NULL are in the unique index (00004):
--   NULL         the row claims its key. Rows from before this migration, which adds the column without a default, and
--                those that this version writes.
--   'unsettled'  the default, and so the state of rows that 1.0 inserts. A background process of this version computes
--                the key within seconds, and claims it if it is free.
--   'shared'     another row of the client has claimed the key: both addresses were stored before keys were compared.
--                The rows stay, and doctor lists them.
-- So neither the migrations nor 1.0 ever fail at a key that two rows have, and new conflicts are still found: writes of
-- this version look for any row with the key, whatever its state, and the index decides between concurrent ones.
--
-- 1.0 changes addresses without changing their keys. The triggers reset key and state for it. This version changes an
-- address in two steps, because addresses may pass from one row to another, and the first one stores '=' and the row's
-- ID. The triggers recognize its changes by that. A later version, beside which 1.0 no longer runs, drops the triggers.
ALTER TABLE users ADD COLUMN email_key text COLLATE "C";
ALTER TABLE users ADD COLUMN email_state text;
ALTER TABLE users ALTER COLUMN email_state SET DEFAULT 'unsettled';
COMMENT ON COLUMN users.email_key IS
    'The key by which the address is compared. Null for an address in plain ASCII, which is its own key.';
COMMENT ON COLUMN users.email_state IS
    'Null if the user claims the key, which one user of a client can do; shared if another one had claimed it; unsettled until the key of a row of version 1.0 is computed.';

ALTER TABLE admins ADD COLUMN email_key text COLLATE "C";
ALTER TABLE admins ADD COLUMN email_state text;
ALTER TABLE admins ALTER COLUMN email_state SET DEFAULT 'unsettled';
COMMENT ON COLUMN admins.email_key IS 'As of users.';
COMMENT ON COLUMN admins.email_state IS 'As of users.';

-- An invite never changes, and it needs no unique index: its client is locked.
ALTER TABLE admin_invites ADD COLUMN email_key text COLLATE "C";
COMMENT ON COLUMN admin_invites.email_key IS 'As of users.';

-- +goose StatementBegin
CREATE FUNCTION unsettle_email() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    NEW.email_key := NULL;
    NEW.email_state := 'unsettled';
    RETURN NEW;
END
$$;
-- +goose StatementEnd
CREATE TRIGGER users_unsettle_email BEFORE UPDATE OF email ON users FOR EACH ROW
    WHEN (NEW.email <> OLD.email AND NEW.email <> '=' || NEW.id AND OLD.email <> '=' || OLD.id)
    EXECUTE FUNCTION unsettle_email();
CREATE TRIGGER admins_unsettle_email BEFORE UPDATE OF email ON admins FOR EACH ROW
    WHEN (NEW.email <> OLD.email AND NEW.email <> '=' || NEW.id AND OLD.email <> '=' || OLD.id)
    EXECUTE FUNCTION unsettle_email();
