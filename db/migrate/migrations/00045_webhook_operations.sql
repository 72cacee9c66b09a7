-- +goose Up
-- locks: webhooks, SHARE, 1 s per million rows
-- locks: webhook_deliveries, ACCESS EXCLUSIVE, 1 s per million rows
-- locks: idempotency_records, ACCESS EXCLUSIVE, 1 s per million rows
-- What the operations on subscriptions need.

-- The lists, in their order.
CREATE INDEX webhooks_by_created ON webhooks (partner_id, created_at, id);
CREATE INDEX webhook_deliveries_by_created ON webhook_deliveries (webhook_id, created_at, id);

-- A subscription may have a million deliveries. Deleting it deletes its row alone;
-- the deliveries are deleted in the background, a batch in each transaction. A row
-- here says whose: it leaves when no delivery is left and no transaction can be
-- under way any more that makes one.
ALTER TABLE webhook_deliveries DROP CONSTRAINT webhook_deliveries_webhook_id_fkey;
CREATE TABLE deleted_webhooks (
    id         uuid PRIMARY KEY,
    deleted_at timestamptz NOT NULL DEFAULT clock_timestamp()
);

-- An outcome that holds a secret is sealed, in the place of its body; seal_id is
-- what it is sealed for. A status of 0 is no outcome: the request is under way, and
-- works outside of a transaction.
ALTER TABLE idempotency_records ADD COLUMN seal_id uuid, ADD COLUMN sealed_body bytea;
CREATE INDEX idempotency_records_sealed ON idempotency_records (seal_id) WHERE sealed_body IS NOT NULL;
