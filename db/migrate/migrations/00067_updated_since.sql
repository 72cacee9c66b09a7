-- +goose Up
-- locks: assignments, ACCESS EXCLUSIVE, a moment
-- locks: framework_assignments, ACCESS EXCLUSIVE, a moment
-- When a course was given, and when it or its place in the user's list changed last,
-- by the service's clock: assigned_at and completed_at may be of before. Null for what
-- the release before wrote, whose dates tell.
ALTER TABLE assignments
    ADD COLUMN given_at   timestamptz,
    ADD COLUMN updated_at timestamptz;

CREATE OR REPLACE VIEW user_training AS
    SELECT client_id, user_id, course_id, round, position, assigned_at, due_on, completed_at,
        row_number() OVER (PARTITION BY client_id, user_id ORDER BY position, course_id) AS place, given_at, updated_at
    FROM (
        SELECT DISTINCT ON (client_id, user_id, course_id) client_id, user_id, course_id, round, position, assigned_at, due_on,
            completed_at, given_at, updated_at
        FROM assignments ORDER BY client_id, user_id, course_id, round DESC
    ) AS latest;

-- When what is shown of a framework assignment changed last, but for when it was
-- evaluated. Null for one that was not evaluated since.
ALTER TABLE framework_assignments ADD COLUMN changed_at timestamptz;
