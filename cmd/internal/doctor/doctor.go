// Package doctor has the command that checks what serve needs, and says what to mend.
package doctor

import (
	"context"
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
	"partnerapi/db/pg"
)

// Command is the command doctor: it checks what serve needs.
type Command struct {
	config.ServeFlags
	JSON    bool `env:"-" help:"Print one JSON object instead of lines."`
	Recount bool `env:"-" help:"Make no checks, but compare the stored counts of users, clients, members, mails and signatures with what they count, and correct those that differ."`
}

// Help says how to use it, and what the exit status means.
func (Command) Help() string {
	return `Give it the flags and the environment of serve. It changes no tables and sends no mail; in the store of reports it writes a small object and deletes it again. The exit status is 1 if a check failed, 0 if there are warnings only. With --recount it makes no checks: it corrects stored counts, while the service may run.`
}

// verdict is how a check ended.
type verdict string

const (
	passed verdict = "ok"
	warned verdict = "warn"
	failed verdict = "fail"
)

// finding is what a check found, and what the operator should do about it. It
// shows no secret.
type finding struct {
	Status verdict `json:"status"`
	Check  string  `json:"check"`
	Found  string  `json:"found"`
	Mend   string  `json:"mend,omitempty"`
}

func pass(format string, args ...any) finding {
	return finding{Status: passed, Found: fmt.Sprintf(format, args...)}
}

func warn(mend, format string, args ...any) finding {
	return finding{Status: warned, Mend: mend, Found: fmt.Sprintf(format, args...)}
}

func fail(mend string, err error) finding {
	return finding{Status: failed, Mend: mend, Found: output.WithoutSecrets(err.Error())}
}

// String is the finding as one line.
func (f finding) String() string {
	line := fmt.Sprintf("%-4s  %-16s  %s", f.Status, f.Check, oneLine(f.Found))
	if f.Mend != "" {
		line += " → " + f.Mend
	}
	return line
}

// oneLine puts the lines of an error one after the other.
func oneLine(text string) string {
	var parts []string
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line != "" {
			parts = append(parts, line)
		}
	}
	return strings.ReplaceAll(strings.Join(parts, "; "), ":; ", ": ")
}

// examination is what the checks share.
type examination struct {
	config.ServeFlags
	env     cli.Env // whose error stream shows the start of an embedded server
	program *kong.Application
	redis   TryRedis
	// db is nil until the database answered; shut closes it.
	db     *db.DB
	shut   func() error
	server doctor.Server
	// pooler is what --database-url leads to, refused why serve does not begin with it.
	pooler  pg.Pooler
	refused error
	// current says that the tables are those of this version.
	current bool
}

// TryRedis connects to the Redis at a URL as serve does, and returns its address, and
// written, which is why it cannot be written by a script, as budgets are.
type TryRedis func(ctx context.Context, url string) (at string, written, err error)

// needed is what a check cannot do without. Where that is not there, an earlier
// check has said why.
type needed int

const (
	nothing needed = iota
	theDatabase
	theTables
)

const (
	// checkWithin bounds each check.
	checkWithin = 10 * time.Second
	// startWithin bounds that of the database, which may have to start an embedded
	// server.
	startWithin = time.Minute
)

// check is one thing that is looked at. look ends with its context; a finding
// without a status is not shown.
type check struct {
	name  string
	needs needed
	look  func(*examination, context.Context) finding
}

// checks are made in this order.
var checks = []check{
	{"flags", nothing, (*examination).checkFlags},
	{"environment", nothing, (*examination).checkEnvironment},
	{"listen", nothing, (*examination).checkListen},
	{"database", nothing, (*examination).checkDatabase},
	{"pooler", theDatabase, (*examination).checkPooler},
	{"standby", theDatabase, (*examination).checkReplica},
	{"migrations", theDatabase, (*examination).checkMigrations},
	{"role", theDatabase, (*examination).checkRole},
	{"durability", theDatabase, (*examination).checkDurability},
	{"timeouts", theDatabase, (*examination).checkTimeouts},
	{"connections", theDatabase, (*examination).checkPool},
	{"clock", theDatabase, (*examination).checkClock},
	{"cell", theTables, (*examination).checkCell},
	{"moves", theTables, (*examination).checkMoves},
	{"encryption key", theTables, (*examination).checkEncryption},
	{"key files", nothing, (*examination).checkKeyFiles},
	{"background work", theTables, (*examination).checkBacklogs},
	{"redis", nothing, (*examination).checkRedis},
	{"mail", nothing, (*examination).checkMail},
	{"public url", nothing, (*examination).checkPublicURL},
	{"metrics", nothing, (*examination).checkMetrics},
	{"trusted proxies", nothing, (*examination).checkProxies},
	{"webhooks", nothing, (*examination).checkWebhooks},
	{"report store", nothing, (*examination).checkStore},
	{"data directory", nothing, (*examination).checkDataDir},
	{"temporary files", nothing, (*examination).checkTemporary},
	{"demonstration", nothing, (*examination).checkDemo},
}

// Run makes the checks, and fails if one did.
func (c Command) Run(ctx context.Context, s cli.Env, line *kong.Context, redis TryRedis) (err error) {
	if c.Recount {
		return c.recountAll(ctx, s)
	}
	e := &examination{ServeFlags: c.ServeFlags, env: s, program: line.Model, redis: redis, shut: func() error { return nil }}
	defer database.Closing(func() error { return e.shut() }, &err)
	report := struct {
		Version string    `json:"version"`
		Failed  int       `json:"failed"`
		Warned  int       `json:"warned"`
		Checks  []finding `json:"checks"`
	}{Version: s.Version}
	for _, one := range checks {
		found := e.make(ctx, one)
		if err := ctx.Err(); err != nil {
			return err
		}
		switch found.Status {
		case "":
			continue
		case failed:
			report.Failed++
		case warned:
			report.Warned++
		}
		report.Checks = append(report.Checks, found)
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
		return errors.New(output.Counted(report.Failed, "check", "checks") + " failed")
	}
	return nil
}

// make makes a check, if what it needs is there.
func (e *examination) make(ctx context.Context, c check) finding {
	if c.needs >= theDatabase && e.db == nil || c.needs == theTables && !e.current {
		return finding{}
	}
	within := checkWithin
	if c.name == "database" {
		within = startWithin
	}
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	found := c.look(e, ctx)
	found.Check = c.name
	return found
}

// bounded is what look finds, which may wait for a disk or a network that does not
// answer, or that it did not within the time of the check.
func bounded(ctx context.Context, mend string, look func() finding) finding {
	found := make(chan finding, 1)
	go func() { found <- look() }()
	select {
	case f := <-found:
		return f
	case <-ctx.Done():
		return fail(mend, errors.New("no answer in time"))
	}
}
