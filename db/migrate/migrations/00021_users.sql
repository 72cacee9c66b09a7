-- +goose Up
-- locks: users, ACCESS EXCLUSIVE, 3 s per million rows
-- locks: daily_refreshes, ROW EXCLUSIVE, a moment
-- What a search of users looks at stands in the index of the list: it reads no
-- rows but those that it shows.
DROP INDEX users_by_created;
CREATE INDEX users_by_created ON users (client_id, created_at, id) INCLUDE (name_key, email, status, score);

-- The risk model has changed: the refresh that is next restates all scores.
DELETE FROM daily_refreshes WHERE day = (SELECT max(day) FROM daily_refreshes);
