-- +goose Up
-- locks: clients, ACCESS EXCLUSIVE, 20 s per million rows
-- locks: users, ACCESS EXCLUSIVE, 2 s per million rows
-- contracts: programs of before 00022 no longer count the clients of partners (doctor --recount)
-- A partner's client_count moves in the change that adds or archives a client,
-- as all other counters do.
DROP TRIGGER clients_counted ON clients;
DROP FUNCTION count_client();

-- What a client's risk is made of, stored with its summary so that both are of
-- one moment: the active users by role and grade, with the sum of their scores,
-- and by factor, in the order of the model's list, what it adds up to and for how
-- many users it is not 0.
CREATE TABLE client_risks (
    client_id     uuid PRIMARY KEY REFERENCES clients,
    grades        jsonb NOT NULL,
    factor_totals integer[] NOT NULL,
    factor_users  integer[] NOT NULL
) WITH (fillfactor = 50);

-- A read that finds a stale summary sets refresh_until: until then the summary
-- is refreshed in the background, before it is stale.
ALTER TABLE clients ADD COLUMN refresh_until timestamptz NOT NULL DEFAULT '-infinity';

-- The next read of a client stores what its risk is made of.
UPDATE clients SET summarized_at = summarized_at - interval '1 day';

-- What a summary is made of, without a look at the table of users.
DROP INDEX users_for_summary;
CREATE INDEX users_for_summary ON users (client_id, score) INCLUDE (next_due_on, role) WHERE status = 'active';
