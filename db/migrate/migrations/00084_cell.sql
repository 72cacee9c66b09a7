-- +goose Up
-- locks: none
-- Which cell the database is of (decisions 13), in one row that never changes. There is
-- none where it is the one of one.
CREATE TABLE cell (
    one      boolean PRIMARY KEY DEFAULT true CHECK (one),
    number   integer NOT NULL CHECK (number BETWEEN 0 AND count - 1),
    count    integer NOT NULL CHECK (count BETWEEN 2 AND 3844),
    fixed_at timestamptz NOT NULL DEFAULT now()
);
