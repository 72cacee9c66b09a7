-- locks: none
-- How many requests each phase and brownout refused, which v1 status shows. Earlier versions do not count them.
CREATE TABLE v1_refusals (
    kind    text   COLLATE "C" NOT NULL CHECK (kind IN ('phase', 'brownout')),
    id      bigint NOT NULL,
    day     date   NOT NULL,
    refused bigint NOT NULL CHECK (refused > 0),
    PRIMARY KEY (kind, id, day)
);
COMMENT ON TABLE v1_refusals IS
    'How many requests returned 410 because of a phase or a brownout, per day. The rows stay when those are deleted.';
COMMENT ON COLUMN v1_refusals.id IS 'The row of v1_phases or of v1_brownouts.';
