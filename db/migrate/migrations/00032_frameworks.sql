-- +goose Up
-- locks: framework_uses, ACCESS EXCLUSIVE, 10 s per million rows
-- locks: framework_assignments, ACCESS EXCLUSIVE, 10 s per million rows
-- locks: assignments, ACCESS EXCLUSIVE, 60 s per million rows
-- locks: framework_courses, ACCESS EXCLUSIVE, a moment
-- contracts: programs of before 00032 fail where they assign frameworks and courses
-- Frameworks that clients follow, how far each is met, and why a course is
-- assigned.

ALTER TABLE framework_uses RENAME TO framework_assignments;
ALTER TABLE framework_assignments
    -- How far it was met when it was evaluated last: the requirements as the
    -- interface shows them, in the order of the catalogue.
    ADD COLUMN requirements jsonb NOT NULL DEFAULT '[]',
    ADD COLUMN met          smallint NOT NULL DEFAULT 0,
    ADD COLUMN total        smallint NOT NULL DEFAULT 0,
    ADD COLUMN evaluated_at timestamptz NOT NULL DEFAULT '-infinity';

-- Of several assignments to one audience the earliest stays, with the modules of
-- all, and gives the courses that the others gave.
CREATE TABLE same_frameworks AS
    SELECT client_id, id, first_value(id) OVER same AS kept, bool_or(training) OVER same AS training,
        bool_or(phishing) OVER same AS phishing, bool_or(policies) OVER same AS policies,
        bool_or(reporting) OVER same AS reporting
    FROM framework_assignments
    WINDOW same AS (PARTITION BY client_id, framework_id, audience_type, audience_id ORDER BY created_at, id
        ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING);
UPDATE framework_assignments AS f
    SET training = s.training, phishing = s.phishing, policies = s.policies, reporting = s.reporting
    FROM same_frameworks AS s WHERE f.client_id = s.client_id AND f.id = s.id;
UPDATE assignments AS a SET framework_use_id = s.kept
    FROM same_frameworks AS s WHERE a.client_id = s.client_id AND a.framework_use_id = s.id AND s.id <> s.kept;
DELETE FROM framework_assignments AS f
    USING same_frameworks AS s WHERE f.client_id = s.client_id AND f.id = s.id AND s.id <> s.kept;
DROP TABLE same_frameworks;

CREATE UNIQUE INDEX framework_assignments_unique
    ON framework_assignments (client_id, framework_id, audience_type, coalesce(audience_id, client_id));
CREATE INDEX framework_assignments_by_created ON framework_assignments (client_id, created_at, id);

-- Whom a required course is for: the users of one role, or everybody.
ALTER TABLE framework_courses
    ADD COLUMN role text CHECK (role IN ('admin', 'executive', 'hr', 'finance'));
UPDATE framework_courses SET role = 'admin' WHERE course_id = '019b7740-0000-7000-8000-00000000000d';
INSERT INTO framework_courses (framework_id, course_id, due_after_days, role)
    SELECT framework, course::uuid, 30, role
    FROM unnest('{nist_csf,nist_800_53,cis_v8,cmmc_l2}'::text[]) AS f (framework)
    CROSS JOIN (VALUES
        ('019b7740-0000-7000-8000-000000000001', NULL),
        ('019b7740-0000-7000-8000-00000000000a', 'finance'),
        ('019b7740-0000-7000-8000-00000000000b', 'hr'),
        ('019b7740-0000-7000-8000-00000000000c', 'executive')) AS c (course, role);

-- Every reason for which a course is assigned, and when the user began it. A
-- course that was passed without having been assigned has been taken directly.
ALTER TABLE assignments
    ADD COLUMN started_at   timestamptz,
    ADD COLUMN from_program boolean NOT NULL DEFAULT false,
    ADD COLUMN direct       boolean NOT NULL DEFAULT false,
    ADD COLUMN frameworks   uuid[] NOT NULL DEFAULT '{}';
UPDATE assignments AS a SET
    from_program = framework_use_id IS NULL AND position < 1000,
    direct = framework_use_id IS NULL AND position >= 1000,
    frameworks = CASE WHEN framework_use_id IS NULL THEN '{}' ELSE ARRAY[framework_use_id] END;
ALTER TABLE assignments DROP COLUMN framework_use_id;
