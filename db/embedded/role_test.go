package embedded

import (
	"os"
	"testing"
)

// old makes a folder as it was before there was a role: everything belongs to the
// superuser, who has all kinds of objects.
func old(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	s := begin(t, Config{Dir: dir})
	query(t, s.AdminURL(),
		"CREATE TYPE state AS ENUM ('on', 'off')", "CREATE DOMAIN short AS text CHECK (length(value) < 9)",
		"CREATE TABLE kept (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, n serial, v short, s state)",
		"INSERT INTO kept (v, s) VALUES ('row', 'on')",
		"CREATE SEQUENCE numbers", "CREATE VIEW shown AS SELECT v FROM kept", "CREATE TYPE pair AS (a integer, b integer)",
		"CREATE FUNCTION twice(integer) RETURNS integer LANGUAGE sql AS 'SELECT 2 * $1'",
		"CREATE SCHEMA apart", `CREATE TABLE apart."Quoted" (v text)`, "CREATE TABLE parted (day date) PARTITION BY RANGE (day)",
		"ALTER DATABASE partnerapi OWNER TO partnerapi")
	query(t, s.maintenance, "DROP ROLE "+role)
	end(t, s)
	if err := os.Remove(folder(dir).rolePasswordFile()); err != nil {
		t.Fatal(err)
	}
	return dir
}

// owned fails where the role does not own all of the database, or cannot use it.
func owned(t *testing.T, s *Server) {
	t.Helper()
	if left, err := queryColumn(t.Context(), s.AdminURL(), ownerStatements); err != nil || len(left) != 0 {
		t.Errorf("left to the superuser: %v, %v", left, err)
	}
	query(t, s.URL(), "INSERT INTO kept (v, s) VALUES ('more', 'off')", "ALTER TABLE kept ADD COLUMN w text",
		"ALTER TABLE kept DROP COLUMN w", "CREATE TABLE new (v text)", "DROP TABLE new", `DROP TABLE IF EXISTS apart."Quoted"`,
		"SELECT nextval('numbers')", "CREATE OR REPLACE FUNCTION twice(integer) RETURNS integer LANGUAGE sql AS 'SELECT $1 + $1'")
	if got := query(t, s.URL(), "SELECT rolsuper::text FROM pg_roles WHERE rolname = current_user"); got != "false" {
		t.Error("the role is a superuser")
	}
}

// reachesNothing fails where the role gets at files, programs or more rights.
func reachesNothing(t *testing.T, s *Server) {
	t.Helper()
	for _, statement := range []string{
		"CREATE TABLE got (line text); COPY got FROM PROGRAM 'id'", "COPY (SELECT 1) TO PROGRAM 'cat'",
		"SELECT pg_read_file('PG_VERSION')", "CREATE TABLE got (line text); COPY got FROM '/etc/passwd'",
		"SET ROLE " + name, "ALTER ROLE " + role + " SUPERUSER", "ALTER SYSTEM SET port = 1", "CREATE ROLE other",
	} {
		_, err := queryColumn(t.Context(), s.URL(), statement)
		if !refusedAs(err, "42501") { // insufficient_privilege
			t.Errorf("%s: %v", statement, err)
		}
	}
}
