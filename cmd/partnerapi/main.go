// Command partnerapi is the partner API's service and its tools.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/alecthomas/kong"

	"partnerapi/platform/mail"
)

// version and commit are set when a release is built (-ldflags -X). Where commit is
// not, it is what the Go tool noted of the working copy.
var version, commit = "dev", ""

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	code := run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// streams are what a command reads and writes.
type streams struct {
	in       io.Reader
	out, err io.Writer
}

// run runs a command line and returns the exit status: 0, or 1 when the
// command failed, unless its error has another (kong.ExitCoder), or 2 when the line
// made no sense.
func run(ctx context.Context, args []string, in io.Reader, out, errs io.Writer) int {
	visibleOut, visibleErrs := newVisible(out, false), newVisible(errs, false)
	defer visibleErrs.finish()
	defer visibleOut.finish()
	out, errs = visibleOut, visibleErrs
	exited := -1
	line := cli{Plugins: pluginCommands()}
	parser, err := newParser(ctx, &line, streams{in, out, errs}, kong.Exit(func(code int) { exited = code }))
	if err != nil {
		fmt.Fprintln(errs, "partnerapi:", err)
		return 2
	}
	command, err := parser.Parse(withHelp(args))
	if exited >= 0 { // help was asked for and printed
		return exited
	}
	if err != nil {
		fmt.Fprintln(errs, "partnerapi:", err, "(partnerapi --help lists the commands)")
		return 2
	}
	if err := command.Run(); err != nil {
		fmt.Fprintln(errs, "partnerapi:", err)
		if coded := kong.ExitCoder(nil); errors.As(err, &coded) {
			return coded.ExitCode()
		}
		return 1
	}
	return 0
}

// newParser returns a parser of command lines into line. A flag is read from the
// variable PARTNERAPI_ and its name too, unless it says env:"-".
func newParser(ctx context.Context, line *cli, s streams, more ...kong.Option) (*kong.Kong, error) {
	return kong.New(line, append(more,
		kong.Name("partnerapi"), kong.Description("The partner API of a security awareness training service."),
		kong.DefaultEnvars("PARTNERAPI"), kong.Vars{"listen": defaultListen, "workers": strconv.Itoa(mail.DefaultWorkers), "version": strings.TrimSuffix(versionText(), "\n")},
		kong.Writers(s.out, s.err), kong.UsageOnError(),
		kong.BindTo(ctx, (*context.Context)(nil)), kong.Bind(s),
	)...)
}

// withHelp turns the command help, and no command at all, into the flag.
func withHelp(args []string) []string {
	if len(args) == 0 {
		return []string{"--help"}
	}
	if args[0] == "help" {
		return append(slices.Clone(args[1:]), "--help")
	}
	return args
}

// cli is the commands. Those of version 1 come from its own file.
type cli struct {
	Serve     serveCmd         `cmd:"" help:"Serve the API."`
	Work      workCmd          `cmd:"" help:"Do the background work alone, beside processes that serve with --no-work."`
	Doctor    doctorCmd        `cmd:"" help:"Check configuration, database, mail and the rest that serve needs, and say what to mend."`
	Health    healthCmd        `cmd:"" help:"Ask a running process whether it is ready."`
	Migrate   migrateCmd       `cmd:"" help:"Bring the database's tables to this version."`
	Partners  partnersCmd      `cmd:"" help:"Create and list partners."`
	Keys      keysCmd          `cmd:"" help:"Create, list and revoke API keys."`
	Audit     auditCmd         `cmd:"" help:"List who changed what, through the API and by commands."`
	Mail      mailCmd          `cmd:"" help:"List mails that were given up, send them again, and choose what mail clients get."`
	Seed      seedCmd          `cmd:"" help:"Add large, made-up data, to try the service's speed on."`
	Breaches  breachesCmd      `cmd:"" help:"Import breaches, which exposures refer to."`
	Export    exportObjectsCmd `cmd:"" help:"Write the objects of the service as import takes them: a line of JSON each."`
	Import    importObjectsCmd `cmd:"" help:"Bring the objects of a platform into the service: a line of JSON each."`
	Ingest    ingestCmd        `cmd:"" help:"Take in what happened on the platform: signals, a line of JSON each."`
	Reports   reportsCmd       `cmd:"" help:"Make reports."`
	Templates templatesCmd     `cmd:"" help:"Import templates of simulated phishing mails, and choose which a client is sent."`
	Directory directoryCmd     `cmd:"" help:"Connect clients to their directories, and sync them."`
	Webhooks  webhooksCmd      `cmd:"" help:"List the webhooks of partners and their deliveries, pause them, activate them again, and follow events without one."`
	OpenAPI   openapiCmd       `cmd:"" name:"openapi" help:"Print an OpenAPI document."`
	MCP       mcpCmd           `cmd:"" name:"mcp" help:"Lead an agent that speaks MCP over standard input and output to a service."`
	Version   versionCmd       `cmd:"" help:"Print the version."`

	Completion completionCmd `cmd:"" help:"Print a script that completes this program's commands and flags in a shell."`
	Complete   completeCmd   `cmd:"" name:"__complete" hidden:"" passthrough:"" help:"Print what a command line may continue with."`

	EncryptionKey encryptionKeyCmd `cmd:"" name:"encryption-key" help:"Make the key that secrets in the database are encrypted with, and rotate it."`

	ShowVersion kong.VersionFlag `name:"version" env:"-" help:"Print the version."`

	kong.Plugins
}
