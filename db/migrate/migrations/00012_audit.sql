-- +goose Up
-- locks: api_keys, ACCESS EXCLUSIVE, a moment
-- locks: mail_requests, SHARE, 1 s per million rows
-- locks: phishing_results, SHARE, 1 s per million rows
-- Who changed what through the API: a row for each write that succeeded, kept
-- for 400 days. It refers to nothing, so that it outlives what it names.
CREATE TABLE audit_entries (
    id         bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at         timestamptz NOT NULL,
    partner_id uuid NOT NULL,
    key_id     uuid NOT NULL,
    key_prefix text COLLATE "C" NOT NULL,
    address    inet,
    operation  text NOT NULL,
    method     text NOT NULL,
    path       text NOT NULL,
    client_id  uuid,
    user_id    uuid,
    request_id text NOT NULL
);
CREATE INDEX audit_entries_by_time ON audit_entries (at, id);
CREATE INDEX audit_entries_by_client ON audit_entries (client_id, at, id) WHERE client_id IS NOT NULL;
CREATE INDEX audit_entries_by_key ON audit_entries (key_prefix, at, id);

-- The networks that a key may be used from; none for everywhere.
ALTER TABLE api_keys ADD COLUMN networks cidr[] NOT NULL DEFAULT '{}';

-- Mail that waits or was given up, for the operator.
CREATE INDEX mail_requests_waiting ON mail_requests (created_at) WHERE sent_at IS NULL AND failed_at IS NULL;
CREATE INDEX mail_requests_failed ON mail_requests (failed_at) WHERE failed_at IS NOT NULL;
CREATE INDEX phishing_results_waiting ON phishing_results (send_at) WHERE sent_at IS NULL AND failed_at IS NULL;
CREATE INDEX phishing_results_failed ON phishing_results (failed_at) WHERE failed_at IS NOT NULL;
