-- +goose Up
-- locks: courses, SHARE ROW EXCLUSIVE, a moment
-- The courses of the service, the program that a new client starts with, and
-- what each framework asks for. The ids are fixed, so that every installation
-- speaks of the same courses.

INSERT INTO courses (id, title, renewal_months, created_at) VALUES
    ('019b7740-0000-7000-8000-000000000001', 'Security awareness foundations', 12, '2026-01-01T00:00:00Z'),
    ('019b7740-0000-7000-8000-000000000002', 'Recognizing phishing', 12, '2026-01-01T00:00:00Z'),
    ('019b7740-0000-7000-8000-000000000003', 'Passwords and multi-factor authentication', 12, '2026-01-01T00:00:00Z'),
    ('019b7740-0000-7000-8000-000000000004', 'Safe browsing and downloads', 12, '2026-01-01T00:00:00Z'),
    ('019b7740-0000-7000-8000-000000000005', 'Working securely away from the office', 12, '2026-01-01T00:00:00Z'),
    ('019b7740-0000-7000-8000-000000000006', 'Reporting an incident', 12, '2026-01-01T00:00:00Z'),
    ('019b7740-0000-7000-8000-000000000007', 'Handling health information', 12, '2026-01-01T00:00:00Z'),
    ('019b7740-0000-7000-8000-000000000008', 'Handling cardholder data', 12, '2026-01-01T00:00:00Z'),
    ('019b7740-0000-7000-8000-000000000009', 'Privacy and personal data', 12, '2026-01-01T00:00:00Z'),
    ('019b7740-0000-7000-8000-00000000000a', 'Wire fraud and payment approval', 12, '2026-01-01T00:00:00Z'),
    ('019b7740-0000-7000-8000-00000000000b', 'Protecting employee records', 12, '2026-01-01T00:00:00Z'),
    ('019b7740-0000-7000-8000-00000000000c', 'Threats to executives', 12, '2026-01-01T00:00:00Z'),
    ('019b7740-0000-7000-8000-00000000000d', 'Administering systems securely', 12, '2026-01-01T00:00:00Z');

CREATE TABLE default_program (
    position       integer PRIMARY KEY,
    course_id      uuid NOT NULL REFERENCES courses,
    due_after_days integer NOT NULL
);
INSERT INTO default_program (position, course_id, due_after_days) VALUES
    (1, '019b7740-0000-7000-8000-000000000001', 14),
    (2, '019b7740-0000-7000-8000-000000000002', 44),
    (3, '019b7740-0000-7000-8000-000000000003', 74),
    (4, '019b7740-0000-7000-8000-000000000004', 104),
    (5, '019b7740-0000-7000-8000-000000000005', 134),
    (6, '019b7740-0000-7000-8000-000000000006', 164);

INSERT INTO framework_courses (framework_id, course_id, due_after_days) VALUES
    ('hipaa', '019b7740-0000-7000-8000-000000000007', 30),
    ('hipaa', '019b7740-0000-7000-8000-00000000000b', 30),
    ('pci_dss', '019b7740-0000-7000-8000-000000000008', 30),
    ('nist_csf', '019b7740-0000-7000-8000-00000000000d', 30),
    ('nist_800_53', '019b7740-0000-7000-8000-00000000000d', 30),
    ('cis_v8', '019b7740-0000-7000-8000-00000000000d', 30),
    ('iso_27001', '019b7740-0000-7000-8000-000000000009', 30),
    ('soc2', '019b7740-0000-7000-8000-000000000009', 30),
    ('cmmc_l2', '019b7740-0000-7000-8000-00000000000d', 30),
    ('ftc_safeguards', '019b7740-0000-7000-8000-00000000000a', 30),
    ('nydfs', '019b7740-0000-7000-8000-00000000000a', 30),
    ('nydfs', '019b7740-0000-7000-8000-00000000000c', 30),
    ('gdpr', '019b7740-0000-7000-8000-000000000009', 30);
