-- +goose Up
-- locks: audit_entries, ACCESS EXCLUSIVE, a moment
-- What an entry of the audit trail is about, which fields it gave, and who ran the
-- command that it is of. Null in older entries, and in those of the release before.
-- Locks audit_entries, which nothing reads but the command audit, for a moment.
ALTER TABLE audit_entries
    ADD COLUMN os_user     text,
    ADD COLUMN sudo_user   text,
    ADD COLUMN object_kind text,
    ADD COLUMN object_id   text,
    ADD COLUMN fields      text[];
