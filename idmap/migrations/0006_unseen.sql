-- locks: none
-- Tombstones of numbers that v1 never showed for anything that was there: of an
-- object that was made and deleted in one transaction, and of a group that no
-- policy was for. Both are what an import of objects leaves behind. They are
-- retired at the epoch, and an imported number may take their place.
CREATE OR REPLACE FUNCTION id_registry_retire() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    LOCK TABLE id_registry IN ROW EXCLUSIVE MODE;
    IF TG_OP = 'TRUNCATE' THEN
        UPDATE id_registry SET retired_at = clock_timestamp()
        WHERE kind = TG_ARGV[0] AND retired_at IS NULL;
    ELSE
        UPDATE id_registry AS r SET retired_at = CASE
            WHEN r.xmin = pg_current_xact_id()::xid THEN 'epoch'
            WHEN r.kind = 'group' AND NOT EXISTS (SELECT FROM policies AS p WHERE p.scope_id = r.id) THEN 'epoch'
            ELSE clock_timestamp() END
        FROM deleted
        WHERE r.kind = TG_ARGV[0] AND r.id = deleted.id AND r.retired_at IS NULL;
    END IF;
    IF FOUND THEN
        NOTIFY id_registry;
    END IF;
    RETURN NULL;
END $$;
