package dbtest

import (
	"strings"
	"testing"
)

func TestMigrationFaults(t *testing.T) {
	t.Parallel()
	const noTx = "-- +goose NO TRANSACTION\n-- +goose Up\n"
	for _, test := range []struct{ text, fault string }{
		{"CREATE TABLE a (id uuid); CREATE INDEX i ON a (id); UPDATE a SET id = NULL; ALTER TABLE a ALTER COLUMN id TYPE text;", ""},
		{"ALTER TABLE users ADD COLUMN a text, ADD COLUMN b integer NOT NULL DEFAULT 0;", ""},
		{"ALTER TABLE users ADD CONSTRAINT c CHECK (score > 0) NOT VALID;", ""},
		{"ALTER TABLE users VALIDATE CONSTRAINT c; -- UPDATE users SET a = 1;", ""},
		{"INSERT INTO recounts VALUES ('a; UPDATE users SET x = 1', now());", ""},
		{"CREATE FUNCTION f() RETURNS trigger AS $$ BEGIN UPDATE users SET a = 1; END $$;", ""},
		{noTx + "SET lock_timeout = 0; DROP INDEX CONCURRENTLY IF EXISTS i; CREATE INDEX CONCURRENTLY i ON users (a);", ""},
		{"CREATE INDEX i ON users (a);", "CREATE INDEX CONCURRENTLY"},
		{"CREATE UNIQUE INDEX CONCURRENTLY i ON users (a);", "NO TRANSACTION"},
		{noTx + "SET lock_timeout = 0; CREATE INDEX CONCURRENTLY i ON users (a);", "invalid index"},
		{noTx + "DROP INDEX CONCURRENTLY IF EXISTS i; CREATE INDEX CONCURRENTLY i ON users (a);", "SET lock_timeout = 0"},
		{noTx + "SET lock_timeout = 0; ALTER TABLE users ADD COLUMN a text;", "RESET lock_timeout"},
		{"DROP INDEX i;", "needs CONCURRENTLY"},
		{"ALTER TABLE users ADD CONSTRAINT c CHECK (score > 0);", "NOT VALID"},
		{"ALTER TABLE users ADD CONSTRAINT c CHECK (a > 0) NOT VALID; ALTER TABLE users VALIDATE CONSTRAINT c;", "later file"},
		{"ALTER TABLE users ADD COLUMN a uuid REFERENCES users;", "new column"},
		{"ALTER TABLE users ALTER COLUMN a TYPE bigint;", "write the table anew"},
		{"ALTER TABLE users ALTER a SET NOT NULL;", "IS NOT NULL"},
		{"ALTER TABLE users ADD COLUMN a timestamptz NOT NULL DEFAULT clock_timestamp();", "constant"},
		{"UPDATE users SET a = 1;", "batches"},
		{"WITH b AS (SELECT 1) DELETE FROM users;", "batches"},
		{"LOCK TABLE users;", "as that is large"},
		{"DO $$ BEGIN UPDATE users SET a = 1; END $$;", "not read here"},
		{"ALTER TABLE users DROP COLUMN a;", "contracts"},
		{"DROP TRIGGER t ON users;", "contracts"},
		{"ALTER TABLE users DROP CONSTRAINT c;", "contracts"},
		{"ALTER TABLE users DROP CONSTRAINT c; ALTER TABLE users ADD CONSTRAINT d CHECK (a IN (1, 2)) NOT VALID;", "contracts"},
		{"ALTER TABLE users DROP CONSTRAINT c; ALTER TABLE users ADD CONSTRAINT c CHECK (a IN (1, 2)) NOT VALID;", ""},
		{"ALTER TABLE clients ADD COLUMN a text;", "does not name clients"},
		{"CREATE TABLE a (c uuid REFERENCES clients);", "does not name clients"},
		{"CREATE TRIGGER t AFTER INSERT ON clients EXECUTE FUNCTION f();", "does not name clients"},
	} {
		faults := strings.Join(MigrationFaults(test.text, false, []string{"users"}), "\n")
		if (faults == "") != (test.fault == "") || !strings.Contains(faults, test.fault) {
			t.Errorf("%s: %q, not %q", test.text, faults, test.fault)
		}
	}
}
