-- +goose Up
-- locks: policies, ACCESS EXCLUSIVE, a moment
-- locks: mail_requests, ACCESS EXCLUSIVE, a moment
-- contracts: programs of before 00024 no longer make the counts of policies stale (doctor --recount)
-- What moves a policy's counts, and published_at, is written by the service's
-- transactions themselves: counted_until = '-infinity' says that the counts are
-- stale.
DROP TRIGGER policies_uncounted ON policies;
DROP FUNCTION uncount_policy();

-- The user or the invite of a mail refers to the client too. 100,000 reminders
-- are checked against one table less.
ALTER TABLE mail_requests DROP CONSTRAINT mail_requests_client_id_fkey;
