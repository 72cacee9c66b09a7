-- +goose Up
-- locks: clients, ACCESS EXCLUSIVE, a moment
-- Clients that exist now keep the link. Those created later, also by the release before, which does not know the column,
-- have the default: no link.

ALTER TABLE clients ADD COLUMN report_link boolean NOT NULL DEFAULT true;
ALTER TABLE clients ALTER COLUMN report_link SET DEFAULT false;
COMMENT ON COLUMN clients.report_link IS
    'Whether simulated emails to its users have a link that reports them. True for clients that existed before 1.1.';
