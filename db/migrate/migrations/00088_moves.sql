-- +goose Up
-- locks: cell, ACCESS EXCLUSIVE, a moment
-- Where a cell's links without a key begin, as its service was last started with: other
-- cells send who follows an older link there.
ALTER TABLE cell ADD COLUMN public_url text;

-- The partners that move to another cell or came from one (decisions 13.5). cell is the
-- other one. While a partner holds, until held_until, its writes are refused; see db/move
-- for the steps.
CREATE TABLE moves (
    partner_id uuid PRIMARY KEY,
    step       text NOT NULL CHECK (step IN ('copying', 'holding', 'handing', 'gone', 'cleaned', 'arriving', 'here')),
    cell       text NOT NULL,
    public_url text,
    began_at   timestamptz NOT NULL DEFAULT now(),
    held_until timestamptz,
    moved_at   timestamptz,
    keep_until timestamptz
);

-- The clients whose mails, events and deliveries rest while their partner holds.
CREATE TABLE resting_clients (
    client_id uuid PRIMARY KEY,
    until     timestamptz NOT NULL
);

-- The keys that moved away with their partner, for good: which cell they live in.
CREATE TABLE moved_keys (
    digest     bytea PRIMARY KEY,
    prefix     text NOT NULL,
    cell       text NOT NULL,
    partner_id uuid NOT NULL
);
