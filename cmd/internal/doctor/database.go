package doctor

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"time"

	"partnerapi/cmd/internal/database"
	"partnerapi/db"
	"partnerapi/db/cells"
	"partnerapi/db/doctor"
	"partnerapi/db/embedded"
	"partnerapi/db/migrate"
	"partnerapi/db/move"
	"partnerapi/db/outbox"
	"partnerapi/db/pg"
	"partnerapi/domain"
	"partnerapi/platform/seal"
)

const (
	// clockWarn and clockFail are the differences between the clocks of this machine and of the database above which
	// the check warns and fails. Signatures and links have times; those who verify them usually allow five minutes.
	clockWarn = 5 * time.Second
	clockFail = time.Minute
)

// checkDatabase connects to the database, also for the later checks, and checks the server. It creates no database: if
// the embedded one does not exist it warns, or fails if PostgreSQL's programs are missing.
func (e *examination) checkDatabase(ctx context.Context) finding {
	const remedy = "start the server, or correct --database-url, its user or its password"
	if e.DatabaseURL == "" {
		exists, err := embedded.Exists(e.EmbeddedDir())
		switch {
		case err != nil:
			return fail("correct --data-dir or set --database-url", err)
		case !exists:
			if _, err := embedded.Programs(e.PostgresBin); err != nil {
				return fail("install PostgreSQL, set --postgres-bin to the folder of its programs, or set --database-url", err)
			}
			if err := checkMakeable(e.EmbeddedDir()); err != nil {
				return fail("allow this user to write there, set --data-dir to another folder, or set --database-url", err)
			}
			return warn("to use your own database, set --database-url",
				"none yet: serve creates an embedded one in %s", e.EmbeddedDir())
		}
	}
	d, shut, err := e.connect(ctx)
	if err != nil {
		text, _, _ := strings.Cut(err.Error(), "\n(is the server running") // remedy says the rest
		return fail(remedy, errors.New(text))
	}
	e.db, e.shut = d, shut
	if e.server, err = doctor.ReadServer(ctx, d); err != nil {
		return fail(remedy, database.UnreachableError(err))
	}
	at := d.Pool().Config().ConnConfig
	return assessServer(e.server, fmt.Sprintf("%s:%d/%s", at.Host, at.Port, at.Database))
}

// assessServer checks the server's version and encoding.
func assessServer(s doctor.Server, at string) finding {
	switch {
	case s.Version < doctor.MinServer:
		return fail(fmt.Sprintf("upgrade the server to PostgreSQL %d or newer", doctor.MinServer/10_000),
			fmt.Errorf("PostgreSQL %s at %s is too old", s.VersionText, at))
	case s.Encoding != migrate.Encoding && s.Empty:
		return fail("drop the database and create it again with createdb --encoding=UTF8 --template=template0",
			fmt.Errorf("the encoding of %s is %s and must be %s", at, s.Encoding, migrate.Encoding))
	case s.Encoding != migrate.Encoding:
		return warn(database.EncodingHint, "the encoding of %s is %s, which cannot store every character", at, s.Encoding)
	}
	return pass("PostgreSQL %s, %s, at %s", s.VersionText, s.Encoding, at)
}

// connect connects to the database, even through a pooler that serve refuses: poolerFault is then the reason.
func (e *examination) connect(ctx context.Context) (d *db.DB, shut func() error, err error) {
	if e.pooled, err = e.HasPooler(ctx); err != nil {
		return nil, nil, err
	}
	flags := e.Flags
	if e.poolerFault = flags.CheckPooler(ctx, e.pooled); e.poolerFault != nil {
		flags.DirectURL = ""
	}
	return flags.ConnectVia(ctx, e.pooled, e.env.Err, nil) // nil: for a command
}

// checkPooler fails if serve refuses the pooler, and warns if queries through it are compiled (jit), which sessions
// behind a pooler cannot switch off. For an embedded database its finding has no status.
func (e *examination) checkPooler(ctx context.Context) finding {
	switch {
	case e.poolerFault != nil:
		return fail(database.PoolerHint, errors.New(strings.TrimSuffix(e.poolerFault.Error(), ": "+database.PoolerHint)))
	case e.DatabaseURL == "":
		return finding{}
	case !e.pooled:
		return pass("none: connections lead to PostgreSQL itself")
	}
	jit, err := pg.One[bool](ctx, e.db, "ask for jit", pg.SQL("SELECT pg_jit_available()"))
	switch {
	case err != nil:
		return fail("make sure the database responds", err)
	case jit:
		return warn("run ALTER ROLE … SET jit = off, then reconnect the pooler",
			"a pooler responds, but queries are compiled (jit)")
	}
	return pass("a pooler responds; prepared statements: %t (--pooler-prepares)", e.Prepares)
}

// checkReplica checks that the standby can be read, and warns if the primary may cut long reads off. Without a standby
// its finding has no status.
func (e *examination) checkReplica(ctx context.Context) finding {
	if e.ReplicaURL == "" {
		return finding{}
	}
	feedback, err := e.db.CheckReplica(ctx)
	switch {
	case err != nil:
		return fail("set --replica-url to the URL of a standby of --database-url and check the standby's replication; "+
			"until then, the service reads from the primary", err)
	case !feedback:
		return warn("set hot_standby_feedback = on on the standby, then reload its configuration",
			"the standby keeps up, but the primary's cleanup cancels long reads from it")
	}
	return pass("the standby keeps up; reports, exports and metrics are read from it")
}

// assessRole checks that the role has the rights that serving needs, and no more: it warns of a superuser.
func assessRole(role doctor.Role) finding {
	switch {
	case role.ReadOnly:
		return fail("set --database-url to the primary server, or reset default_transaction_read_only",
			fmt.Errorf("%s cannot write: the server is a standby, or the role's transactions are read-only", role.Name))
	case role.Superuser:
		return warn("create a role that owns the service's tables: CREATE ROLE partnerapi LOGIN",
			"%s is a superuser: an injected SQL statement could control the whole server", role.Name)
	case role.Denied != "":
		return fail("run as the owner of the tables: "+role.Grants()+"; for the tables of later versions, see docs/operating.md, Roles",
			fmt.Errorf("%s lacks rights on %s", role.Name, role.Denied))
	}
	return pass("%s can read and write all tables and is not a superuser", role.Name)
}

// assessDurability warns if a crash of the server can lose commits.
func assessDurability(s doctor.Settings) finding {
	if s.Unsafe != "" {
		return warn("set these to on in postgresql.conf and for the role; otherwise, a crash can lose acknowledged writes or, if fsync is off, the whole database",
			"%s", s.Unsafe)
	}
	return pass("committed data is on disk")
}

// assessTimeouts warns if the database cuts work off.
func assessTimeouts(s doctor.Settings) finding {
	if s.Timeouts != "" {
		return warn("run ALTER ROLE … SET … = 0 for each timeout; the service sets its own limits, and imports, reports and recounts need more time",
			"the database cancels statements: %s", s.Timeouts)
	}
	return pass("none: the database cancels no statements")
}

// checkMigrations checks that the tables are at the version that this program needs, and then sets e.migrated. It warns
// if some are older and serve can migrate them, otherwise fails.
func (e *examination) checkMigrations(ctx context.Context) finding {
	state, err := doctor.ReadTables(ctx, e.db, e.env.Tables...)
	switch {
	case state.Newer != nil:
		return fail("start the newer version, or restore the backup made before its migration", state.Newer)
	case errors.Is(err, migrate.ErrEarlier):
		return fail("export with the version before 1.0, then import with this version into a new database (docs/versions.md)", err)
	case err != nil:
		return fail(readTables, err)
	case state.Missing == nil:
		e.migrated = true
		return pass("the tables match this version")
	case e.NoMigrate:
		return fail("run partnerapi migrate; serve --no-migrate changes no tables", state.Missing)
	case !e.server.CreatesTables:
		return fail("run partnerapi migrate as the owner of the tables, who can create tables in the schema", state.Missing)
	}
	return warn("serve migrates the tables when it starts; to migrate ahead of time, run partnerapi migrate", "%s", state.Missing)
}

// checkPool compares the connections of serve with those that the database allows: it fails if they are more, and warns
// if they are more than those that others leave.
func (e *examination) checkPool(ctx context.Context) finding {
	conns, err := doctor.ReadConnections(ctx, e.db, e.ConnectionsNeeded(!e.NoWork /* working */, e.pooled))
	if err != nil {
		return fail("allow the role to read pg_stat_activity and pg_roles", err)
	}
	found := fmt.Sprintf("serve may open %d connections, the database allows %d, and %d are in use", conns.Needed, conns.Allowed, conns.Used)
	return grade("lower --connections or raise the database's max_connections", found,
		conns.TooFew(), conns.Scarce())
}

// assessSkew warns, or fails, if the database's clock, which all processes use, differs too much from this machine's.
func assessSkew(s doctor.Skew) finding {
	difference := max(s.Ahead.Abs()-s.Doubt, 0)
	side := "ahead of"
	if s.Ahead < 0 {
		side = "behind"
	}
	found := fmt.Sprintf("the database's clock is %v %s this machine's (± %v)",
		s.Ahead.Abs().Round(time.Millisecond), side, s.Doubt.Round(time.Millisecond))
	return grade("synchronize the clocks of both machines with NTP", found, difference > clockFail, difference > clockWarn)
}

// assessDay warns if work that cannot be undone waits because the day is far from the last daily refresh.
func assessDay(s db.ClockState) finding {
	today := s.Now.Format(time.DateOnly)
	switch {
	case s.LastRefresh.IsZero():
		return pass("%s; no daily refresh yet", today)
	case s.Hold() != db.HoldDay:
		return pass("%s; the last daily refresh was on %s", today, s.LastRefresh)
	}
	wait := fmt.Sprintf("wait until %s while serve or work runs", s.Until().UTC().Format(time.RFC3339))
	if !s.Seen {
		wait = fmt.Sprintf("start serve or work and wait for %d hours", int(db.ClockHoldFor.Hours()))
	}
	return warn("correct the database's clock; if it is right, "+wait+" or restart one of them with --accept-clock",
		"the database's clock shows %s, but the last daily refresh was on %s; deletions, renewals, scheduled simulations and "+
			"other work that only the clock triggers are held back", today, s.LastRefresh)
}

// checkCell checks that --cell and --cell-count match the cell in the database, or can be stored in it. It warns of
// keys whose text names another cell, which the router must route here one by one. For a single cell its finding has no
// status.
func (e *examination) checkCell(ctx context.Context) finding {
	const remedy = "use the --cell and --cell-count of the first start, or an empty database"
	wanted, err := e.ParseCell()
	if err != nil {
		return fail(remedy, err)
	}
	current, err := e.db.Cell(ctx)
	switch {
	case err != nil:
		return fail(readTables, err)
	case current.Count == 1 && wanted.Count == 1:
		return finding{}
	}
	result, err := cells.WouldFix(ctx, e.db, wanted)
	if err != nil {
		return fail(readTables, err)
	}
	if err := database.CheckCell(result, wanted); err != nil {
		return fail(remedy, err)
	}
	if current.Count == 1 {
		return pass("serve makes this database permanently cell %s", wanted)
	}
	strays, err := cells.StrayKeys(ctx, e.db, current)
	if err != nil {
		return fail(readTables, err)
	}
	if len(strays) > 0 {
		prefixes := pg.MapRows(strays, func(k *cells.StrayKey) string { return k.Prefix })
		return warn("route these key prefixes to this cell, before the rules for cell codes", "%s; these keys name other cells: %s", current,
			strings.Join(prefixes, ", "))
	}
	return pass("%s", current)
}

// assessMoves warns of partners whose writes are refused as a move was interrupted. Without moves, its finding has no
// status.
func assessMoves(all []move.Status) finding {
	var stuck []string
	for _, m := range all {
		if m.Step == move.HandingOver {
			stuck = append(stuck, m.Partner.String())
		}
	}
	switch {
	case len(stuck) > 0:
		return warn("run partnerapi move again to finish the move", "writes are rejected for partners that are moving to another cell: %s",
			strings.Join(stuck, ", "))
	case len(all) > 0:
		return pass("%d partners are moving or have moved; partnerapi move status lists them", len(all))
	}
	return finding{}
}

// checkEncryption checks that the key decrypts the stored secrets, and warns if there is neither a key nor a secret.
// Unlike serve, it creates no key and no check value.
func (e *examination) checkEncryption(ctx context.Context) finding {
	const remedy = "set --encryption-key to the key of the stored secrets or, during a rotation, to NEW,OLD"
	hasSecrets, err := e.db.AnySealed(ctx, db.SealedColumns)
	if err != nil {
		return fail(readTables, err)
	}
	list := e.EncryptionKey
	if list == "" && e.DatabaseURL == "" {
		switch _, err := os.Stat(e.KeyFile()); {
		case errors.Is(err, fs.ErrNotExist) && hasSecrets:
			return fail("restore it from a backup, or set --encryption-key to its key",
				fmt.Errorf("%s is missing, but the database contains secrets", e.KeyFile()))
		case errors.Is(err, fs.ErrNotExist):
			return pass("serve creates one in %s", e.KeyFile())
		}
		list = "file:" + e.KeyFile()
	}
	switch {
	case list == "" && hasSecrets:
		return fail(remedy, errors.New("the database contains secrets, but there is no key"))
	case list == "":
		return warn("create one with partnerapi encryption-key and set --encryption-key to it",
			"none: features that store secrets, such as webhooks and directories, are not available")
	}
	keys, err := seal.ParseKeys(list)
	if err != nil {
		return fail("correct --encryption-key", err)
	}
	return e.checkKeys(ctx, keys, hasSecrets, remedy)
}

// checkKeys checks that the keys decrypt the check value, which is stored to detect wrong keys, and warns of an
// incomplete rotation. It accepts any keys if the database has no secrets or no check value.
func (e *examination) checkKeys(ctx context.Context, keys *seal.Keys, hasSecrets bool, remedy string) finding {
	check, err := e.db.EncryptionCheck(ctx)
	if err != nil {
		return fail(readTables, err)
	}
	if !hasSecrets || check == nil {
		return pass("no secrets are stored yet, so any key works")
	}
	if _, err := keys.Open(check, database.CheckContext); err != nil {
		return fail(remedy, fmt.Errorf("the stored secrets are %w", err))
	}
	current, err := database.IsCurrent(keys, check)
	switch {
	case err != nil:
		return fail(remedy, err)
	case !current:
		return warn("run partnerapi encryption-key rotate", "a rotation was started but is not finished")
	}
	return pass("it decrypts the stored secrets")
}

// assessLateWork warns of queued work that is late, as no process does it.
func assessLateWork(backlogs []doctor.Backlog) finding {
	if len(backlogs) == 0 {
		return pass("nothing is late by more than %v", doctor.LateAfter)
	}
	parts := pg.MapRows(backlogs, func(b *doctor.Backlog) string {
		return fmt.Sprintf("%d %s since %s", b.Count, b.What, b.Since.UTC().Format(time.RFC3339))
	})
	return warn("run serve without --no-work or partnerapi work, and check its log", "late: %s",
		strings.Join(parts, ", "))
}

// assessSharedEmails warns of users and admins of a client whose addresses differ only in their spelling. They were
// stored before addresses were compared by their key, and stay.
func assessSharedEmails(shared []doctor.SharedEmail) finding {
	if len(shared) == 0 {
		return pass("no client has two users or admins with the same email address")
	}
	parts := pg.MapRows(shared, func(s *doctor.SharedEmail) string {
		return fmt.Sprintf("%s of %s", strings.Join(s.Holders, " and "), s.Client)
	})
	if len(parts) >= doctor.MostSharedEmails {
		parts = append(parts, "and perhaps others")
	}
	return warn("change one address of each pair in the directory or by an import, or deactivate one user; new conflicts are rejected",
		"the same email address is stored twice, in two spellings: %s", strings.Join(parts, "; "))
}

// joinSome joins texts, and counts those after the first five.
func joinSome(texts []string) string {
	const most = 5
	if n := len(texts) - most; n > 0 {
		texts = append(texts[:most:most], fmt.Sprintf("%d others", n))
	}
	return strings.Join(texts, ", ")
}

// assessKeyEnds warns of API keys that end soon, and of webhooks that deliver nothing because their key has ended.
func assessKeyEnds(ends doctor.KeyEnds) finding {
	return join(assessEndingKeys(ends.Soon), assessKeyless(ends.Keyless))
}

// join returns the findings as one: those with a remedy or, if none has one, the first.
func join(first, second finding) finding {
	switch {
	case second.Status == passed:
		return first
	case first.Status == passed:
		return second
	}
	return warn(first.Remedy+"; "+second.Remedy, "%s; %s", first.Found, second.Found)
}

// assessEndingKeys warns of API keys that stop working soon.
func assessEndingKeys(keys []doctor.EndingKey) finding {
	if len(keys) == 0 {
		return pass("none expires within 30 days")
	}
	parts := pg.MapRows(keys, func(k *doctor.EndingKey) string {
		text := fmt.Sprintf("%s (%s, of %s) on %s", k.Prefix, k.Name, k.Partner, k.ExpiresAt.UTC().Format(time.DateOnly))
		if len(k.Webhooks) > 0 {
			text += " with " + joinSome(pg.MapRows(k.Webhooks, func(id *domain.WebhookID) string { return id.String() }))
		}
		return text
	})
	if len(parts) == doctor.MostEndingKeys {
		parts = append(parts, "and perhaps others")
	}
	return warn("rotate the keys (keys rotate PREFIX --expires DATE), or create new keys (keys create) and ask the partners to move their webhooks "+
		"to the new keys (PATCH with status active)", "these keys expire soon: %s", strings.Join(parts, ", "))
}

// assessKeyless warns of webhooks whose key has ended.
func assessKeyless(hooks []outbox.KeylessWebhook) finding {
	if len(hooks) == 0 {
		return pass("all webhooks have a valid key")
	}
	parts := pg.MapRows(hooks, func(h *outbox.KeylessWebhook) string {
		how := "was revoked"
		if h.Reason == domain.DisabledKeyExpired {
			how = "expired"
		}
		return fmt.Sprintf("%s (of %s; key %s %s on %s)", h.ID, h.Partner, h.KeyPrefix, how, h.EndedAt.UTC().Format(time.DateOnly))
	})
	if len(parts) == outbox.MostKeylessWebhooks {
		parts = append(parts, "and perhaps others")
	}
	return warn("ask the partner to delete each webhook or to move it to a valid key with the same access (PATCH with status active); you can also "+
		"rotate an expired key (keys rotate PREFIX --expires DATE)", "these webhooks are disabled because their key has ended: %s", strings.Join(parts, ", "))
}
