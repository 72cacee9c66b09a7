-- +goose Up
-- locks: webhooks, ACCESS EXCLUSIVE, a moment
-- The value of the Authorization header in a webhook's deliveries. 1.0 changes the URL of a webhook without knowing the
-- columns: authorization_url then differs from url, and the value is no longer sent.
ALTER TABLE webhooks ADD COLUMN sealed_authorization bytea;
COMMENT ON COLUMN webhooks.sealed_authorization IS
    'The value of the Authorization header in deliveries, sealed. Null if none is set.';
ALTER TABLE webhooks ADD COLUMN authorization_url text;
COMMENT ON COLUMN webhooks.authorization_url IS
    'The URL that sealed_authorization may be sent to. The value has no effect if this URL differs from url. Null if none is set.';
