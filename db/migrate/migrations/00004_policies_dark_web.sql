-- +goose Up
-- locks: policies, ACCESS EXCLUSIVE, a moment
-- locks: policy_signatures, ACCESS EXCLUSIVE, 3 s per million rows
-- locks: users, SHARE, 1 s per million rows
-- locks: mail_requests, ACCESS EXCLUSIVE, 1 s per million rows
-- locks: breaches, ACCESS EXCLUSIVE, a moment
-- locks: exposures, ACCESS EXCLUSIVE, 30 s per million rows
-- What policies and Dark Web exposures need to be read and changed through the
-- interface.

-- The day (UTC) of the last reminders: there is one round a day.
ALTER TABLE policies ADD COLUMN reminded_on date;

-- Whether a user signed is found on the key's index alone; and whose sign-off
-- lapsed last, by the time of it.
ALTER TABLE policy_signatures
    DROP CONSTRAINT policy_signatures_pkey,
    ADD PRIMARY KEY (client_id, policy_id, version, user_id) INCLUDE (signed_at);
CREATE INDEX policy_signatures_by_time ON policy_signatures (client_id, policy_id, version, signed_at);

-- The active users of a group, as a policy's audience, in their order.
CREATE INDEX users_by_group ON users (client_id, group_id, created_at, id) WHERE status = 'active';

ALTER TABLE mail_requests
    ADD COLUMN policy_id uuid,
    DROP CONSTRAINT mail_requests_type_check,
    DROP CONSTRAINT mail_requests_check,
    ADD FOREIGN KEY (client_id, policy_id) REFERENCES policies (client_id, id),
    ADD CONSTRAINT mail_requests_type_check CHECK (type IN ('welcome', 'admin-invite', 'policy-reminder')),
    ADD CONSTRAINT mail_requests_check CHECK ((type = 'admin-invite') = (invite_id IS NOT NULL) AND (type <> 'admin-invite') = (user_id IS NOT NULL)
        AND (type = 'policy-reminder') = (policy_id IS NOT NULL));

-- The marks of a breach as a whole, which rate it beside its data classes.
ALTER TABLE breaches
    ADD COLUMN sensitive boolean NOT NULL DEFAULT false,
    ADD COLUMN spam_list boolean NOT NULL DEFAULT false;

-- An exposure has no id in the interface. This one breaks ties in the order of
-- a list, and follows from the key.
ALTER TABLE exposures
    ADD COLUMN id uuid NOT NULL GENERATED ALWAYS AS (md5(user_id::text || breach_name)::uuid) STORED,
    ADD COLUMN updated_at timestamptz NOT NULL DEFAULT now();
UPDATE exposures SET updated_at = greatest(first_seen_at, notified_at, resolved_at);
CREATE INDEX exposures_by_seen ON exposures (client_id, first_seen_at, id);
CREATE INDEX exposures_by_updated ON exposures (client_id, updated_at);
CREATE INDEX exposures_by_breach ON exposures (breach_name);
-- What a client's summary and a user's counts are made of, without a look at
-- the table.
CREATE INDEX exposures_for_summary ON exposures (client_id, user_id) INCLUDE (severity, first_seen_at, resolved_at);
