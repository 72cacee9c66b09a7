-- +goose Up
-- locks: phishing_results, ACCESS EXCLUSIVE, 4 s per million rows
-- locks: clients, ACCESS EXCLUSIVE, a moment
-- locks: phishing_templates, ACCESS EXCLUSIVE, a moment
-- What sending simulated mails and following them up needs.

-- A signal and a tracked link name a result without its client.
CREATE UNIQUE INDEX phishing_results_id_unique ON phishing_results (id);
-- How often a client used each template.
CREATE INDEX phishing_results_by_template ON phishing_results (client_id, template_id);

-- When it became certain that the mail cannot be delivered or is no longer
-- wanted, and why. Its status stays as it is.
ALTER TABLE phishing_results
    ADD COLUMN failed_at timestamptz,
    ADD COLUMN failure   text,
    ADD CONSTRAINT phishing_results_outcome_check CHECK ((failed_at IS NULL) = (failure IS NULL) AND (failed_at IS NULL OR sent_at IS NULL));

-- The categories of templates that a client may be sent; null for all.
ALTER TABLE clients ADD COLUMN phishing_categories text[];

-- own marks the templates that come with the service, which each version
-- brings up to date; the others were imported, one for a name and language.
ALTER TABLE phishing_templates
    ADD COLUMN indicators jsonb NOT NULL DEFAULT '[]',
    ADD COLUMN difficulty smallint NOT NULL DEFAULT 3 CHECK (difficulty BETWEEN 1 AND 6),
    ADD COLUMN landing    text NOT NULL DEFAULT 'lesson' CHECK (landing IN ('lesson', 'form')),
    ADD COLUMN own        boolean NOT NULL DEFAULT true;
CREATE UNIQUE INDEX phishing_templates_imported_unique ON phishing_templates (name, language) WHERE NOT own;
