-- +goose Up
-- locks: phishing_results, ACCESS EXCLUSIVE, 6 s per million rows
-- locks: clients, SHARE ROW EXCLUSIVE, a moment
-- locks: phishing_templates, ACCESS EXCLUSIVE, a moment
-- locks: policy_signatures, ACCESS EXCLUSIVE, a moment
-- locks: policies, ACCESS EXCLUSIVE, a moment
-- What finding changes needs, and what choosing a template does.

-- Changed results in the order of their change; results in one state.
DROP INDEX phishing_results_by_updated;
CREATE INDEX phishing_results_by_updated ON phishing_results (client_id, updated_at, id);
CREATE INDEX phishing_results_by_status ON phishing_results (client_id, status, created_at, id);

-- How many mails were made for a client from each template.
CREATE TABLE template_uses (
    client_id   uuid NOT NULL REFERENCES clients,
    template_id uuid NOT NULL REFERENCES phishing_templates,
    used        integer NOT NULL,
    PRIMARY KEY (client_id, template_id)
);
INSERT INTO template_uses SELECT client_id, template_id, count(*) FROM phishing_results GROUP BY client_id, template_id;
DROP INDEX phishing_results_by_template;

-- When an import changed a template last; null where none did.
ALTER TABLE phishing_templates ADD COLUMN changed_at timestamptz;

-- When a signature came to be known, which may be long after it was made; and
-- when a later version became the current one, which unsigned everybody. Null
-- where nothing tells.
ALTER TABLE policy_signatures ADD COLUMN recorded_at timestamptz;
ALTER TABLE policies ADD COLUMN published_at timestamptz;

-- +goose StatementBegin
CREATE OR REPLACE FUNCTION uncount_policy() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    NEW.counted_until := '-infinity';
    IF NEW.version > OLD.version THEN
        NEW.published_at := NEW.updated_at;
    END IF;
    RETURN NEW;
END $$;
-- +goose StatementEnd
