-- locks: id_registry, ACCESS EXCLUSIVE, a moment
-- locks: policies, SHARE ROW EXCLUSIVE, a moment
-- A tombstone keeps whose its object was: a partner that moves to another cell takes the
-- numbers of its deleted objects along (decisions 13.3). NULL for numbers that are held, for
-- templates, which are nobody's, and for tombstones from before.
ALTER TABLE id_registry ADD COLUMN partner_id uuid;

CREATE OR REPLACE FUNCTION id_registry_retire() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    retired boolean;
BEGIN
    LOCK TABLE id_registry IN ROW EXCLUSIVE MODE;
    IF TG_OP = 'TRUNCATE' THEN
        UPDATE id_registry SET retired_at = clock_timestamp()
        WHERE kind = TG_ARGV[0] AND retired_at IS NULL;
        retired := FOUND;
    ELSE
        UPDATE id_registry AS r SET retired_at = CASE
            WHEN r.xmin = pg_current_xact_id()::xid THEN 'epoch'
            WHEN r.kind = 'group' AND NOT EXISTS (SELECT FROM policies AS p WHERE p.scope_id = r.id) THEN 'epoch'
            ELSE clock_timestamp() END
        FROM deleted
        WHERE r.kind = TG_ARGV[0] AND r.id = deleted.id AND r.retired_at IS NULL;
        retired := FOUND;
        -- Also those that the object had before its last number.
        IF TG_ARGV[0] = 'client' THEN
            UPDATE id_registry AS r SET partner_id = deleted.partner_id
            FROM deleted WHERE r.kind = TG_ARGV[0] AND r.id = deleted.id AND r.retired_at IS NOT NULL;
        ELSIF TG_ARGV[0] <> 'template' THEN
            UPDATE id_registry AS r SET partner_id = c.partner_id
            FROM deleted JOIN clients AS c ON c.id = deleted.client_id
            WHERE r.kind = TG_ARGV[0] AND r.id = deleted.id AND r.retired_at IS NOT NULL;
        END IF;
    END IF;
    IF retired THEN
        NOTIFY id_registry;
    END IF;
    RETURN NULL;
END $$;

-- The scope that a policy shows goes with the policy: a scope that was gone before keeps
-- whose it was from then on.
CREATE FUNCTION id_registry_scope_owner() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE id_registry AS r SET partner_id = c.partner_id
    FROM deleted AS p JOIN clients AS c ON c.id = p.client_id
    WHERE r.kind = CASE p.scope_type WHEN 'collection' THEN 'collection' ELSE 'group' END AND r.id = p.scope_id
        AND r.retired_at IS NOT NULL AND r.partner_id IS NULL;
    RETURN NULL;
END $$;

CREATE TRIGGER id_registry_scope_owner AFTER DELETE ON policies
    REFERENCING OLD TABLE AS deleted
    FOR EACH STATEMENT EXECUTE FUNCTION id_registry_scope_owner();
