-- +goose Up
-- locks: audit_entries, ACCESS EXCLUSIVE, a moment
--
-- The audit log of v2 shows entries by an ID that, unlike the primary key, is the same after a move to another cell, and
-- finds a partner's entries by an index. The column is added without its default, so that no table is rewritten; the
-- default is for entries that 1.0 inserts. 00023 fills the column in older entries, in batches, before 00024 builds the
-- indexes, so that these updates do not have to maintain them.
ALTER TABLE audit_entries ADD COLUMN entry_id uuid;
ALTER TABLE audit_entries ALTER COLUMN entry_id SET DEFAULT uuid_v7(clock_timestamp());
COMMENT ON COLUMN audit_entries.entry_id IS 'ID of the entry in v2. It breaks ties between entries with the same at.';
COMMENT ON COLUMN audit_entries.partner_id IS
    'The key''s partner. For a command, the partner that it is about, or the partner of the client that it is about. Zero if there is none.';

-- Entries of some requests name a user without the client, and entries of some commands name a client without its
-- partner. The trigger adds what is missing, whichever release inserts the entry.
-- +goose StatementBegin
CREATE FUNCTION audit_partner() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NEW.client_id IS NULL THEN
        NEW.client_id := (SELECT u.client_id FROM users AS u WHERE u.id = NEW.user_id);
    END IF;
    NEW.partner_id := coalesce((SELECT c.partner_id FROM clients AS c WHERE c.id = NEW.client_id), NEW.partner_id);
    RETURN NEW;
END
$$;
-- +goose StatementEnd
CREATE TRIGGER audit_entries_partner BEFORE INSERT ON audit_entries FOR EACH ROW
    WHEN (NEW.client_id IS NULL AND NEW.user_id IS NOT NULL
        OR NEW.client_id IS NOT NULL AND NEW.partner_id = '00000000-0000-0000-0000-000000000000')
    EXECUTE FUNCTION audit_partner();
