-- +goose Up
-- locks: none
-- The lines of an import wait here until all that they refer to is applied, and are
-- sorted. Nothing is lost with them: an import that was cut short begins with its file.
CREATE UNLOGGED TABLE import_lines (
    kind      integer NOT NULL, -- the place of their kind among those that are applied
    round     integer NOT NULL, -- in which of its rounds they are tried
    line      bigint  NOT NULL, -- their number in the input
    object    uuid,             -- of which they are; null where that does not move them
    client_id uuid,             -- where they belong
    user_id   uuid,
    outcome   integer NOT NULL, -- what became of them so far
    text      text    NOT NULL,
    PRIMARY KEY (kind, round, line)
);
