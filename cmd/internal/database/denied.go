package database

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"partnerapi/db"
	"partnerapi/db/pg"
)

// deniedObject matches what PostgreSQL says of a missing privilege: "permission denied for table users". Another
// language of messages does not match.
var deniedObject = regexp.MustCompile(`^(permission denied for|must be owner of) (table|relation|view|sequence|schema|function|database) "?(.+?)"?$`)

// missingGrants are the GRANTs that give a role the service's privileges on an object (%[1]s), by its kind. %[2]s is the role.
var missingGrants = map[string]string{
	"table":    "GRANT SELECT, INSERT, UPDATE, DELETE ON %[1]s TO %[2]s",
	"relation": "GRANT SELECT, INSERT, UPDATE, DELETE ON %[1]s TO %[2]s",
	"view":     "GRANT SELECT ON %[1]s TO %[2]s",
	"sequence": "GRANT USAGE, SELECT, UPDATE ON SEQUENCE %[1]s TO %[2]s",
	"schema":   "GRANT USAGE ON SCHEMA %[1]s TO %[2]s",
	"function": "GRANT EXECUTE ON FUNCTION %[1]s TO %[2]s",
	"database": "GRANT CONNECT, TEMPORARY ON DATABASE %[1]s TO %[2]s",
}

// ExplainDenied returns an error for operators if err is that of a statement for which the role of d lacks a privilege:
// with the role, the object, and the command that grants it. It returns other errors unchanged.
func ExplainDenied(d *db.DB, err error) error {
	if !pg.Denied(err) {
		return err
	}
	refusal, _ := errors.AsType[*pgconn.PgError](err)
	return explainDenied(refusal.Message, d.Pool().Config().ConnConfig.User, err)
}

// explainDenied is ExplainDenied for the message of PostgreSQL and the name of a role.
func explainDenied(message, role string, err error) error {
	const orOwner = "or run the command as the owner of the tables (--database-url)"
	role = cmp.Or(role, "of --database-url")
	found := deniedObject.FindStringSubmatch(message)
	if found == nil {
		return fmt.Errorf("the role %s lacks a privilege: %w; grant it, %s", role, err, orOwner)
	}
	kind, object := found[2], found[3]
	if found[1] == "must be owner of" {
		return fmt.Errorf("the role %s does not own the %s %s: run the command as the owner of the tables (--database-url): %w",
			role, kind, object, err)
	}
	grant := fmt.Sprintf(missingGrants[kind], pgx.Identifier{object}.Sanitize(), pgx.Identifier{role}.Sanitize())
	return fmt.Errorf("the role %s lacks a privilege on the %s %s: as the owner of the tables, run %s; %s: %w",
		role, kind, object, grant, orOwner, err)
}
