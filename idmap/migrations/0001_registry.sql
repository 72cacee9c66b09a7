-- locks: clients, SHARE ROW EXCLUSIVE, 20 s per million rows
-- locks: collections, SHARE ROW EXCLUSIVE, 20 s per million rows
-- locks: policies, SHARE ROW EXCLUSIVE, 20 s per million rows
-- locks: phishing_templates, SHARE ROW EXCLUSIVE, 20 s per million rows
-- locks: groups, SHARE ROW EXCLUSIVE, 20 s per million rows
-- locks: reports, SHARE ROW EXCLUSIVE, 20 s per million rows
-- The id registry: which number v1 shows for which object, one space of
-- numbers per kind. Nothing outside of this file knows that it exists: numbers
-- are given by triggers on the tables of the objects.

CREATE TABLE id_registry (
    kind       text        COLLATE "C" NOT NULL,
    number     integer     NOT NULL CHECK (number > 0),
    id         uuid        NOT NULL,
    -- Set once the number is a tombstone: its object was deleted, or moved to
    -- an imported number. Clock time, not the transaction's, so that the last
    -- of an object's tombstones is known.
    retired_at timestamptz,
    PRIMARY KEY (kind, number)
);

CREATE UNIQUE INDEX id_registry_live ON id_registry (kind, id) WHERE retired_at IS NULL;
CREATE INDEX id_registry_retired ON id_registry (kind, id, retired_at) WHERE retired_at IS NOT NULL;

-- No lock but the row exclusive one that every insert takes: a creator whose
-- transaction is open holds up no other. An import excludes all creators by
-- locking the table, which this statement meets before it draws a number.
CREATE FUNCTION id_registry_allocate() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO id_registry (kind, number, id)
    SELECT TG_ARGV[0], nextval(('id_registry_' || TG_ARGV[0])::regclass), created.id
    FROM (SELECT id FROM inserted ORDER BY created_at, id) AS created;
    RETURN NULL;
END $$;

-- The lock comes first, so that a deletion which waited for an import sees the
-- numbers that the import gave.
CREATE FUNCTION id_registry_retire() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    LOCK TABLE id_registry IN ROW EXCLUSIVE MODE;
    IF TG_OP = 'TRUNCATE' THEN
        UPDATE id_registry SET retired_at = clock_timestamp()
        WHERE kind = TG_ARGV[0] AND retired_at IS NULL;
    ELSE
        UPDATE id_registry AS r SET retired_at = clock_timestamp()
        FROM deleted
        WHERE r.kind = TG_ARGV[0] AND r.id = deleted.id AND r.retired_at IS NULL;
    END IF;
    IF FOUND THEN
        NOTIFY id_registry;
    END IF;
    RETURN NULL;
END $$;

-- Triggers first: they lock the table against writers until this transaction
-- ends, so that no object slips in between them and the numbering of those
-- that are there already.
DO $$
DECLARE
    kind text;
    objects text;
BEGIN
    FOR kind, objects IN VALUES
        ('client', 'clients'), ('collection', 'collections'), ('policy', 'policies'),
        ('template', 'phishing_templates'), ('group', 'groups'), ('report', 'reports')
    LOOP
        EXECUTE format('CREATE SEQUENCE %I AS integer OWNED BY id_registry.number', 'id_registry_' || kind);
        EXECUTE format('CREATE TRIGGER id_registry_allocate AFTER INSERT ON %I
            REFERENCING NEW TABLE AS inserted
            FOR EACH STATEMENT EXECUTE FUNCTION id_registry_allocate(%L)', objects, kind);
        EXECUTE format('CREATE TRIGGER id_registry_retire AFTER DELETE ON %I
            REFERENCING OLD TABLE AS deleted
            FOR EACH STATEMENT EXECUTE FUNCTION id_registry_retire(%L)', objects, kind);
        EXECUTE format('CREATE TRIGGER id_registry_truncate AFTER TRUNCATE ON %I
            FOR EACH STATEMENT EXECUTE FUNCTION id_registry_retire(%L)', objects, kind);
        EXECUTE format('INSERT INTO id_registry (kind, number, id)
            SELECT %L, nextval(%L::regclass), present.id
            FROM (SELECT id FROM %I ORDER BY created_at, id) AS present',
            kind, 'id_registry_' || kind, objects);
    END LOOP;
END $$;
