-- +goose Up
-- locks: events, ACCESS EXCLUSIVE, a moment
-- locks: webhook_deliveries, ACCESS EXCLUSIVE, a moment
-- locks: webhooks, ACCESS EXCLUSIVE, a moment
-- locks: api_keys, SHARE ROW EXCLUSIVE, a moment
--
-- Events, deliveries and activations of subscriptions draw their numbers from one sequence, so that their order does not
-- depend on a clock, which may step. Rows that 1.0 inserts get numbers by the defaults. The columns are added without
-- the defaults, so that no table is rewritten: rows from before have no number, and are compared by time as 1.0 does.
CREATE SEQUENCE event_numbers;

ALTER TABLE events ADD COLUMN number bigint;
ALTER TABLE events ALTER COLUMN number SET DEFAULT nextval('event_numbers');
COMMENT ON COLUMN events.number IS
    'The order in which events were written, of event_numbers; see webhooks.active_from. Null in rows from before this column, which come first.';

ALTER TABLE webhook_deliveries ADD COLUMN number bigint;
ALTER TABLE webhook_deliveries ALTER COLUMN number SET DEFAULT nextval('event_numbers');
COMMENT ON COLUMN webhook_deliveries.number IS
    'Of event_numbers: when it was queued last; see webhooks.active_from. Null in rows from before this column.';

ALTER TABLE webhooks ADD COLUMN active_from bigint NOT NULL DEFAULT 0;
COMMENT ON COLUMN webhooks.active_from IS
    'Of event_numbers: when it was activated again. Events and deliveries of smaller numbers are not delivered. 0 if it has been active since its creation.';
ALTER TABLE webhooks ADD COLUMN disabled_reason text;
COMMENT ON COLUMN webhooks.disabled_reason IS
    'Why the service disabled it: failures, gone, key_revoked or key_expired. Null if it is not disabled, or if 1.0 disabled it.';
ALTER TABLE webhooks ADD COLUMN resumes_as text;
COMMENT ON COLUMN webhooks.resumes_as IS
    'The status before the key ended, which it has again if the key turns out to be valid. Null if its key did not end.';

-- 1.0 activates subscriptions and queues deliveries again without numbers. The triggers draw these for it. They do
-- nothing for this version, which sets the number alongside the time. A later version, beside which 1.0 no longer runs,
-- drops the triggers, and the times.
-- +goose StatementBegin
CREATE FUNCTION number_activation() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    NEW.active_from := nextval('event_numbers');
    NEW.disabled_reason := NULL;
    NEW.resumes_as := NULL;
    RETURN NEW;
END
$$;
-- +goose StatementEnd
CREATE TRIGGER webhooks_number_activation BEFORE UPDATE OF active_since ON webhooks FOR EACH ROW
    WHEN (NEW.active_since <> OLD.active_since AND NEW.active_from = OLD.active_from)
    EXECUTE FUNCTION number_activation();
-- +goose StatementBegin
CREATE FUNCTION number_delivery() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    NEW.number := nextval('event_numbers');
    RETURN NEW;
END
$$;
-- +goose StatementEnd
CREATE TRIGGER webhook_deliveries_number BEFORE UPDATE OF queued_at ON webhook_deliveries FOR EACH ROW
    WHEN (NEW.queued_at <> OLD.queued_at AND NEW.number IS NOT DISTINCT FROM OLD.number)
    EXECUTE FUNCTION number_delivery();

-- subject: Partners, keys and the audit trail
CREATE TABLE replaced_keys (
    key_id   uuid NOT NULL REFERENCES api_keys ON DELETE CASCADE,
    place    integer NOT NULL,
    prefix   text NOT NULL,
    digest   bytea NOT NULL,
    until    timestamptz NOT NULL,
    ended_at timestamptz,
    PRIMARY KEY (key_id, place),
    CONSTRAINT replaced_keys_digest_unique UNIQUE (digest),
    CONSTRAINT replaced_keys_prefix_unique UNIQUE (prefix)
);
COMMENT ON TABLE replaced_keys IS
    'Earlier texts of API keys that were rotated. api_keys has the newest one. Ended texts stay, because the audit trail names their prefixes.';
COMMENT ON COLUMN replaced_keys.place IS 'The order of a key''s texts: 1 is the one that the key was created with.';
COMMENT ON COLUMN replaced_keys.until IS 'When the text stops being valid, if the key has not ended before.';
COMMENT ON COLUMN replaced_keys.ended_at IS 'When it was ended by an operator or a further rotation, which no clock undoes. Null if it was not.';
