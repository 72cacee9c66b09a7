-- +goose Up
-- locks: reported_emails, ACCESS EXCLUSIVE, 60 s per million rows
-- locks: clients, SHARE ROW EXCLUSIVE, a moment
-- contracts: programs of before 00036 may store one report of a mail twice, and fail
-- The feed of reported mails, and what is known of their messages.

ALTER TABLE reported_emails ADD COLUMN updated_at timestamptz;
UPDATE reported_emails SET message_id = trim(both '<> ' from message_id);

-- A user reports a message once: of several reports the earliest stays, with what
-- the message was classified as last.
WITH latest AS (
    SELECT DISTINCT ON (client_id, user_id, message_id)
        client_id, user_id, message_id, classification, mailbox_action, classified_at
    FROM reported_emails WHERE classification <> 'pending'
    ORDER BY client_id, user_id, message_id, classified_at DESC NULLS LAST, id
)
UPDATE reported_emails AS e SET (classification, mailbox_action, classified_at) =
        (l.classification, l.mailbox_action, l.classified_at)
    FROM latest AS l WHERE (e.client_id, e.user_id, e.message_id) = (l.client_id, l.user_id, l.message_id);
DELETE FROM reported_emails WHERE (client_id, id) IN (
    SELECT client_id, id FROM (
        SELECT client_id, id, row_number() OVER (PARTITION BY client_id, user_id, message_id ORDER BY reported_at, id) AS n
        FROM reported_emails) AS e
    WHERE n > 1);

UPDATE reported_emails SET updated_at = greatest(reported_at, classified_at);
ALTER TABLE reported_emails ALTER COLUMN updated_at SET NOT NULL,
    ALTER COLUMN message_id TYPE text COLLATE "C";

-- A classification names the message alone.
CREATE UNIQUE INDEX reported_emails_of_user ON reported_emails (client_id, user_id, message_id);
CREATE INDEX reported_emails_by_message ON reported_emails (message_id, client_id);
CREATE INDEX reported_emails_by_report ON reported_emails (client_id, reported_at, id);
CREATE INDEX reported_emails_by_updated ON reported_emails (client_id, updated_at);

-- The latest classification of a message: for one client, or where client_id is
-- the zero UUID for all. It may come before the message is reported, and concerns
-- whoever reports the message later too.
CREATE TABLE email_classifications (
    message_id     text COLLATE "C" NOT NULL,
    client_id      uuid NOT NULL,
    classification text NOT NULL CHECK (classification IN ('phishing', 'spam', 'safe')),
    mailbox_action text CHECK (mailbox_action IN ('none', 'moved_to_junk', 'deleted')),
    classified_at  timestamptz NOT NULL,
    PRIMARY KEY (message_id, client_id)
);
CREATE INDEX email_classifications_by_age ON email_classifications USING brin (classified_at);
