// Package doctor finds out what an operator should know of an installation, by a function for each fact: the server, its
// clock, settings and connections, the tables and the rights on them, disks, keys, email addresses and waiting work. The
// command doctor, /readyz, the start of a process and the metrics present each fact in their own way. The package also
// recounts stored counts.
package doctor

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"partnerapi/db"
	"partnerapi/db/pg"
)

// MinServer is the server_version_num of the oldest supported version of PostgreSQL.
const MinServer = 140_000

// Server describes the database's server.
type Server struct {
	// Version is the server_version_num, such as 140005 for 14.5, and VersionText the server_version.
	Version     int
	VersionText string
	Encoding    string
	// Empty is true if the role's schema has no tables.
	Empty bool
	// CreatesTables is true if the role may create tables in its schema.
	CreatesTables bool
}

// ReadServer reads the description of the server. It reads no table of the service, so
// that it works before the first migration.
func ReadServer(ctx context.Context, d *db.DB) (Server, error) {
	return pg.One[Server](ctx, d, "read the server's version", pg.SQL(`
		SELECT current_setting('server_version_num')::int AS version, current_setting('server_version') AS version_text,
			current_setting('server_encoding') AS encoding,
			NOT EXISTS (SELECT FROM pg_class WHERE relnamespace = current_schema()::regnamespace AND relkind IN ('r', 'p')) AS empty,
			coalesce(has_schema_privilege(current_schema(), 'CREATE'), false) AS creates_tables`))
}

// Role describes the rights of the service's role in the database.
type Role struct {
	Name string
	// Superuser is true if the server does not check the role's rights.
	Superuser bool
	// ReadOnly is true if writes are impossible: the server is a standby, or transactions are read-only by default.
	ReadOnly bool
	// Schema is the schema of the tables.
	Schema string
	// Denied lists the tables and sequences, separated by commas, on which the role lacks
	// a right that the service or one of its commands needs; empty for none.
	Denied string
}

// Grants returns the statements that give the role the rights that it needs on the tables and sequences. Their owner
// runs them.
func (r Role) Grants() string {
	schema, role := pgx.Identifier{r.Schema}.Sanitize(), pgx.Identifier{r.Name}.Sanitize()
	return "GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA " + schema + " TO " + role +
		"; GRANT USAGE, UPDATE ON ALL SEQUENCES IN SCHEMA " + schema + " TO " + role
}

// ReadRole reads the rights of the connected role on the tables and sequences of its
// schema. It reads no table of the service.
func ReadRole(ctx context.Context, d *db.DB) (Role, error) {
	return pg.One[Role](ctx, d, "read the role's rights", pg.SQL(`
		SELECT current_user::text AS name, (SELECT rolsuper FROM pg_roles WHERE rolname = current_user) AS superuser,
			pg_is_in_recovery() OR current_setting('default_transaction_read_only') = 'on' AS read_only,
			coalesce(current_schema(), 'public') AS schema,
			coalesce((
				SELECT string_agg(relname, ', ' ORDER BY relname) FROM pg_class
				WHERE relnamespace = current_schema()::regnamespace AND CASE
					WHEN relkind = 'S' THEN NOT (has_sequence_privilege(oid, 'USAGE') AND has_sequence_privilege(oid, 'UPDATE'))
					WHEN relkind IN ('r', 'p') THEN NOT (has_table_privilege(oid, 'SELECT') AND has_table_privilege(oid, 'INSERT')
						AND has_table_privilege(oid, 'UPDATE') AND has_table_privilege(oid, 'DELETE'))
					ELSE false END
			), '') AS denied`))
}

// Settings lists settings that may lose data or work, as name = value, separated by commas; empty for none.
type Settings struct {
	// Unsafe lists the settings with which a commit may be lost.
	Unsafe string
	// Timeouts lists the timeouts of statements, locks, transactions and sessions that are set.
	Timeouts string
}

// ReadSettings reads the settings of the current session with which data may be lost, and the timeouts that end work.
func ReadSettings(ctx context.Context, d *db.DB) (Settings, error) {
	return pg.One[Settings](ctx, d, "read the server's settings", pg.SQL(`
		SELECT coalesce(string_agg(said, ', ' ORDER BY name) FILTER (WHERE
				name IN ('fsync', 'full_page_writes', 'synchronous_commit') AND setting = 'off'
				OR name = 'synchronous_commit' AND setting = 'local' AND current_setting('synchronous_standby_names') <> ''), '') AS unsafe,
			coalesce(string_agg(said, ', ' ORDER BY name) FILTER (WHERE setting <> '0' AND name IN ('statement_timeout', 'lock_timeout',
				'transaction_timeout', 'idle_in_transaction_session_timeout', 'idle_session_timeout')), '') AS timeouts
		FROM (SELECT name, setting, name || ' = ' || current_setting(name) AS said FROM pg_settings) AS all_settings`))
}

// Skew is the difference between two clocks.
type Skew struct {
	// Ahead is how far the server's clock is ahead of this machine's, negative if it is behind.
	Ahead time.Duration
	// Doubt is the greatest error of Ahead: half the duration of the query.
	Doubt time.Duration
}

// ReadSkew compares the server's clock with this machine's.
func ReadSkew(ctx context.Context, d *db.DB) (Skew, error) {
	start := time.Now()
	server, err := pg.One[time.Time](ctx, d, "read the server's clock", pg.SQL("SELECT clock_timestamp()"))
	doubt := time.Since(start) / 2
	return Skew{server.Sub(start.Add(doubt)), doubt}, err
}

// ReadDay compares the day that the clock shows with the last daily refresh.
func ReadDay(ctx context.Context, d *db.DB) (db.ClockState, error) { return d.ReadClock(ctx) }

// Connections are numbers of connections of the server.
type Connections struct {
	// Needed is the number that a process may open.
	Needed int `bun:"-"`
	// Allowed is the greatest number that server, role and database allow. Used is the
	// number of open connections of all clients, without the current one.
	Allowed, Used int
}

// TooFew reports whether the server does not allow as many connections as are needed.
func (c Connections) TooFew() bool { return c.Needed > c.Allowed }

// Scarce reports whether others leave fewer connections than are needed.
func (c Connections) Scarce() bool { return c.Used+c.Needed > c.Allowed }

// ReadConnections reads the number of allowed and used connections, for a process that may open needed ones.
func ReadConnections(ctx context.Context, d *db.DB, needed int) (Connections, error) {
	c, err := pg.One[Connections](ctx, d, "read how many connections the database allows", pg.SQL(`
		SELECT least(
			current_setting('max_connections')::int - current_setting('superuser_reserved_connections')::int
				- coalesce(current_setting('reserved_connections', true)::int, 0),
			(SELECT nullif(rolconnlimit, -1) FROM pg_roles WHERE rolname = current_user),
			(SELECT nullif(datconnlimit, -1) FROM pg_database WHERE datname = current_database())) AS allowed,
			(SELECT count(*)::int FROM pg_stat_activity
				WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()) AS used`))
	c.Needed = needed
	return c, err
}
