-- locks: none
-- How far the retirement of v1 is. Each command that changes it locks the one row of
-- v1_state first, so that commands follow one another, and notifies the channel
-- v1_retirement, to which the processes that serve v1 listen.

CREATE TABLE v1_state (
    one           boolean PRIMARY KEY DEFAULT true CHECK (one),
    -- When the end of v1 was announced, and when it comes; NULL while nothing is
    -- announced.
    announced_at  timestamptz,
    sunset_at     timestamptz,
    -- When v1 was ended.
    ended_at      timestamptz,
    -- The release of v2 that a process which serves v1 had last.
    served_release text,
    CHECK ((announced_at IS NULL) = (sunset_at IS NULL))
);
INSERT INTO v1_state DEFAULT VALUES;

-- The phases that were set, for a key, for a partner's keys, or for all. The newest
-- row of a key that is not over is its phase.
CREATE TABLE v1_phases (
    id         bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    key_id     uuid,
    partner_id uuid,
    phase      text COLLATE "C" NOT NULL CHECK (phase IN ('on', 'read_only', 'brownout', 'off')),
    until      timestamptz,
    set_at     timestamptz NOT NULL,
    CHECK (key_id IS NULL OR partner_id IS NULL)
);

-- The brownouts: series of windows. Without keys they are for all.
CREATE TABLE v1_brownouts (
    id            bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    start_at      timestamptz NOT NULL,
    for_seconds   integer NOT NULL CHECK (for_seconds > 0),
    every_seconds integer NOT NULL CHECK (every_seconds >= 0),
    windows       integer NOT NULL CHECK (windows > 0),
    keys          uuid[]  NOT NULL DEFAULT '{}',
    ends_at       timestamptz NOT NULL
);
