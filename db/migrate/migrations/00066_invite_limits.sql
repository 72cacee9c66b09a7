-- +goose NO TRANSACTION
-- +goose Up
-- locks: admin_invites, ACCESS EXCLUSIVE, a moment
-- locks: admin_invites, SHARE UPDATE EXCLUSIVE, 1 s per million rows
-- The invites of a partner and of a client within a sliding time, which are limited.
-- partner_id is null for invites of the release before: they count for their client
-- only.
ALTER TABLE admin_invites ADD COLUMN IF NOT EXISTS partner_id uuid;

-- The builds wait for transactions of others, and keep nobody waiting.
SET lock_timeout = 0;
DROP INDEX CONCURRENTLY IF EXISTS admin_invites_by_partner;
CREATE INDEX CONCURRENTLY admin_invites_by_partner ON admin_invites (partner_id, created_at) WHERE partner_id IS NOT NULL;

DROP INDEX CONCURRENTLY IF EXISTS admin_invites_by_client;
CREATE INDEX CONCURRENTLY admin_invites_by_client ON admin_invites (client_id, created_at);
