-- locks: v1_state, ACCESS EXCLUSIVE, a moment
-- locks: api_keys, SHARE ROW EXCLUSIVE, a moment
-- Whether keys that are made from now on have no v1. A phase that was set for a partner or
-- for all is for the keys that there are: where one stands, or new keys have no v1, each new
-- key gets a phase of its own, which is newer. v1 that has ended is away for new keys too.
ALTER TABLE v1_state ADD COLUMN new_keys_off boolean NOT NULL DEFAULT false;

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
