package embedded

import (
	"context"
	"errors"
	"slices"

	"github.com/jackc/pgx/v5/pgconn"

	"partnerapi/domain"
)

const (
	// name is the name of both the superuser and the service's database.
	name = "partnerapi"
	// role is the role of the service's connections. It is no superuser, and owns the database and all objects in it.
	role = "partnerapi_app"
	// rights are the attributes of role.
	rights = " LOGIN NOSUPERUSER NOCREATEDB NOCREATEROLE NOREPLICATION NOBYPASSRLS"
	// ownerTries bounds the tries to change the owner of an object. Each waits up to a second for its lock.
	ownerTries = 60
)

// ownerStatements selects a statement for each object of the database that role does not own: it makes role the owner.
// Objects of extensions are omitted.
const ownerStatements = `
	WITH objects AS (
		SELECT 'pg_namespace'::regclass AS class, oid, oid AS namespace, nspowner AS owner,
			'SCHEMA ' || quote_ident(nspname) AS object
		FROM pg_namespace WHERE nspowner <> 'pg_database_owner'::regrole
		UNION ALL
		SELECT 'pg_class'::regclass, oid, relnamespace, relowner, CASE relkind WHEN 'S' THEN 'SEQUENCE ' WHEN 'v' THEN 'VIEW '
			WHEN 'm' THEN 'MATERIALIZED VIEW ' WHEN 'c' THEN 'TYPE ' ELSE 'TABLE ' END || oid::regclass
		FROM pg_class AS c
		WHERE relkind IN ('r', 'p', 'v', 'm', 'c') OR relkind = 'S' AND NOT EXISTS ( -- the owner of a column's sequence follows that of the table
			SELECT FROM pg_depend WHERE classid = 'pg_class'::regclass AND objid = c.oid AND deptype IN ('a', 'i'))
		UNION ALL
		SELECT 'pg_proc'::regclass, oid, pronamespace, proowner, 'ROUTINE ' || oid::regprocedure FROM pg_proc
		UNION ALL
		SELECT 'pg_type'::regclass, oid, typnamespace, typowner, CASE typtype WHEN 'd' THEN 'DOMAIN ' ELSE 'TYPE ' END || oid::regtype
		FROM pg_type WHERE typtype IN ('d', 'e', 'r')
	)
	SELECT 'ALTER ' || object || ' OWNER TO ` + role + `' FROM objects AS o JOIN pg_namespace AS n ON n.oid = o.namespace
	WHERE nspname !~ '^pg_' AND nspname <> 'information_schema' AND owner IS DISTINCT FROM to_regrole('` + role + `')
		AND NOT EXISTS (SELECT FROM pg_depend WHERE classid = class AND objid = o.oid AND deptype = 'e')`

// ensureDatabase creates the database and its role if they are missing, and makes the role the owner of objects that it
// does not own, such as those that the superuser restored. Each step is committed separately: the next start resumes
// after an interruption.
func (s *Server) ensureDatabase(ctx context.Context) error {
	statements, err := queryColumn(ctx, s.url, ownerStatements)
	switch {
	case err == nil && len(statements) == 0: // the role owns all objects
		return nil
	case refusedAs(err, "53300"): // too_many_connections; the caller gets the same error from its own connection
		return nil
	case err != nil && !refusedAs(err, "3D000", "28P01", "28000"): // not for the lack of database, role or password
		return err
	}

	if err := s.ensureRole(ctx); err != nil {
		return err
	}
	if statements, err = queryColumn(ctx, s.admin, ownerStatements); err != nil {
		return err
	}
	for _, statement := range statements {
		if err := s.changeOwner(ctx, statement); err != nil {
			return err
		}
	}
	return nil
}

// ensureRole creates the role and its database or, if they exist, sets the role's rights and password and the owner.
func (s *Server) ensureRole(ctx context.Context) error {
	existing, err := queryColumn(ctx, s.maintenance, "SELECT rolname FROM pg_roles WHERE rolname = '"+role+"'")
	if err != nil {
		return err
	}
	verb := "CREATE"
	if len(existing) > 0 {
		verb = "ALTER"
	}
	if _, err := queryColumn(ctx, s.maintenance, verb+" ROLE "+role+rights+" PASSWORD '"+s.password+"'"); err != nil {
		return err
	}

	existing, err = queryColumn(ctx, s.maintenance, "SELECT datname FROM pg_database WHERE datname = '"+name+"'")
	if err != nil {
		return err
	}
	statement := "CREATE DATABASE " + name + " OWNER " + role
	if len(existing) > 0 {
		statement = "ALTER DATABASE " + name + " OWNER TO " + role
	}
	_, err = queryColumn(ctx, s.maintenance, statement)
	return err
}

// changeOwner runs a statement that locks a table exclusively for a moment. Other processes may be using the table, and
// wait behind a waiting exclusive lock. So each of up to ownerTries tries waits at most a second for the lock.
func (s *Server) changeOwner(ctx context.Context, statement string) (err error) {
	for range ownerTries {
		_, err = queryColumn(ctx, s.admin, "SET lock_timeout = '1s'", statement)
		if !refusedAs(err, "55P03", "40P01") { // lock_not_available, deadlock_detected
			return err
		}
		if err := domain.Pause(ctx, tick); err != nil {
			return err
		}
	}
	return err
}

// queryColumn runs statements on a new connection, and returns the first column of the last one's rows.
func queryColumn(ctx context.Context, url string, statements ...string) (texts []string, err error) {
	conn, err := pgconn.Connect(ctx, url)
	if err != nil {
		return nil, err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	for _, sql := range statements {
		results, err := conn.Exec(ctx, sql).ReadAll()
		if err != nil {
			return nil, err // without the statement, which may hold the password
		}
		texts = nil
		for _, result := range results {
			for _, row := range result.Rows {
				texts = append(texts, string(row[0]))
			}
		}
	}
	return texts, nil
}

// refusedAs reports whether err is an error of the server with one of the SQLSTATE codes.
func refusedAs(err error, codes ...string) bool {
	refusal, ok := errors.AsType[*pgconn.PgError](err)
	return ok && slices.Contains(codes, refusal.Code)
}
