-- Takes the registry out of a database, whole: what the migration that ends v1
-- does. The triggers go with their functions, the sequences with the table.
-- Without effect where there never was a registry.

DROP FUNCTION IF EXISTS id_registry_allocate() CASCADE;
DROP FUNCTION IF EXISTS id_registry_retire() CASCADE;
DROP TABLE IF EXISTS id_registry;
DROP TABLE IF EXISTS idmap_migrations;
DROP INDEX IF EXISTS collections_id_unique, groups_id_unique, reports_id_unique;
