-- +goose Up
-- locks: events, ACCESS EXCLUSIVE, 10 s per million rows
-- locks: partners, SHARE ROW EXCLUSIVE, a moment
-- locks: clients, SHARE ROW EXCLUSIVE, a moment
-- locks: api_keys, SHARE ROW EXCLUSIVE, a moment
-- Events that callers read, the subscriptions that they are delivered to, and the
-- deliveries.

-- events is an outbox: rows are written in the transaction of their change, and
-- leave it when they are published.
--
-- When a row was written, by the server's clock. A subscription gets what was
-- written after it became active, by the same clock.
ALTER TABLE events ADD COLUMN recorded_at timestamptz NOT NULL DEFAULT clock_timestamp();

-- The position of the last published event. Who publishes locks the row until the
-- transaction ends: positions become visible in their order, and without a gap that
-- could still be filled.
CREATE TABLE event_head (
    single   boolean PRIMARY KEY DEFAULT true CHECK (single),
    position bigint NOT NULL
);
INSERT INTO event_head (position) VALUES (0);

-- Events as callers get them.
CREATE TABLE published_events (
    partner_id uuid NOT NULL REFERENCES partners,
    position   bigint NOT NULL,
    client_id  uuid NOT NULL REFERENCES clients,
    id         uuid NOT NULL,
    type       text NOT NULL,
    created_at timestamptz NOT NULL,
    -- The whole event in JSON: the same bytes for every reader and every try.
    body       text NOT NULL,
    PRIMARY KEY (partner_id, position)
);
CREATE INDEX published_events_by_type ON published_events (partner_id, type, position);
CREATE INDEX published_events_by_client ON published_events (client_id, position);
CREATE INDEX published_events_by_age ON published_events (created_at);

CREATE TABLE webhooks (
    partner_id  uuid NOT NULL REFERENCES partners,
    id          uuid NOT NULL,
    -- Whose access the subscription has.
    key_id      uuid NOT NULL REFERENCES api_keys,
    url         text NOT NULL,
    events      text[] NOT NULL,
    -- Narrows the access; empty means all that the key reaches.
    client_ids  uuid[] NOT NULL DEFAULT '{}',
    description text,
    status      text NOT NULL CHECK (status IN ('active', 'paused', 'disabled')),
    created_at  timestamptz NOT NULL,
    updated_at  timestamptz NOT NULL,
    -- Since when it is active, by the server's clock; see events.recorded_at.
    active_since timestamptz NOT NULL DEFAULT clock_timestamp(),
    -- Sealed. The one before signs too until its time is over.
    secret            bytea NOT NULL,
    replaced_secret   bytea,
    replaced_until    timestamptz,
    -- The last delivery that succeeded, and since when none did while some failed.
    last_delivery_at timestamptz,
    failing_since    timestamptz,
    PRIMARY KEY (partner_id, id),
    CONSTRAINT webhooks_id_unique UNIQUE (id)
);

CREATE TABLE webhook_deliveries (
    webhook_id uuid NOT NULL REFERENCES webhooks (id) ON DELETE CASCADE,
    id         uuid NOT NULL,
    -- The event: its row of published_events, its id and its type.
    partner_id uuid NOT NULL,
    position   bigint NOT NULL,
    client_id  uuid NOT NULL,
    event_id   uuid NOT NULL,
    type       text NOT NULL,
    status     text NOT NULL DEFAULT 'waiting' CHECK (status IN ('waiting', 'succeeded', 'failed', 'dropped')),
    -- Why it was dropped.
    reason     text,
    created_at timestamptz NOT NULL,
    -- Of a waiting one: when the next try is due or, where it is leased, when the
    -- lease ends.
    due_at     timestamptz NOT NULL,
    lease      uuid,
    first_try_at timestamptz,
    -- [{"at": …, "status_code": …, "duration_ms": …, "response": …}]
    tries      jsonb NOT NULL DEFAULT '[]',
    PRIMARY KEY (webhook_id, id)
);
CREATE INDEX webhook_deliveries_due ON webhook_deliveries (webhook_id, due_at) WHERE status = 'waiting';
CREATE INDEX webhook_deliveries_by_age ON webhook_deliveries (created_at);
