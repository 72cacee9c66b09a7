-- +goose Up
-- locks: courses, SHARE ROW EXCLUSIVE, a moment
-- locks: mail_requests, ACCESS EXCLUSIVE, 1 s per million rows
-- locks: events, ACCESS EXCLUSIVE, a moment
-- locks: phishing_results, SHARE, 4 s per million rows
-- locks: users, SHARE, 1 s per million rows
-- What the reads of training, simulations and sent mail need.

-- An id of version 7 for a row that a statement makes many of.
CREATE FUNCTION uuid_v7(made_at timestamptz) RETURNS uuid LANGUAGE sql VOLATILE PARALLEL SAFE AS
    'SELECT encode(set_bit(set_bit(overlay(uuid_send(gen_random_uuid())
        PLACING substring(int8send((extract(epoch FROM made_at) * 1000)::bigint) FROM 3) FROM 1 FOR 6), 52, 1), 53, 1), ''hex'')::uuid';

-- Where each user stands: the latest round of every course that the user was
-- given, and the course's place in the user's list, from 1. A condition on
-- client_id and user_id is applied before the places are counted, so that
-- reading one user touches that user's rows alone.
CREATE VIEW user_training AS
    SELECT latest.*, row_number() OVER (PARTITION BY client_id, user_id ORDER BY position, course_id) AS place
    FROM (
        SELECT DISTINCT ON (client_id, user_id, course_id) client_id, user_id, course_id, round, position, assigned_at, due_on, completed_at
        FROM assignments ORDER BY client_id, user_id, course_id, round DESC
    ) AS latest;

-- An invitation to a course. The list of types and whom each concerns are
-- those of all mail that is asked for.
ALTER TABLE mail_requests
    ADD COLUMN course_id uuid REFERENCES courses,
    DROP CONSTRAINT mail_requests_type_check,
    DROP CONSTRAINT mail_requests_check,
    ADD CONSTRAINT mail_requests_type_check CHECK (type IN ('welcome', 'admin-invite', 'training-invite', 'policy-reminder')),
    ADD CONSTRAINT mail_requests_check CHECK (
        (type = 'admin-invite') = (invite_id IS NOT NULL) AND (type <> 'admin-invite') = (user_id IS NOT NULL)
        AND (type = 'training-invite') = (course_id IS NOT NULL));

-- What an event is about beside the client and the user: the course that was
-- completed.
ALTER TABLE events ADD COLUMN object_id uuid;

CREATE INDEX phishing_results_by_created ON phishing_results (client_id, created_at, id);
CREATE INDEX phishing_results_by_updated ON phishing_results (client_id, updated_at);
-- The mails that a person fell for, for the users who did so repeatedly.
CREATE INDEX phishing_results_falls ON phishing_results (client_id, sent_at, user_id)
    WHERE NOT automated AND (clicked_at IS NOT NULL OR credentials_submitted_at IS NOT NULL OR attachment_opened_at IS NOT NULL);

CREATE INDEX users_by_email ON users USING hash (email);
