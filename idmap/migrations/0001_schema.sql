-- locks: clients, SHARE ROW EXCLUSIVE, a moment
-- locks: collections, SHARE ROW EXCLUSIVE, a moment
-- locks: policies, SHARE ROW EXCLUSIVE, a moment
-- locks: phishing_templates, SHARE ROW EXCLUSIVE, a moment
-- locks: groups, SHARE ROW EXCLUSIVE, a moment
-- locks: reports, SHARE ROW EXCLUSIVE, a moment
-- locks: cell, SHARE ROW EXCLUSIVE, a moment
-- locks: api_keys, SHARE ROW EXCLUSIVE, a moment
-- What v1 keeps: its numbers, who calls it, and how far its retirement is. Nothing outside of idmap and v1compat knows
-- of these tables: numbers are given by triggers on the tables of the objects. drop.sql takes all of it away.

-- The numbers of objects.

CREATE TABLE id_registry (
    kind       text        COLLATE "C" NOT NULL,
    number     integer     NOT NULL CHECK (number > 0),
    id         uuid        NOT NULL,
    retired_at timestamptz,
    partner_id uuid,
    PRIMARY KEY (kind, number)
);
COMMENT ON TABLE id_registry IS 'Which number v1 shows for which object, one space of numbers per kind.';
COMMENT ON COLUMN id_registry.retired_at IS
    'Set once the number is a tombstone: its object was deleted, or moved to an imported number. The clock''s time and not the transaction''s, so that the last of an object''s tombstones is known. The epoch where v1 never showed the number for anything: an imported number may take its place.';
COMMENT ON COLUMN id_registry.partner_id IS
    'Of a tombstone, whose object it was: a partner that moves to another cell takes these numbers along. Null for numbers that are held, for templates, and for tombstones whose policy was not deleted yet.';
CREATE UNIQUE INDEX id_registry_live ON id_registry (kind, id) WHERE retired_at IS NULL;
COMMENT ON INDEX id_registry_live IS 'The number of an object.';
CREATE INDEX id_registry_retired ON id_registry (kind, id, retired_at) WHERE retired_at IS NOT NULL;
COMMENT ON INDEX id_registry_retired IS 'The last number of a deleted object, which others may still name.';

-- An exchange of ids finds objects by their ids alone. Of the kinds only reports have no index for that.
CREATE UNIQUE INDEX reports_id_unique ON reports (id);
COMMENT ON INDEX reports_id_unique IS 'Exchanges of v1''s numbers, which name a report by its id alone.';

-- No lock but the row exclusive one that every insert takes: a creator whose transaction is open holds up no other. An
-- import excludes all creators by locking the table, which this statement meets before it draws a number.
CREATE FUNCTION id_registry_allocate() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO id_registry (kind, number, id)
    SELECT TG_ARGV[0], nextval(('id_registry_' || TG_ARGV[0])::regclass), created.id
    FROM (SELECT id FROM inserted ORDER BY created_at, id) AS created;
    RETURN NULL;
END $$;

-- The lock comes first, so that a deletion which waited for an import sees the numbers that the import gave. Numbers that
-- v1 never showed are those of an object that was made and deleted in one transaction, and of a group that no policy was
-- for: an import of objects leaves both behind.
CREATE FUNCTION id_registry_retire() RETURNS trigger LANGUAGE plpgsql AS $$
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
    END LOOP;
END $$;

-- A policy may come whose scope is gone already, as an import brings it: then the collection or group never had a number,
-- and the policy shows one. It gets a tombstone.
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

-- The scope that a policy shows goes with the policy: a scope that was gone before keeps whose it was from then on.
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

-- Where there are several cells, each allocates the numbers of its own residue, from the moment on at which it is fixed
-- which cell the database is of. The first goes on above what it has allocated. The others begin above the highest number
-- that an import gives: what the first one gave when it was alone, and numbers from before the registry, are none that
-- they allocate, so that a partner can move with its numbers. A sequence begins (START) at a number of its residue, above
-- all that were allocated.
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

-- Who calls v1.

CREATE TABLE v1_usage (
    key_id      uuid        NOT NULL,
    day         date        NOT NULL,
    surface     text        COLLATE "C" NOT NULL CHECK (surface IN ('v1', 'v2')),
    operation   text        COLLATE "C" NOT NULL,
    calls       bigint      NOT NULL CHECK (calls > 0),
    failures    bigint      NOT NULL CHECK (failures BETWEEN 0 AND calls),
    first_at    timestamptz NOT NULL,
    last_at     timestamptz NOT NULL,
    user_agents text[]      COLLATE "C" NOT NULL CHECK (cardinality(user_agents) <= 5),
    PRIMARY KEY (key_id, day, surface, operation)
) WITH (fillfactor = 80);
COMMENT ON TABLE v1_usage IS
    'Which key called which operation of v1, and of v2 what follows one, per day. A key that is revoked or deleted leaves its rows. No index has a column that changes: the space that is left in pages keeps the versions of a row, which is updated many times a day, in its own.';
COMMENT ON COLUMN v1_usage.operation IS 'Method and path, as in GET /v1/clients/{client_id}/users.';
COMMENT ON COLUMN v1_usage.user_agents IS 'The first that were seen.';
CREATE INDEX v1_usage_day ON v1_usage (day);
COMMENT ON INDEX v1_usage_day IS 'The use within a time, and the deletion of old rows.';

CREATE TABLE v1_usage_flushes (
    replica    uuid        PRIMARY KEY,
    sequence   bigint      NOT NULL,
    flushed_at timestamptz NOT NULL
);
COMMENT ON TABLE v1_usage_flushes IS
    'The last flush of each process that counts, written in the statement that adds what was counted, so that a flush that is sent twice is added once.';

-- How far the retirement of v1 is. Each command that changes it locks the one row of v1_state first, so that commands
-- follow one another, and notifies the channel v1_retirement, to which the processes that serve v1 listen.

CREATE TABLE v1_state (
    one            boolean PRIMARY KEY DEFAULT true CHECK (one),
    announced_at   timestamptz,
    sunset_at      timestamptz,
    ended_at       timestamptz,
    new_keys_off   boolean NOT NULL DEFAULT false,
    served_release text,
    CHECK ((announced_at IS NULL) = (sunset_at IS NULL))
);
COMMENT ON TABLE v1_state IS 'The state of v1 as a whole, in one row.';
COMMENT ON COLUMN v1_state.announced_at IS 'When the end of v1 was announced; sunset_at is when it comes. Null while nothing is announced.';
COMMENT ON COLUMN v1_state.ended_at IS 'When v1 was ended.';
COMMENT ON COLUMN v1_state.new_keys_off IS 'Whether keys that are made from now on have no v1.';
COMMENT ON COLUMN v1_state.served_release IS 'The release of v2 that a process which serves v1 had last.';
INSERT INTO v1_state DEFAULT VALUES;

CREATE TABLE v1_phases (
    id         bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    key_id     uuid,
    partner_id uuid,
    phase      text COLLATE "C" NOT NULL CHECK (phase IN ('on', 'read_only', 'brownout', 'off')),
    until      timestamptz,
    set_at     timestamptz NOT NULL,
    CHECK (key_id IS NULL OR partner_id IS NULL)
);
COMMENT ON TABLE v1_phases IS
    'The phases that were set, for a key, for a partner''s keys, or for all. The newest row of a key that is not over is its phase.';

CREATE TABLE v1_brownouts (
    id            bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    start_at      timestamptz NOT NULL,
    for_seconds   integer NOT NULL CHECK (for_seconds > 0),
    every_seconds integer NOT NULL CHECK (every_seconds >= 0),
    windows       integer NOT NULL CHECK (windows > 0),
    keys          uuid[]  NOT NULL DEFAULT '{}',
    ends_at       timestamptz NOT NULL
);
COMMENT ON TABLE v1_brownouts IS 'The brownouts: series of windows.';
COMMENT ON COLUMN v1_brownouts.keys IS 'Whom they are for; empty for all.';

CREATE TABLE v1_rehearsals (
    key_id     uuid        PRIMARY KEY,
    started_at timestamptz NOT NULL,
    ended_at   timestamptz NOT NULL CHECK (ended_at >= started_at)
);
COMMENT ON TABLE v1_rehearsals IS
    'The last rehearsal of each key that had one: from when to when it is answered by v1 as in phase off, by its own wish. It may end before it was to.';

-- A phase that was set for a partner or for all is for the keys that there are: where one stands, or new keys have no v1,
-- each new key gets a phase of its own, which is newer. v1 that has ended is away for new keys too.
CREATE FUNCTION v1_new_keys() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    state v1_state;
BEGIN
    SELECT * INTO state FROM v1_state FOR UPDATE;
    IF state.ended_at IS NOT NULL THEN
        RETURN NULL;
    END IF;
    INSERT INTO v1_phases (key_id, phase, set_at)
    SELECT id, CASE WHEN state.new_keys_off THEN 'off' ELSE 'on' END, clock_timestamp() FROM created
    WHERE state.new_keys_off OR EXISTS (
        SELECT FROM v1_phases AS p WHERE p.key_id IS NULL AND (p.partner_id IS NULL OR p.partner_id = created.partner_id));
    IF FOUND THEN
        NOTIFY v1_retirement;
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER v1_new_keys AFTER INSERT ON api_keys
    REFERENCING NEW TABLE AS created
    FOR EACH STATEMENT EXECUTE FUNCTION v1_new_keys();
