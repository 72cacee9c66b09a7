-- +goose Up
-- locks: policies, ACCESS EXCLUSIVE, a moment
-- How many a policy asks, and how many of them signed, as a read counted them
-- last; and until when that holds, which is when the first sign-off lapses.
-- Whatever changes the counts moves updated_at, and says with that that they
-- are to be made again: by the next read, and not by every writer.

ALTER TABLE policies
    ADD COLUMN audience_count     integer NOT NULL DEFAULT 0,
    ADD COLUMN acknowledged_count integer NOT NULL DEFAULT 0,
    ADD COLUMN counted_until      timestamptz NOT NULL DEFAULT '-infinity';

-- +goose StatementBegin
CREATE FUNCTION uncount_policy() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    NEW.counted_until := '-infinity';
    RETURN NEW;
END $$;
-- +goose StatementEnd

CREATE TRIGGER policies_uncounted
    BEFORE UPDATE OF updated_at, version, scope_type, scope_id, requires_acknowledgment, renewal_period_days, archived_at ON policies
    FOR EACH ROW EXECUTE FUNCTION uncount_policy();
