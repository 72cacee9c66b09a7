-- +goose Up
-- locks: webhook_deliveries, ACCESS EXCLUSIVE, 5 s per million rows
-- Since when a delivery waits, by the server's clock: one that waited while its
-- subscription was not active is dropped, also where that is active again
-- (webhooks.active_since).
ALTER TABLE webhook_deliveries ADD COLUMN queued_at timestamptz NOT NULL DEFAULT clock_timestamp();

-- The tries under way, of which a subscription has few at a time.
CREATE INDEX webhook_deliveries_leased ON webhook_deliveries (webhook_id, due_at)
    WHERE status = 'waiting' AND lease IS NOT NULL;
