-- +goose NO TRANSACTION
-- +goose Up
-- locks: audit_entries, SHARE UPDATE EXCLUSIVE, 8 s per million rows
--
-- The indexes of the audit log. audit_entries_of_client and audit_entries_of_key replace
-- audit_entries_by_client and audit_entries_by_key, for version 1.0 too.
SET lock_timeout = 0;

DROP INDEX CONCURRENTLY IF EXISTS audit_entries_of_partner;
CREATE INDEX CONCURRENTLY audit_entries_of_partner ON audit_entries (partner_id, at, entry_id) INCLUDE (id);
COMMENT ON INDEX audit_entries_of_partner IS 'The audit log of a partner.';

DROP INDEX CONCURRENTLY IF EXISTS audit_entries_of_operation;
CREATE INDEX CONCURRENTLY audit_entries_of_operation ON audit_entries (partner_id, operation, at, entry_id) INCLUDE (id);
COMMENT ON INDEX audit_entries_of_operation IS 'The audit log of a partner, for one operation.';

DROP INDEX CONCURRENTLY IF EXISTS audit_entries_of_client;
CREATE INDEX CONCURRENTLY audit_entries_of_client ON audit_entries (client_id, at, entry_id)
    INCLUDE (id, operation, key_id) WHERE client_id IS NOT NULL;
COMMENT ON INDEX audit_entries_of_client IS 'The audit log and partnerapi audit, for one client. A page finds its entries in the index alone.';
DROP INDEX CONCURRENTLY IF EXISTS audit_entries_by_client;

DROP INDEX CONCURRENTLY IF EXISTS audit_entries_of_key;
CREATE INDEX CONCURRENTLY audit_entries_of_key ON audit_entries (key_prefix, at, entry_id) INCLUDE (id, operation, key_id);
COMMENT ON INDEX audit_entries_of_key IS 'The audit log and partnerapi audit, for one key. A page finds its entries in the index alone.';
DROP INDEX CONCURRENTLY IF EXISTS audit_entries_by_key;
