-- +goose Up
-- locks: none
-- Stored counts that a process of the release before may have missed, by their names
-- in the program; they are recounted until then, and once after that.
CREATE TABLE recounts (
    counter text COLLATE "C" PRIMARY KEY,
    until   timestamptz NOT NULL
);
-- Those of an installation that was upgraded while it served: earlier releases moved
-- who keeps them.
INSERT INTO recounts SELECT counter, now() + interval '1 day' FROM unnest(ARRAY['clients of partners', 'users of clients',
    'frameworks of clients', 'members of collections', 'phishing by day', 'uses of templates', 'sign-off of policies']) AS counter
WHERE EXISTS (SELECT FROM partners);
