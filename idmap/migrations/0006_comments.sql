-- locks: id_registry, SHARE UPDATE EXCLUSIVE, a moment
-- locks: v1_usage, SHARE UPDATE EXCLUSIVE, a moment
-- locks: v1_usage_flushes, SHARE UPDATE EXCLUSIVE, a moment
-- locks: v1_state, SHARE UPDATE EXCLUSIVE, a moment
-- locks: v1_phases, SHARE UPDATE EXCLUSIVE, a moment
-- locks: v1_brownouts, SHARE UPDATE EXCLUSIVE, a moment
-- locks: v1_rehearsals, SHARE UPDATE EXCLUSIVE, a moment
-- locks: v1_refusals, SHARE UPDATE EXCLUSIVE, a moment
-- Rewords comments. Nothing else changes. The locks block no reads or writes.

COMMENT ON TABLE id_registry IS 'The numbers that v1 shows for objects. Each kind has its own series of numbers.';
COMMENT ON COLUMN id_registry.retired_at IS
    'Set when the number becomes a tombstone: its object was deleted, or was assigned an imported number instead. It is the clock''s time, not the transaction''s, so that the last of an object''s tombstones is known. The epoch if v1 never showed the number: an import can then assign it.';
COMMENT ON COLUMN id_registry.partner_id IS
    'For a tombstone, the partner that owned the object. The number moves with the partner to another cell. Null for live numbers, for templates, and for tombstones whose policy is not yet deleted.';
COMMENT ON INDEX id_registry_retired IS 'The last number of a deleted object, to which other objects can still refer.';
COMMENT ON INDEX reports_id_unique IS 'The exchange of v1''s numbers, which refers to a report by its ID alone.';
COMMENT ON TABLE v1_usage IS
    'Calls by API key and day, of v1''s operations and of the v2 operations that replace them. The rows of a revoked or deleted key are kept. No index contains a column that changes, and pages are not filled completely, so that the new versions of a frequently updated row stay on its page.';
COMMENT ON COLUMN v1_usage.surface IS
    'How the calls are counted: as calls of a version, or as calls of v1 by parity, which compares both versions.';
COMMENT ON COLUMN v1_usage.user_agents IS 'The first user agents, at most five.';
COMMENT ON INDEX v1_usage_day IS 'The usage in a period, and the deletion of old rows.';
COMMENT ON TABLE v1_usage_flushes IS
    'The last flush of each process that counts calls. It is written in the statement that adds the counts, so that a flush that is sent twice is added only once.';
COMMENT ON COLUMN v1_state.announced_at IS
    'When the end of v1 was announced. sunset_at is the announced time of the end. Null if no end is announced.';
COMMENT ON COLUMN v1_state.new_keys_off IS 'Whether v1 is off for new keys.';
COMMENT ON COLUMN v1_state.served_release IS 'The release of v2 that a process serving v1 last recorded.';
COMMENT ON TABLE v1_phases IS
    'Phases that were set for a key, for a partner''s keys, or for all keys. The phase of a key is its newest row that has not expired.';
COMMENT ON TABLE v1_brownouts IS 'Brownouts, which are series of windows.';
COMMENT ON COLUMN v1_brownouts.keys IS 'Keys to which the brownout applies. If empty, it applies to all.';
COMMENT ON TABLE v1_rehearsals IS
    'The last rehearsal of each key: the time for which v1 responds to the key as in the phase off, at the key''s request. A rehearsal can be ended early.';
COMMENT ON TABLE v1_refusals IS
    'Number of requests per day that returned 410 because of a phase or a brownout. The rows are kept when the phase or brownout is deleted.';
COMMENT ON COLUMN v1_refusals.id IS 'The row of v1_phases or v1_brownouts.';
