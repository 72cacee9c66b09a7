package doctor

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// deniedObject matches what PostgreSQL says of a missing privilege: "permission denied for table users". Another
// language of messages does not match.
var deniedObject = regexp.MustCompile(`^(permission denied for|must be owner of) (table|relation|view|sequence|schema|function|database) "?(.+?)"?$`)

// missingGrants are the GRANTs that give a role the service's privileges on an object (%[1]s), by its kind. %[2]s is the role.
// They are of the kinds whose rights doctor does not examine.
var missingGrants = map[string]string{
	"view":     "GRANT SELECT ON %[1]s TO %[2]s",
	"schema":   "GRANT USAGE ON SCHEMA %[1]s TO %[2]s",
	"function": "GRANT EXECUTE ON FUNCTION %[1]s TO %[2]s",
	"database": "GRANT CONNECT, TEMPORARY ON DATABASE %[1]s TO %[2]s",
}

// Denial explains the error of a statement for which a role lacks a right (pg.Denied): fault says which object it is, and
// remedy what to do. The remedy is empty if the grants that doctor prints for the role are it. An empty role is that of
// --database-url.
func Denial(err error, role string) (fault, remedy string) {
	name := "the role " + cmp.Or(role, "of --database-url")
	refusal, _ := errors.AsType[*pgconn.PgError](err)
	found := deniedObject.FindStringSubmatch(refusal.Message)
	if found == nil {
		return name + " lacks a right", ""
	}
	kind, object := found[2], found[3]
	if found[1] == "must be owner of" {
		return fmt.Sprintf("%s does not own the %s %s", name, kind, object), "run the command as the owner of the tables (--database-url)"
	}
	fault = fmt.Sprintf("%s lacks a right on the %s %s", name, kind, object)
	if grant, ok := missingGrants[kind]; ok {
		grantee := "the role"
		if role != "" {
			grantee = pgx.Identifier{role}.Sanitize()
		}
		remedy = "as the owner of the tables, run " + fmt.Sprintf(grant, pgx.Identifier{object}.Sanitize(), grantee)
	}
	return fault, remedy
}
