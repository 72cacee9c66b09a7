-- +goose NO TRANSACTION
-- +goose Up
-- locks: clients, SHARE UPDATE EXCLUSIVE, 2 s per million rows
-- Clients by the partner's own identifiers, which several may share.
SET lock_timeout = 0;
DROP INDEX CONCURRENTLY IF EXISTS clients_by_external_id;
CREATE INDEX CONCURRENTLY clients_by_external_id ON clients (partner_id, external_id)
    WHERE archived_at IS NULL AND external_id IS NOT NULL;
