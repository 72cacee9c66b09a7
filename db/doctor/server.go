package doctor

import (
	"context"
	"time"

	"partnerapi/db"
	"partnerapi/db/pg"
)

// MinServer is the oldest PostgreSQL that the service runs on, as the server's
// server_version_num says it.
const MinServer = 140_000

// Server is what an operator may have to mend at the database's server.
type Server struct {
	// Version is as 140005 for 14.5; VersionText is the server's own text.
	Version     int
	VersionText string
	Encoding    string
	// CreatesTables says that the role may make tables in its schema.
	CreatesTables bool
}

// ReadServer asks the server what it is. It reads no table of the service, so that it
// works before the first migration.
func ReadServer(ctx context.Context, d *db.DB) (Server, error) {
	return pg.One[Server](ctx, d, "read the server's version", pg.SQL(`
		SELECT current_setting('server_version_num')::int AS version, current_setting('server_version') AS version_text,
			current_setting('server_encoding') AS encoding,
			coalesce(has_schema_privilege(current_schema(), 'CREATE'), false) AS creates_tables`))
}

// Role is what the database lets the service's role do.
type Role struct {
	Name string
	// Superuser says that the server checks no right of the role.
	Superuser bool
	// ReadOnly says that nothing can be written: the server is a standby, or transactions
	// are read-only by default.
	ReadOnly bool
	// Denied are the tables and sequences on which the role lacks a right that serving
	// needs, separated by commas; empty if there are none.
	Denied string
}

// ReadRole asks for the rights of the connected role on the tables of its schema. It reads
// no table of the service.
func ReadRole(ctx context.Context, d *db.DB) (Role, error) {
	return pg.One[Role](ctx, d, "read the role's rights", pg.SQL(`
		SELECT current_user::text AS name, (SELECT rolsuper FROM pg_roles WHERE rolname = current_user) AS superuser,
			pg_is_in_recovery() OR current_setting('default_transaction_read_only') = 'on' AS read_only,
			coalesce((
				SELECT string_agg(relname, ', ' ORDER BY relname) FROM pg_class
				WHERE relnamespace = current_schema()::regnamespace AND CASE relkind
					WHEN 'S' THEN NOT has_sequence_privilege(oid, 'USAGE')
					WHEN 'r' THEN NOT (has_table_privilege(oid, 'SELECT') AND has_table_privilege(oid, 'INSERT')
						AND has_table_privilege(oid, 'UPDATE') AND has_table_privilege(oid, 'DELETE'))
					ELSE false END
			), '') AS denied`))
}

// Settings are those of the server and the role that lose data or work.
type Settings struct {
	// Unsafe are the settings with which a commit may be lost, as name = value; empty for
	// none.
	Unsafe string
	// Timeouts are those that end statements, transactions or sessions, in the same form.
	Timeouts string
}

// ReadSettings reads the settings of the role's sessions.
func ReadSettings(ctx context.Context, d *db.DB) (Settings, error) {
	return pg.One[Settings](ctx, d, "read the server's settings", pg.SQL(`
		SELECT coalesce(string_agg(said, ', ' ORDER BY name) FILTER (WHERE
				name IN ('fsync', 'full_page_writes', 'synchronous_commit') AND setting = 'off'
				OR name = 'synchronous_commit' AND setting = 'local' AND current_setting('synchronous_standby_names') <> ''), '') AS unsafe,
			coalesce(string_agg(said, ', ' ORDER BY name) FILTER (WHERE setting <> '0' AND name IN ('statement_timeout', 'lock_timeout',
				'transaction_timeout', 'idle_in_transaction_session_timeout', 'idle_session_timeout')), '') AS timeouts
		FROM (SELECT name, setting, name || ' = ' || current_setting(name) AS said FROM pg_settings) AS all_settings`))
}

// ClockAhead is how far the server's clock is ahead of this machine's, and how far
// the real difference may be from that: half the time that the answer took.
func ClockAhead(ctx context.Context, d *db.DB) (ahead, doubt time.Duration, err error) {
	asked := time.Now()
	server, err := pg.One[time.Time](ctx, d, "read the server's clock", pg.SQL("SELECT clock_timestamp()"))
	if err != nil {
		return 0, 0, err
	}
	doubt = time.Since(asked) / 2
	return server.Sub(asked.Add(doubt)), doubt, nil
}

// Connections is how many connections the server leaves to this role and database.
type Connections struct {
	// Allowed is the maximum number, Used the number of others that are open.
	Allowed, Used int
}

// ReadConnections reads the limits of server, role and database.
func ReadConnections(ctx context.Context, d *db.DB) (Connections, error) {
	return pg.One[Connections](ctx, d, "read how many connections the database allows", pg.SQL(`
		SELECT least(
			current_setting('max_connections')::int - current_setting('superuser_reserved_connections')::int
				- coalesce(current_setting('reserved_connections', true)::int, 0),
			(SELECT nullif(rolconnlimit, -1) FROM pg_roles WHERE rolname = current_user),
			(SELECT nullif(datconnlimit, -1) FROM pg_database WHERE datname = current_database())) AS allowed,
			(SELECT count(*)::int FROM pg_stat_activity
				WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()) AS used`))
}

// Backlog is work that should have been done.
type Backlog struct {
	// What names the work, in the words of the documents.
	What string
	// Count is how much there is, up to backlogCap.
	Count int
	// Since is when the oldest was due.
	Since time.Time
}

// backlogCap bounds how many rows of a backlog are counted.
const backlogCap = 10_000

// late are the rows of each kind of work with the moment that it was due at. A row
// that is leased is due when its lease ends.
var late = []struct{ what, rows string }{
	{"events to publish", "SELECT recorded_at AS due FROM events"},
	{"mails to send", "SELECT due_at AS due FROM outbox"},
	{"webhook deliveries", "SELECT due_at AS due FROM webhook_deliveries WHERE status = 'waiting'"},
	{"courses to assign", "SELECT asked_at AS due FROM waiting_assignments"},
	{"directory syncs", "SELECT coalesce(leased_until, queued_at) AS due FROM sync_runs WHERE status IN ('queued', 'running')"},
	{"jobs", `SELECT coalesce(due_at, created_at) AS due FROM reports WHERE status = 'pending'
		UNION ALL SELECT due_at FROM periodic_jobs`},
}

// Backlogs returns the work that was due before a moment and is not done, one Backlog
// for each kind with any. The tables must be those of this version.
func Backlogs(ctx context.Context, d *db.DB, before time.Time) ([]Backlog, error) {
	var found []Backlog
	for _, kind := range late {
		one, err := pg.One[Backlog](ctx, d, "look for "+kind.what+" that are late", pg.SQL(
			"SELECT ?0::text AS what, count(*)::int AS count, coalesce(min(due), ?1::timestamptz) AS since FROM (SELECT due FROM ("+
				kind.rows+") AS w WHERE due < ?1::timestamptz ORDER BY due LIMIT ?2) AS late", kind.what, before, backlogCap))
		if err != nil {
			return nil, err
		}
		if one.Count > 0 {
			found = append(found, one)
		}
	}
	return found, nil
}
