-- +goose Up
-- locks: clients, ACCESS EXCLUSIVE, a moment
-- locks: collections, ACCESS EXCLUSIVE, a moment
-- locks: policies, ACCESS EXCLUSIVE, a moment
-- locks: phishing_templates, ACCESS EXCLUSIVE, a moment
-- locks: groups, ACCESS EXCLUSIVE, a moment
-- locks: reports, ACCESS EXCLUSIVE, a moment
-- locks: cell, ACCESS EXCLUSIVE, a moment
-- locks: api_keys, ACCESS EXCLUSIVE, a moment
-- contracts: version 1, which was ended before
-- Takes the registry out of a database, and what else was v1's: what the
-- migration that ends v1 does. The triggers go with their functions, the
-- sequences with the table. Without effect where there never was a registry.

DROP FUNCTION IF EXISTS id_registry_allocate() CASCADE;
DROP FUNCTION IF EXISTS id_registry_retire() CASCADE;
DROP FUNCTION IF EXISTS id_registry_scope() CASCADE;
DROP FUNCTION IF EXISTS id_registry_scope_owner() CASCADE;
DROP FUNCTION IF EXISTS id_registry_divide() CASCADE;
DROP FUNCTION IF EXISTS v1_new_keys() CASCADE;
DROP TABLE IF EXISTS id_registry;
DROP TABLE IF EXISTS v1_usage;
DROP TABLE IF EXISTS v1_usage_flushes;
DROP TABLE IF EXISTS v1_state, v1_phases, v1_brownouts, v1_rehearsals, v1_refusals, v1_postponements;
DROP TABLE IF EXISTS idmap_migrations;
DROP INDEX IF EXISTS reports_id_unique;
