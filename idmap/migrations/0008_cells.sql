-- locks: cell, SHARE ROW EXCLUSIVE, a moment
-- Where there are several cells, each allocates the numbers of its own residue, from the
-- moment on at which it is fixed which cell the database is of. The first goes on above
-- what it has allocated. The others begin above the highest number that an import gives:
-- what the first one gave when it was alone, and numbers from before the registry, are
-- none that they allocate, so that a partner can move with its numbers.
--
-- A sequence begins (START) at a number of its residue, above all that were allocated.
CREATE FUNCTION id_registry_divide() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    sequence text;
    above bigint;
    first bigint;
BEGIN
    LOCK TABLE id_registry IN SHARE ROW EXCLUSIVE MODE;
    FOREACH sequence IN ARRAY ARRAY['id_registry_client', 'id_registry_collection', 'id_registry_policy',
        'id_registry_template', 'id_registry_group', 'id_registry_report']
    LOOP
        above := greatest(pg_sequence_last_value(sequence::regclass), CASE WHEN NEW.number = 0 THEN 0 ELSE 1 << 30 END);
        first := above - above % NEW.count + NEW.number;
        IF first <= above THEN
            first := first + NEW.count;
        END IF;
        EXECUTE format('ALTER SEQUENCE %I INCREMENT %s START %s RESTART', sequence, NEW.count, first);
    END LOOP;
    RETURN NULL;
END $$;

CREATE TRIGGER id_registry_divide AFTER INSERT ON cell FOR EACH ROW EXECUTE FUNCTION id_registry_divide();
