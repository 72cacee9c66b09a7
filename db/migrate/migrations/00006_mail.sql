-- +goose Up
-- locks: mail_requests, ACCESS EXCLUSIVE, 1 s per million rows
-- What became of a mail that was asked for.

ALTER TABLE mail_requests
    ADD COLUMN sent_at   timestamptz,
    -- When it became certain that the mail cannot be delivered or is no longer
    -- wanted, and why.
    ADD COLUMN failed_at timestamptz,
    ADD COLUMN failure   text,
    ADD CONSTRAINT mail_requests_outcome_check CHECK (
        (failed_at IS NULL) = (failure IS NULL) AND (sent_at IS NULL OR failed_at IS NULL));
