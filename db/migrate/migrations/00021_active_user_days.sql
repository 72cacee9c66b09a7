-- +goose NO TRANSACTION
-- +goose Up
-- locks: clients, SHARE ROW EXCLUSIVE, a moment
-- locks: clients, SHARE UPDATE EXCLUSIVE, 4 s per million rows
--
-- The number of a client's active users by day, for bills. A trigger on clients writes the day's row, whatever changes
-- the number: a change to users, a recount, an import that archives the client, or a change by version 1.0 while it
-- runs alongside.
--
-- The file may be repeated: it has no transaction, because an index is built concurrently.

-- subject: Clients
CREATE TABLE IF NOT EXISTS active_user_days (
    client_id         uuid NOT NULL REFERENCES clients ON DELETE CASCADE,
    day               date NOT NULL,
    active_users_max  integer NOT NULL,
    active_users_last integer NOT NULL,
    PRIMARY KEY (client_id, day)
);
COMMENT ON TABLE active_user_days IS
    'Number of a client''s active users by day (UTC), for bills: 0 while the client is archived. A day without a row repeats the last value of the row before it. A trigger on clients writes the row of the current day and never changes a row of an earlier day.';
COMMENT ON COLUMN active_user_days.active_users_max IS 'Highest number of the day. On days before this table existed, it equals the last number, except on the day on which the client was archived.';

-- The day is that of the change, whose time is updated_at, in UTC. Changes of a client wait for each other, and
-- updated_at does not go back, so the row that is written is the client's latest. Only a clock that was far ahead leaves
-- updated_at, and rows, more than 15 minutes ahead of the clock of the transaction, partnerapi.clock (pg.DB.Stamp). The
-- day is then the clock's day, and the rows ahead are merged into its row.
-- +goose StatementBegin
CREATE OR REPLACE FUNCTION count_active_user_day() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    clock timestamptz := coalesce(nullif(current_setting('partnerapi.clock', true), '')::timestamptz, NEW.updated_at);
    changed_at timestamptz := CASE WHEN NEW.updated_at > clock + interval '15 minutes' THEN clock ELSE NEW.updated_at END;
    latest date := ((changed_at + interval '15 minutes') AT TIME ZONE 'UTC')::date;
    users_before integer := 0;
    users_now integer := CASE WHEN NEW.archived_at IS NULL THEN NEW.users_active ELSE 0 END;
BEGIN
    IF TG_OP = 'UPDATE' THEN
        users_before := CASE WHEN OLD.archived_at IS NULL THEN OLD.users_active ELSE 0 END;
        IF users_before = users_now THEN
            RETURN NULL;
        END IF;
    END IF;
    WITH ahead AS (
        DELETE FROM active_user_days WHERE client_id = NEW.id AND day > latest RETURNING active_users_max
    )
    INSERT INTO active_user_days AS d (client_id, day, active_users_max, active_users_last)
    VALUES (NEW.id,
        greatest((changed_at AT TIME ZONE 'UTC')::date, (SELECT max(day) FROM active_user_days WHERE client_id = NEW.id AND day <= latest)),
        greatest(users_before, users_now, (SELECT max(active_users_max) FROM ahead)), users_now)
    ON CONFLICT (client_id, day) DO UPDATE SET
        active_users_max = greatest(d.active_users_max, excluded.active_users_max), active_users_last = excluded.active_users_last;
    RETURN NULL;
END
$$;
-- +goose StatementEnd
COMMENT ON FUNCTION count_active_user_day IS 'Writes a row of active_user_days when the number of active users of a client changes.';
CREATE OR REPLACE TRIGGER clients_count_active_users AFTER INSERT OR UPDATE OF users_active, archived_at ON clients
    FOR EACH ROW EXECUTE FUNCTION count_active_user_day();

-- From now on, the trigger writes rows. Insert each client's row for today first, so that earlier days cannot change its
-- number. A row that the trigger has written meanwhile is correct.
INSERT INTO active_user_days (client_id, day, active_users_max, active_users_last)
SELECT id, (now() AT TIME ZONE 'UTC')::date, users_active, users_active FROM clients WHERE archived_at IS NULL
ON CONFLICT DO NOTHING;

-- Then insert the days that 1.0 counted, if the number differs from the day before, and the days on which clients
-- were archived.
INSERT INTO active_user_days (client_id, day, active_users_max, active_users_last)
SELECT client_id, day, active_users, active_users
FROM (
    SELECT h.client_id, h.day, h.active_users, lag(h.active_users) OVER (PARTITION BY h.client_id ORDER BY h.day) AS users_before
    FROM risk_history AS h JOIN clients AS c ON c.id = h.client_id
    WHERE h.active_users IS NOT NULL AND h.day < (coalesce(c.archived_at, now()) AT TIME ZONE 'UTC')::date
) AS h
WHERE active_users IS DISTINCT FROM users_before
ON CONFLICT DO NOTHING;

INSERT INTO active_user_days (client_id, day, active_users_max, active_users_last)
SELECT c.id, (c.archived_at AT TIME ZONE 'UTC')::date, coalesce((
    SELECT h.active_users FROM risk_history AS h
    WHERE h.client_id = c.id AND h.active_users IS NOT NULL AND h.day <= (c.archived_at AT TIME ZONE 'UTC')::date
    ORDER BY h.day DESC LIMIT 1), c.users_active), 0
FROM clients AS c WHERE c.archived_at IS NOT NULL
ON CONFLICT DO NOTHING;

SET lock_timeout = 0;

DROP INDEX CONCURRENTLY IF EXISTS clients_by_creation;
CREATE INDEX CONCURRENTLY clients_by_creation ON clients (partner_id, created_at, id);
COMMENT ON INDEX clients_by_creation IS 'The usage list, including archived clients, oldest first.';
