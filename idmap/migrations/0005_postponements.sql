-- locks: none
-- When the end of v1 was postponed, for the changelog. Earlier versions do not record it.
CREATE TABLE v1_postponements (
    id           bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    postponed_at timestamptz NOT NULL,
    previous_at  timestamptz NOT NULL,
    sunset_at    timestamptz NOT NULL,
    CHECK (sunset_at > previous_at)
);
COMMENT ON TABLE v1_postponements IS 'The postponements of the announced end of v1. They are deleted at the next announcement.';
COMMENT ON COLUMN v1_postponements.previous_at IS 'The end until then; sunset_at is the end from then on.';
