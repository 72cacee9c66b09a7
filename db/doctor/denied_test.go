package doctor_test

import (
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"partnerapi/db/doctor"
)

// TestDenial verifies that a missing right is explained by the role, the object and what to run. Tables and sequences are
// for doctor, which names all of them with the right GRANT statements.
func TestDenial(t *testing.T) {
	t.Parallel()
	for message, want := range map[string][2]string{
		"permission denied for table schema_migrations":    {"the role partnerapi_serve lacks a right on the table schema_migrations", ""},
		"permission denied for sequence id_registry_group": {"the role partnerapi_serve lacks a right on the sequence id_registry_group", ""},
		"permission denied for schema public": {"the role partnerapi_serve lacks a right on the schema public",
			`as the owner of the tables, run GRANT USAGE ON SCHEMA "public" TO "partnerapi_serve"`},
		"permission denied for function uuid_v7": {"the role partnerapi_serve lacks a right on the function uuid_v7",
			`as the owner of the tables, run GRANT EXECUTE ON FUNCTION "uuid_v7" TO "partnerapi_serve"`},
		"must be owner of table users":     {"the role partnerapi_serve does not own the table users", "run the command as the owner of the tables (--database-url)"},
		"permission refusée : table users": {"the role partnerapi_serve lacks a right", ""},
	} {
		refusal := &pgconn.PgError{Code: "42501", Message: message}
		if fault, remedy := doctor.Denial(refusal, "partnerapi_serve"); fault != want[0] || remedy != want[1] {
			t.Errorf("%s: got %q and %q, want %q", message, fault, remedy, want)
		}
	}
}
