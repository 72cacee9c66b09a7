-- +goose Up
-- locks: partners, ACCESS EXCLUSIVE, a moment
-- locks: clients, SHARE ROW EXCLUSIVE, 1 s per million rows
-- How many clients a partner has that are not archived: the total that v1
-- shows on every page. A trigger keeps it, so that whatever changes clients
-- does. It is deferred to the commit: those who create clients of one partner
-- at a time wait for each other's commit only, not for all their work.

ALTER TABLE partners ADD COLUMN client_count integer NOT NULL DEFAULT 0;
UPDATE partners AS p SET client_count =
    (SELECT count(*) FROM clients AS c WHERE c.partner_id = p.id AND c.archived_at IS NULL);

-- +goose StatementBegin
CREATE FUNCTION count_client() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP <> 'INSERT' AND OLD.archived_at IS NULL THEN
        UPDATE partners SET client_count = client_count - 1 WHERE id = OLD.partner_id;
    END IF;
    IF TG_OP <> 'DELETE' AND NEW.archived_at IS NULL THEN
        UPDATE partners SET client_count = client_count + 1 WHERE id = NEW.partner_id;
    END IF;
    RETURN NULL;
END $$;
-- +goose StatementEnd

CREATE CONSTRAINT TRIGGER clients_counted AFTER INSERT OR DELETE OR UPDATE OF archived_at ON clients
    DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION count_client();
