-- +goose Up
-- How many clients a partner has that are not archived: the total that v1
-- shows on every page. Triggers keep it in the transaction that changes the
-- clients, so that whatever changes them keeps it.

ALTER TABLE partners ADD COLUMN client_count integer NOT NULL DEFAULT 0;
UPDATE partners AS p SET client_count =
    (SELECT count(*) FROM clients AS c WHERE c.partner_id = p.id AND c.archived_at IS NULL);

-- +goose StatementBegin
CREATE FUNCTION count_clients() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE partners AS p SET client_count = client_count + moved.by
    FROM (
        SELECT partner_id, CASE TG_OP WHEN 'DELETE' THEN -count(*) ELSE count(*) END AS by
        FROM changed WHERE archived_at IS NULL GROUP BY partner_id
    ) AS moved
    WHERE p.id = moved.partner_id;
    RETURN NULL;
END $$;

CREATE FUNCTION count_archived_client() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE partners SET client_count = client_count + CASE WHEN NEW.archived_at IS NULL THEN 1 ELSE -1 END
    WHERE id = NEW.partner_id;
    RETURN NULL;
END $$;
-- +goose StatementEnd

CREATE TRIGGER clients_counted AFTER INSERT ON clients
    REFERENCING NEW TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION count_clients();
CREATE TRIGGER clients_uncounted AFTER DELETE ON clients
    REFERENCING OLD TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION count_clients();
-- A list of columns and a transition table exclude each other, and summaries
-- are updated often: this one looks at rows.
CREATE TRIGGER clients_archived AFTER UPDATE OF archived_at ON clients
    FOR EACH ROW WHEN ((OLD.archived_at IS NULL) <> (NEW.archived_at IS NULL)) EXECUTE FUNCTION count_archived_client();
