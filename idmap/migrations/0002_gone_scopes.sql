-- locks: none
-- A policy shows the collection or group of its scope also when that is gone.
-- One that went before there was a registry never had a number: it gets a
-- tombstone, like those that went later.
INSERT INTO id_registry (kind, number, id, retired_at)
SELECT gone.kind, nextval(('id_registry_' || gone.kind)::regclass), gone.id, clock_timestamp()
FROM (
    SELECT DISTINCT CASE scope_type WHEN 'collection' THEN 'collection' ELSE 'group' END AS kind, scope_id AS id
    FROM policies WHERE scope_type IN ('collection', 'user_container')
) AS gone
WHERE NOT EXISTS (SELECT FROM id_registry AS r WHERE r.kind = gone.kind AND r.id = gone.id);
