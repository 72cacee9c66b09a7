-- +goose Up
-- locks: policies, SHARE, 1 s per million rows
-- The signals that were taken. A signal is taken once: its row is inserted in
-- the transaction that applies it. A row may be deleted once its signal can no
-- longer be sent again.
CREATE TABLE signals (
    id       text COLLATE "C" PRIMARY KEY,
    type     text NOT NULL,
    at       timestamptz NOT NULL,
    taken_at timestamptz NOT NULL
);
CREATE INDEX signals_by_age ON signals USING brin (taken_at);

-- A signal names a policy without its client.
CREATE UNIQUE INDEX policies_id_unique ON policies (id);
