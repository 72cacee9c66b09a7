// Command partnerapi is the partner API's service and its tools.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/alecthomas/kong"

	"partnerapi/cmd/internal/cli"
	"partnerapi/cmd/internal/doctor"
	"partnerapi/cmd/internal/extension"
	"partnerapi/cmd/internal/operator"
	"partnerapi/cmd/internal/output"
	"partnerapi/cmd/internal/remote"
	"partnerapi/cmd/internal/v1cmd" // v1-line
	"partnerapi/platform/mail"
	"partnerapi/v2/op/mcp"
)

// version and commit are set when a release is built (-ldflags -X). Without version, builtVersion is used; without commit,
// the Go tool's record of it.
var version, commit string

// extensions are the parts of the program that can be deleted with their packages.
var extensions = []extension.Extension{
	v1cmd.Extension(), // v1-line
}

func main() {
	programPath = programName(os.Args[0])
	if err := installed.adopt(os.Args[1:], os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, "partnerapi:", err)
		os.Exit(1)
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	code := run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// run runs a command line and returns the exit status: 0; 1 if the command failed, unless its error has another
// (kong.ExitCoder); 2 for an invalid command line.
func run(ctx context.Context, args []string, in io.Reader, out, errs io.Writer) int {
	visibleOut, visibleErrs := output.NewVisible(out, false), output.NewVisible(errs, false)
	defer visibleErrs.Finish()
	defer visibleOut.Finish()
	out, errs = visibleOut, visibleErrs
	exited := -1 // the exit status that kong asks for; -1 for none
	line := commands{Plugins: pluginCommands()}
	parser, err := newParser(ctx, &line, environment(in, out, errs), kong.Exit(func(code int) { exited = code }))
	if err != nil {
		fmt.Fprintln(errs, "partnerapi:", err)
		return 2
	}
	command, err := parser.Parse(withHelp(args))
	if exited >= 0 { // help was printed
		return exited
	}
	if err != nil {
		printFailure(errs, args, fmt.Errorf("%w (partnerapi --help lists the commands)", err))
		return 2
	}
	if err := command.Run(); err != nil {
		printFailure(errs, args, err)
		if coder := kong.ExitCoder(nil); errors.As(err, &coder) {
			return coder.ExitCode()
		}
		return 1
	}
	return 0
}

// printFailure prints the error of a command line. That of a process that logs in JSON is a line of its log.
func printFailure(errs io.Writer, args []string, err error) {
	if logsJSON(args) {
		output.NewLog(errs, slog.LevelInfo, "json").Error("the process failed", "error", err)
		return
	}
	fmt.Fprintln(errs, "partnerapi:", output.WithoutSecrets(err.Error()))
}

// logsJSON reports whether a command line is that of a process that logs in JSON, also if it is invalid otherwise.
func logsJSON(args []string) bool {
	if len(args) == 0 || args[0] != "serve" && args[0] != "work" {
		return false
	}
	const flag = "--log-format"
	format := os.Getenv("PARTNERAPI_LOG_FORMAT")
	for i, arg := range args {
		if value, ok := strings.CutPrefix(arg, flag+"="); ok {
			format = value
		} else if i > 0 && args[i-1] == flag {
			format = arg
		}
	}
	return format == "json"
}

// warnOfVariables logs the variables that look like the program's but that no command reads. It logs no values.
func warnOfVariables(ctx context.Context, log *slog.Logger, program *kong.Application) error {
	unknown, err := doctor.UnknownVariables(program)
	if len(unknown) > 0 {
		log.WarnContext(ctx, "no command reads these variables; correct their names or remove them", "variables", strings.Join(unknown, ", "))
	}
	return err
}

// environment returns the environment of the commands, with these streams.
func environment(in io.Reader, out, errs io.Writer) cli.Env {
	e := cli.Env{In: in, Out: out, Err: errs, Version: builtVersion()}
	for _, x := range extensions {
		e.Tables = append(e.Tables, x.Tables)
	}
	return e
}

// newParser returns a parser of command lines into line. A flag without a tag env is also read from the variable
// PARTNERAPI_ and its name.
func newParser(ctx context.Context, line *commands, s cli.Env, options ...kong.Option) (*kong.Kong, error) {
	parser, err := kong.New(line, append(options,
		kong.Name("partnerapi"), kong.Description("The partner API of a security awareness training service."),
		kong.DefaultEnvars("PARTNERAPI"), kong.Vars{
			"listen": cli.DefaultListen, "workers": strconv.Itoa(mail.DefaultWorkers),
			"toolsets": strings.Join(mcp.DefaultToolsets, ","),
			"version":  strings.TrimSuffix(versionText(), "\n"),
		}, operator.Vars,
		kong.Writers(s.Out, s.Err), kong.UsageOnError(), kong.ExplicitGroups(groups), kong.ValueFormatter(briefHelp),
		kong.BindTo(ctx, (*context.Context)(nil)), kong.Bind(s), kong.Bind(doctor.ProbeRedis(probeRedis)),
	)...)
	if err == nil {
		addExamples(parser.Model)
	}
	return parser, err
}

// withHelp replaces the command help by the flag --help after the other arguments, and an empty command line by --help.
func withHelp(args []string) []string {
	if len(args) == 0 {
		return []string{"--help"}
	}
	if args[0] == "help" {
		return append(slices.Clone(args[1:]), "--help")
	}
	return args
}

// commands are the commands of the program. The commands of version 1 come from its extension.
type commands struct {
	Serve     serveCmd           `cmd:"" help:"Serve the API." example:"serve --demo --release latest\nserve --no-work --release latest --database-url postgres://partnerapi@db.example.com/partnerapi --public-url https://api.example.com"`
	Work      workCmd            `cmd:"" help:"Run only the background work that serve --no-work leaves to other processes." example:"work --database-url postgres://partnerapi@db.example.com/partnerapi"`
	Doctor    doctor.Command     `cmd:"" help:"Check everything that serve needs, such as the configuration, database and mail server, and print what to correct." example:"doctor\ndoctor --recount"`
	Health    remote.Health      `cmd:"" help:"Check whether a running process is ready." example:"health https://api.example.com"`
	Migrate   operator.Migrate   `cmd:"" help:"Migrate the database tables to this version of the program." example:"migrate --dry-run\nmigrate"`
	Partners  operator.Partners  `cmd:"" help:"Create, list, rename, archive and restore partners."`
	Branding  operator.Branding  `cmd:"" help:"Set, show and clear the brands of partners, clients and the service."`
	Admins    operator.Admins    `cmd:"" help:"Add, list and remove admins of partners and clients."`
	Keys      operator.Keys      `cmd:"" help:"Create, list, rotate and revoke API keys."`
	Move      operator.Move      `cmd:"" help:"Move a partner to another cell."`
	Audit     operator.Audit     `cmd:"" help:"List changes made through the API or by commands, and who made them." example:"audit --client 'Hillside Dental' --since 36h\naudit --key command --json"`
	Mail      operator.Mail      `cmd:"" help:"List and resend permanently failed emails, and choose which emails clients and partners receive."`
	Seed      operator.Seed      `cmd:"" help:"Add large amounts of generated data for performance tests." example:"seed --clients 5 --users 100"`
	Breaches  operator.Breaches  `cmd:"" help:"Import the breaches that exposures refer to."`
	Catalogue operator.Catalogue `cmd:"" help:"Copy courses, templates, breaches and frameworks to another cell."`
	Export    operator.Export    `cmd:"" help:"Export the service's objects in the format that import reads: one JSON object per line." example:"export platform.ndjson\nexport --partner 'Northlight MSP' --signals signals.ndjson platform.ndjson"`
	Import    operator.Import    `cmd:"" help:"Import a platform's objects from a file with one JSON object per line." example:"import --dry-run platform.ndjson\nimport --errors refused.ndjson platform.ndjson"`
	Ingest    operator.Ingest    `cmd:"" help:"Apply signals about activity on the platform, from a file with one JSON object per line." example:"ingest signals.ndjson"`
	Reports   operator.Reports   `cmd:"" help:"Create reports."`
	Templates operator.Templates `cmd:"" help:"Import phishing templates and choose template categories for clients."`
	Directory operator.Directory `cmd:"" help:"Connect clients to their directories and sync their users."`
	Webhooks  operator.Webhooks  `cmd:"" help:"List webhooks and their deliveries, pause and resume webhooks, and follow events without a webhook."`
	OpenAPI   openapiCmd         `cmd:"" name:"openapi" help:"Print an OpenAPI document." example:"openapi v2 --release latest"`
	MCP       remote.MCP         `cmd:"" name:"mcp" help:"Connect an AI assistant to a service's MCP server over standard input and output." example:"mcp --url https://api.example.com --read-only"`
	Version   versionCmd         `cmd:"" help:"Print the version." example:"version"`

	Completion completionCmd `cmd:"" help:"Print a shell script that completes commands and flags." example:"completion bash"`
	Complete   completeCmd   `cmd:"" name:"__complete" hidden:"" passthrough:"" help:"Print the possible continuations of a command line."`

	EncryptionKey operator.EncryptionKey `cmd:"" name:"encryption-key" help:"Create and rotate the key that encrypts secrets in the database."`

	ShowVersion kong.VersionFlag `name:"version" group:"all" env:"-" help:"Print the version."`

	kong.Plugins
}
