package database

import (
	"errors"
	"strings"
	"testing"
)

// TestExplainDenied verifies that a missing privilege is explained by the role, the object and what to run.
func TestExplainDenied(t *testing.T) {
	t.Parallel()
	for message, want := range map[string]string{
		"permission denied for table api_keys":             `the role partnerapi_serve lacks a privilege on the table api_keys: as the owner of the tables, run GRANT SELECT, INSERT, UPDATE, DELETE ON "api_keys" TO "partnerapi_serve"; or run`,
		"permission denied for sequence id_registry_group": `run GRANT USAGE, SELECT, UPDATE ON SEQUENCE "id_registry_group" TO "partnerapi_serve"`,
		`permission denied for schema public`:              `GRANT USAGE ON SCHEMA "public" TO`,
		"permission denied for function uuid_v7":           `GRANT EXECUTE ON FUNCTION "uuid_v7" TO`,
		"must be owner of table users":                     "does not own the table users: run the command as the owner of the tables",
		"permission refusée : table users":                 "the role partnerapi_serve lacks a privilege: cause; grant it, or run",
	} {
		err := explainDenied(message, "partnerapi_serve", errors.New("cause"))
		if !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "cause") {
			t.Errorf("%s: got %q, want %q", message, err, want)
		}
	}
	if other := errors.New("other"); ExplainDenied(nil, other) != other || ExplainDenied(nil, nil) != nil {
		t.Error("another error is changed")
	}
}
