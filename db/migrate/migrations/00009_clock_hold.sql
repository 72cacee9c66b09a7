-- +goose Up
-- locks: none
-- subject: The service itself
CREATE TABLE clock_hold (
    single   boolean PRIMARY KEY DEFAULT true CHECK (single),
    id       uuid NOT NULL,
    day      date NOT NULL,
    seen_at  timestamptz NOT NULL,
    waited   integer NOT NULL,
    accepted boolean NOT NULL
);
COMMENT ON TABLE clock_hold IS
    'In one row, that the clock shows a day far from the last daily refresh: work that only the clock causes waits. It is deleted once the day is plausible.';
COMMENT ON COLUMN clock_hold.id IS 'A new one for each hold: a process adds to waited of the hold that it has seen.';
COMMENT ON COLUMN clock_hold.day IS 'The day that the clock showed last.';
COMMENT ON COLUMN clock_hold.seen_at IS 'When the hold began, by that clock.';
COMMENT ON COLUMN clock_hold.waited IS 'For how many seconds processes have waited, by their monotonic time.';
COMMENT ON COLUMN clock_hold.accepted IS 'Whether an operator accepted the clock (--accept-clock).';
