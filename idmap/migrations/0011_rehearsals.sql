-- locks: none
-- The last rehearsal of each key that had one: from when to when it is answered by v1 as in
-- phase off, by its own wish. It may end before it was to.
CREATE TABLE v1_rehearsals (
    key_id     uuid        PRIMARY KEY,
    started_at timestamptz NOT NULL,
    ended_at   timestamptz NOT NULL CHECK (ended_at >= started_at)
);
