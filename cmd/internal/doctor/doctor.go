// Package doctor has the command that checks what serve needs, and suggests remedies.
package doctor

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/alecthomas/kong"

	"partnerapi/cmd/internal/cli"
	"partnerapi/cmd/internal/config"
	"partnerapi/cmd/internal/database"
	"partnerapi/cmd/internal/output"
	"partnerapi/db"
	"partnerapi/db/doctor"
	"partnerapi/db/move"
	"partnerapi/db/pg"
)

// Command is the command doctor: it checks what serve needs.
type Command struct {
	config.ServeFlags
	JSON    bool `env:"-" help:"Print the results as one JSON object."`
	Recount bool `env:"-" help:"Recount users, clients, members, emails and signatures, and correct stored counts that differ. The checks do not run."`
}

func (Command) Help() string {
	return "Run this command with the flags and environment of serve. The command changes no tables and sends no emails. It writes a " +
		"small object to the report store and then deletes the object. The exit status is 1 if a check fails, and 0 if there are only " +
		"warnings. With --recount, the command only corrects stored counts, and the service can keep running."
}

// verdict is the outcome of a check.
type verdict string

const (
	passed verdict = "ok"
	warned verdict = "warn"
	failed verdict = "fail"
)

// finding is a check's result and its remedy. runCheck redacts its secrets.
type finding struct {
	Status verdict `json:"status"`
	Check  string  `json:"check"`
	Found  string  `json:"found"`
	Remedy string  `json:"remedy,omitempty"`
}

// printed is a finding in JSON. Its remedy also has the name that it had in 1.0, for one release.
type printed struct {
	finding
	Mend string `json:"mend,omitempty"`
}

// pass returns a finding without a problem.
func pass(format string, args ...any) finding {
	return finding{Status: passed, Found: fmt.Sprintf(format, args...)}
}

// warn returns a warning with its remedy.
func warn(remedy, format string, args ...any) finding {
	return finding{Status: warned, Remedy: remedy, Found: fmt.Sprintf(format, args...)}
}

// fail returns a failure with its remedy. If err is that of a missing right, it says so instead: the check role prints
// the grants.
func fail(remedy string, err error) finding {
	if pg.Denied(err) {
		fault, grant := doctor.Denial(err, "")
		return finding{Status: failed, Remedy: cmp.Or(grant, "run the GRANT statements that the check role prints"), Found: fault}
	}
	return finding{Status: failed, Remedy: remedy, Found: err.Error()}
}

// grade returns found as a failure, as a warning, or as a finding without a problem.
func grade(remedy, found string, isFailure, isWarning bool) finding {
	switch {
	case isFailure:
		return fail(remedy, errors.New(found))
	case isWarning:
		return warn(remedy, "%s", found)
	}
	return pass("%s", found)
}

// assessing returns a check that assesses what it reads from the database. If that cannot be read, the check fails with
// the remedy.
func assessing[T any](
	read func(context.Context, *db.DB) (T, error), remedy string, assess func(T) finding,
) func(*examination, context.Context) finding {
	return func(e *examination, ctx context.Context) finding {
		found, err := read(ctx, e.db)
		if err != nil {
			return fail(remedy, err)
		}
		return assess(found)
	}
}

// String formats the finding as one line.
func (f finding) String() string {
	line := fmt.Sprintf("%-4s  %-16s  %s", f.Status, f.Check, oneLine(f.Found))
	if f.Remedy != "" {
		line += " → " + f.Remedy
	}
	return line
}

// oneLine joins the lines of an error by semicolons, after a colon by spaces, and drops empty lines.
func oneLine(text string) string {
	var parts []string
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line != "" {
			parts = append(parts, line)
		}
	}
	return strings.ReplaceAll(strings.Join(parts, "; "), ":; ", ": ")
}

// examination is the state that the checks share.
type examination struct {
	config.ServeFlags
	env     cli.Env // whose error stream shows the start of an embedded server
	program *kong.Application
	redis   ProbeRedis
	// db is nil until the database answered; shut closes it.
	db     *db.DB
	shut   func() error
	server doctor.Server
	// pooled is true if --database-url leads to a pooler; poolerFault is why serve refuses it, or nil.
	pooled      bool
	poolerFault error
	// migrated reports whether the tables are at the version that this program needs.
	migrated bool
}

// ProbeRedis connects to the Redis at a URL as serve does. It returns the address and, in writeErr, the error of a test
// write by script, as budgets do.
type ProbeRedis func(ctx context.Context, url string) (at string, writeErr, err error)

// requirement is the precondition of a check: nothing, an open database, or also migrated tables. If it is not met, an
// earlier check has reported why.
type requirement int

const (
	needsNothing requirement = iota
	needsDatabase
	needsTables
)

const (
	// checkWithin bounds each check.
	checkWithin = 10 * time.Second
	// startWithin bounds the check of the database, which may have to start an embedded server.
	startWithin = time.Minute
)

// check is a check. run ends when its context ends. A finding without a status is not shown: the check does not apply.
type check struct {
	name  string
	needs requirement
	run   func(*examination, context.Context) finding
}

// Remedies of checks that cannot read the database.
const (
	readTables   = "grant the role SELECT on all tables"
	readSettings = "allow the role to read pg_settings"
)

// checks are run in this order.
var checks = []check{
	{"flags", needsNothing, (*examination).checkFlags},
	{"environment", needsNothing, (*examination).checkEnvironment},
	{"listen", needsNothing, (*examination).checkListen},
	{"database", needsNothing, (*examination).checkDatabase},
	{"pooler", needsDatabase, (*examination).checkPooler},
	{"standby", needsDatabase, (*examination).checkReplica},
	{"migrations", needsDatabase, (*examination).checkMigrations},
	{"role", needsDatabase, assessing(doctor.ReadRole, "allow the role to read pg_roles and pg_class", assessRole)},
	{"durability", needsDatabase, assessing(doctor.ReadSettings, readSettings, assessDurability)},
	{"timeouts", needsDatabase, assessing(doctor.ReadSettings, readSettings, assessTimeouts)},
	{"connections", needsDatabase, (*examination).checkPool},
	{"clock", needsDatabase, assessing(doctor.ReadSkew, "make sure the database responds", assessSkew)},
	{"cell", needsTables, (*examination).checkCell},
	{"moves", needsTables, assessing(move.List, readTables, assessMoves)},
	{"encryption key", needsTables, (*examination).checkEncryption},
	{"email addresses", needsTables, assessing(doctor.SharedEmails, readTables, assessSharedEmails)},
	{"api keys", needsTables, assessing(doctor.ReadKeyEnds, readTables, assessKeyEnds)},
	{"key files", needsNothing, (*examination).checkKeyFiles},
	{"date", needsTables, assessing(doctor.ReadDay, readTables, assessDay)},
	{"background work", needsTables, assessing(doctor.LateWork, readTables, assessLateWork)},
	{"redis", needsNothing, (*examination).checkRedis},
	{"mail", needsNothing, (*examination).checkMail},
	{"public url", needsNothing, (*examination).checkPublicURL},
	{"metrics", needsNothing, (*examination).checkMetrics},
	{"trusted proxies", needsNothing, (*examination).checkProxies},
	{"webhooks", needsNothing, (*examination).checkWebhooks},
	{"report store", needsNothing, (*examination).checkStore},
	{"data directory", needsNothing, (*examination).checkDataDir},
	{"temporary files", needsNothing, (*examination).checkTemporary},
	{"demonstration", needsNothing, (*examination).checkDemo},
	{"demo data", needsTables, (*examination).checkDemoData},
}

// Run runs the checks, and fails if one did. With --recount it corrects stored counts instead.
func (c Command) Run(ctx context.Context, s cli.Env, line *kong.Context, redis ProbeRedis) (err error) {
	if c.Recount {
		return c.recountAll(ctx, s)
	}
	e := &examination{ServeFlags: c.ServeFlags, env: s, program: line.Model, redis: redis, shut: func() error { return nil }}
	defer database.CloseInto(func() error { return e.shut() }, &err) // the shut that a check may set
	report := struct {
		Version string    `json:"version"`
		Failed  int       `json:"failed"`
		Warned  int       `json:"warned"`
		Checks  []printed `json:"checks"`
	}{Version: s.Version}
	for _, next := range checks {
		found := e.runCheck(ctx, next)
		if err := ctx.Err(); err != nil {
			return err
		}
		switch found.Status {
		case "": // not shown
			continue
		case failed:
			report.Failed++
		case warned:
			report.Warned++
		}
		report.Checks = append(report.Checks, printed{found, found.Remedy})
		if !c.JSON {
			fmt.Fprintln(s.Out, found)
		}
	}
	if c.JSON {
		if err := output.JSON(s.Out, report); err != nil {
			return err
		}
	}
	if report.Failed > 0 {
		return errors.New(output.Plural(report.Failed, "check", "checks") + " failed")
	}
	return nil
}

// runCheck runs a check if its requirement is met; otherwise the finding has no status.
func (e *examination) runCheck(ctx context.Context, c check) finding {
	if c.needs >= needsDatabase && e.db == nil || c.needs == needsTables && !e.migrated {
		return finding{}
	}
	within := checkWithin
	if c.name == "database" { // it may have to start an embedded server
		within = startWithin
	}
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	found := c.run(e, ctx)
	found.Check, found.Found = c.name, output.WithoutSecrets(found.Found)
	return found
}

// withinContext returns the finding of examine, which may hang on a disk or a network. If ctx ends first, it returns a
// failure with the remedy.
func withinContext(ctx context.Context, remedy string, examine func() finding) finding {
	found := make(chan finding, 1)
	go func() { found <- examine() }()
	select {
	case f := <-found:
		return f
	case <-ctx.Done():
		return fail(remedy, errors.New("no response in time"))
	}
}

// recountAll corrects all stored counts that are wrong, and prints them, instead of running the checks.
func (c Command) recountAll(ctx context.Context, s cli.Env) error {
	return c.Flags.With(ctx, s, func(d *db.DB) error {
		miscounts, err := doctor.Recount(ctx, d)
		if c.JSON {
			report := struct {
				Corrected []doctor.Miscount `json:"corrected"`
			}{append([]doctor.Miscount{}, miscounts...)} // also after an error: those corrected before
			return cmp.Or(err, json.NewEncoder(output.ForJSON(s.Out)).Encode(report))
		}
		database.PrintRecounts(s.Out, miscounts)
		if err == nil {
			fmt.Fprintf(s.Out, "%s wrong and corrected; all others are correct\n", output.Plural(len(miscounts), "stored count was", "stored counts were"))
		}
		return err
	})
}
