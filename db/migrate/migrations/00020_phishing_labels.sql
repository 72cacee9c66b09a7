-- +goose NO TRANSACTION
-- +goose Up
-- locks: phishing_results, ACCESS EXCLUSIVE, a moment
-- locks: clients, SHARE ROW EXCLUSIVE, a moment
-- locks: recounts, ROW EXCLUSIVE, a moment
-- locks: phishing_results, SHARE UPDATE EXCLUSIVE, 6 s per million rows
--
-- Labels of simulated emails, and the list of results sorted by send_at. A result without a label is in none of the
-- indexes of labels. 1.0 does not count by label when it sends, advances or cancels an email with a label, so the counts
-- are recounted until it can no longer be running. There is no transaction, so each statement can safely run again.
ALTER TABLE phishing_results ADD COLUMN IF NOT EXISTS label text, ADD COLUMN IF NOT EXISTS label_key text COLLATE "C";
COMMENT ON COLUMN phishing_results.label IS 'Label of the email, as phishing_labels spells it. Null for none.';
COMMENT ON COLUMN phishing_results.label_key IS 'Key of the label, by which labels are compared.';

-- subject: Phishing simulations and reported emails
CREATE TABLE IF NOT EXISTS phishing_labels (
    client_id     uuid NOT NULL REFERENCES clients,
    key           text COLLATE "C" NOT NULL,
    id            uuid NOT NULL GENERATED ALWAYS AS (md5(key)::uuid) STORED,
    label         text NOT NULL,
    sends         integer NOT NULL,
    cancelled     integer NOT NULL,
    first_send_at timestamptz NOT NULL,
    last_send_at  timestamptz NOT NULL,
    PRIMARY KEY (client_id, key)
);
COMMENT ON TABLE phishing_labels IS 'Labels of a client''s simulated emails, with stored counts of these emails.';
COMMENT ON COLUMN phishing_labels.id IS 'Breaks ties in the order of the list. The API does not show it.';
COMMENT ON COLUMN phishing_labels.label IS 'The spelling of the first send, which all emails with the label share.';
COMMENT ON COLUMN phishing_labels.sends IS 'Emails that are not cancelled.';
COMMENT ON COLUMN phishing_labels.first_send_at IS
    'The earliest send_at of the emails that are not cancelled or, if all are cancelled, of all emails. last_send_at is the latest send_at of the same emails.';
CREATE INDEX IF NOT EXISTS phishing_labels_by_first ON phishing_labels (client_id, first_send_at, id);
COMMENT ON INDEX phishing_labels_by_first IS 'The list.';

CREATE TABLE IF NOT EXISTS phishing_label_days (
    client_id             uuid NOT NULL REFERENCES clients,
    label_key             text COLLATE "C" NOT NULL,
    day                   date NOT NULL,
    sent                  integer NOT NULL DEFAULT 0,
    opened                integer NOT NULL DEFAULT 0,
    clicked               integer NOT NULL DEFAULT 0,
    reported              integer NOT NULL DEFAULT 0,
    credentials_submitted integer NOT NULL DEFAULT 0,
    attachments_opened    integer NOT NULL DEFAULT 0,
    PRIMARY KEY (client_id, label_key, day)
);
COMMENT ON TABLE phishing_label_days IS 'Stored counts of the simulated emails with a label, like phishing_days.';

INSERT INTO recounts SELECT counter, now() + interval '1 day'
    FROM unnest(ARRAY['sends by label', 'dates of labels', 'phishing by label and day']) AS c (counter)
    WHERE EXISTS (SELECT FROM partners) ON CONFLICT DO NOTHING;

SET lock_timeout = 0;

DROP INDEX CONCURRENTLY IF EXISTS phishing_results_by_send;
CREATE INDEX CONCURRENTLY phishing_results_by_send ON phishing_results (client_id, send_at, id);
COMMENT ON INDEX phishing_results_by_send IS 'The list sorted by send_at.';

DROP INDEX CONCURRENTLY IF EXISTS phishing_results_by_status_send;
CREATE INDEX CONCURRENTLY phishing_results_by_status_send ON phishing_results (client_id, status, send_at, id);
COMMENT ON INDEX phishing_results_by_status_send IS 'The list''s filter status, sorted by send_at.';

DROP INDEX CONCURRENTLY IF EXISTS phishing_results_by_label;
CREATE INDEX CONCURRENTLY phishing_results_by_label ON phishing_results (client_id, label_key, created_at, id)
    WHERE label_key IS NOT NULL;
COMMENT ON INDEX phishing_results_by_label IS 'The list''s filter label.';

DROP INDEX CONCURRENTLY IF EXISTS phishing_results_by_label_send;
CREATE INDEX CONCURRENTLY phishing_results_by_label_send ON phishing_results (client_id, label_key, send_at, id)
    WHERE label_key IS NOT NULL;
COMMENT ON INDEX phishing_results_by_label_send IS 'The list''s filter label, sorted by send_at.';

DROP INDEX CONCURRENTLY IF EXISTS phishing_results_label_kept;
CREATE INDEX CONCURRENTLY phishing_results_label_kept ON phishing_results (client_id, label_key, send_at, id)
    WHERE label_key IS NOT NULL AND failure IS DISTINCT FROM 'cancelled';
COMMENT ON INDEX phishing_results_label_kept IS 'A label''s emails that are not cancelled: the first, the last, and those that a cancellation lists.';

DROP INDEX CONCURRENTLY IF EXISTS phishing_results_label_waiting;
CREATE INDEX CONCURRENTLY phishing_results_label_waiting ON phishing_results (client_id, label_key, id)
    WHERE label_key IS NOT NULL AND status = 'scheduled';
COMMENT ON INDEX phishing_results_label_waiting IS 'A label''s scheduled emails, which a cancellation cancels.';

DROP INDEX CONCURRENTLY IF EXISTS phishing_results_label_falls;
CREATE INDEX CONCURRENTLY phishing_results_label_falls ON phishing_results (client_id, label_key, sent_at, user_id)
    WHERE label_key IS NOT NULL
    AND (clicked_at IS NOT NULL OR credentials_submitted_at IS NOT NULL OR attachment_opened_at IS NOT NULL);
COMMENT ON INDEX phishing_results_label_falls IS 'Users who repeatedly fell for simulated emails with a label.';
