-- +goose Up
-- locks: clients, SHARE ROW EXCLUSIVE, a moment
-- The users of large clients, in the order of their creation, divided into blocks. A row
-- counts the users after (after_at, after_id), up to the next row's. An offset far into the
-- list is found by these and not by counting users. A small client has none.
CREATE TABLE user_blocks (
    client_id uuid        NOT NULL REFERENCES clients (id),
    after_at  timestamptz NOT NULL,
    after_id  uuid        NOT NULL,
    active    integer     NOT NULL,
    inactive  integer     NOT NULL,
    PRIMARY KEY (client_id, after_at, after_id)
);
-- A process of the release before does not move these counts.
INSERT INTO recounts SELECT 'users of blocks', now() + interval '1 day' WHERE EXISTS (SELECT FROM partners);
