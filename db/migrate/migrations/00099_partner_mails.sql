-- +goose Up
-- locks: partners, ACCESS EXCLUSIVE, a moment
-- locks: outbox, ACCESS EXCLUSIVE, a moment
-- locks: clients, ACCESS EXCLUSIVE, a moment
-- contracts: programs of before 00099 insert mails of clients only, and do not use the constraints
-- Mails of the service to the owners and admins of a partner. Their rows in the outbox have
-- the partner's id as client_id. A program of before 00099 that claims one puts it back.

CREATE TABLE partner_mails (
    partner_id    uuid NOT NULL REFERENCES partners,
    id            uuid NOT NULL,
    kind          text NOT NULL,
    -- What the mail tells of: an address gets one mail of a kind and cause.
    cause         text COLLATE "C" NOT NULL,
    admin_id      uuid NOT NULL,
    recipient     text COLLATE "C" NOT NULL,
    notice        jsonb NOT NULL,
    created_at    timestamptz NOT NULL,
    sent_at       timestamptz,
    failed_at     timestamptz,
    failure       text,
    -- When it was due while the partner had its kind switched off.
    suppressed_at timestamptz,
    PRIMARY KEY (partner_id, id),
    CONSTRAINT partner_mails_once UNIQUE (partner_id, kind, cause, recipient),
    CONSTRAINT partner_mails_outcome_check CHECK (
        (failed_at IS NULL) = (failure IS NULL) AND num_nonnulls(sent_at, failed_at, suppressed_at) <= 1)
);
CREATE INDEX partner_mails_unsent ON partner_mails (created_at) WHERE sent_at IS NULL AND suppressed_at IS NULL;

-- The kinds of such mail that a partner has switched off.
ALTER TABLE partners ADD COLUMN mails_off text[] NOT NULL DEFAULT '{}';

ALTER TABLE outbox
    DROP CONSTRAINT outbox_client_id_fkey,
    DROP CONSTRAINT outbox_kind_check,
    ADD CONSTRAINT outbox_kind_check CHECK (kind IN ('mail', 'simulation', 'partner')) NOT VALID;
