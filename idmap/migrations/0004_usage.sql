-- locks: none
-- Which key called which operation of v1, and of v2 what follows one, per UTC
-- day. A key that is revoked or deleted leaves its rows. Rows are updated many
-- times a day, and no index has a column that changes: the space that is left
-- in pages keeps a row's versions in its own.
CREATE TABLE v1_usage (
    key_id      uuid        NOT NULL,
    day         date        NOT NULL,
    surface     text        COLLATE "C" NOT NULL CHECK (surface IN ('v1', 'v2')),
    -- Method and path, as in GET /v1/clients/{client_id}/users.
    operation   text        COLLATE "C" NOT NULL,
    calls       bigint      NOT NULL CHECK (calls > 0),
    failures    bigint      NOT NULL CHECK (failures BETWEEN 0 AND calls),
    first_at    timestamptz NOT NULL,
    last_at     timestamptz NOT NULL,
    -- The first that were seen.
    user_agents text[]      COLLATE "C" NOT NULL CHECK (cardinality(user_agents) <= 5),
    PRIMARY KEY (key_id, day, surface, operation)
) WITH (fillfactor = 80);

CREATE INDEX v1_usage_day ON v1_usage (day);

-- The last flush of each process that counts. It is written in the statement
-- that adds what was counted, so that a flush that is sent twice is added once.
CREATE TABLE v1_usage_flushes (
    replica    uuid        PRIMARY KEY,
    sequence   bigint      NOT NULL,
    flushed_at timestamptz NOT NULL
);
