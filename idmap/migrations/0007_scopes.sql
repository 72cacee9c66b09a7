-- locks: policies, SHARE ROW EXCLUSIVE, a moment
-- A policy may come whose scope is gone already, as an import brings it: then the
-- collection or group never had a number, and the policy shows one. It gets a
-- tombstone, as those did whose policies were there before the registry.
CREATE FUNCTION id_registry_scope() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    of text := CASE NEW.scope_type WHEN 'collection' THEN 'collection' ELSE 'group' END;
BEGIN
    IF NOT EXISTS (SELECT FROM id_registry WHERE kind = of AND id = NEW.scope_id) THEN
        INSERT INTO id_registry (kind, number, id, retired_at)
        VALUES (of, nextval(('id_registry_' || of)::regclass), NEW.scope_id, clock_timestamp());
    END IF;
    RETURN NULL;
END $$;

CREATE TRIGGER id_registry_scope AFTER INSERT OR UPDATE OF scope_id ON policies
    FOR EACH ROW WHEN (NEW.scope_type IN ('collection', 'user_container'))
    EXECUTE FUNCTION id_registry_scope();
