-- +goose Up
-- locks: clients, ACCESS EXCLUSIVE, a moment
-- locks: mail_requests, ACCESS EXCLUSIVE, a moment
-- contracts: programs of before 00081 do not use the constraint; it takes what the former took
-- Reminders of overdue courses: one mail a user and day, and a client as a whole once a
-- day (decisions 4).
ALTER TABLE clients ADD COLUMN training_reminded_on date;
ALTER TABLE mail_requests
    DROP CONSTRAINT mail_requests_type_check,
    ADD CONSTRAINT mail_requests_type_check CHECK (type IN ('welcome', 'admin-invite', 'training-invite',
        'policy-reminder', 'certificate', 'phish-reminder', 'exposure-notice', 'monthly-report', 'training-reminder'))
        NOT VALID;
