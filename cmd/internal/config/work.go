package config

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"

	"partnerapi/cmd/internal/cli"
	"partnerapi/cmd/internal/database"
	"partnerapi/cmd/internal/output"
	"partnerapi/cmd/internal/telemetry"
	"partnerapi/db"
	"partnerapi/db/doctor"
	"partnerapi/db/pg"
	"partnerapi/domain"
	"partnerapi/platform/directory"
	"partnerapi/platform/mail"
	"partnerapi/platform/report"
	"partnerapi/platform/webhook"
)

// WorkFlags configure the background work.
type WorkFlags struct {
	DirectoryFlags
	database.KeyFlags
	StoreFlag
	FontFlag
	webhookFlags
	MailDomainsFlag
	PublicURL  string `name:"public-url" placeholder:"URL" help:"URL at which callers reach the service. Links to this service begin with this URL. If the URL has a path, the reverse proxy must remove the path from requests. Default: the listen address."`
	SMTPURL    string `name:"smtp-url" placeholder:"URL" help:"Mail server, as smtp://user:password@host:port or smtps://. If omitted, emails are written to files in the outbox folder in --data-dir."`
	MailFrom   string `name:"mail-from" placeholder:"ADDRESS" help:"Sender address of emails. Default: no-reply at the host of --public-url."`
	LearnerURL string `name:"learner-url" placeholder:"URL" help:"URL of the learning platform, to which links in emails lead. Each link adds ?course=, ?policy= or ?invite= with an ID. If omitted, links lead to a page of this service that explains this flag."`
	Workers    int    `default:"${workers}" help:"Maximum number of emails to send concurrently."`

	Connections int `default:"20" help:"Maximum number of database connections for requests and background work. The process opens up to 9 more connections for locks, readiness, metrics and notifications."`

	AcceptClock bool `name:"accept-clock" help:"Accept the database clock's date even if it is more than 31 days from the last daily refresh. The date is accepted once, at startup; remove the flag afterward. Without this flag, such a date delays deletions, renewals and scheduled simulations by 24 hours."`

	LogLevel  slog.Level `name:"log-level" default:"info" help:"Minimum level of log lines: debug, info, warn or error."`
	LogFormat string     `name:"log-format" enum:"text,json" default:"text" help:"Format of log lines: text or json."`
}

// Check returns an error for the first flag that is invalid. It connects to nothing.
func (f WorkFlags) Check() error {
	if f.PublicURL != "" {
		if _, err := mail.PublicURL(f.PublicURL); err != nil {
			return fmt.Errorf("--public-url: %w", err)
		}
	}
	validURL := cmp.Or(f.PublicURL, "http://"+cli.DefaultListen)
	if _, err := mail.NewComposer(validURL, f.MailFrom); err != nil {
		return fmt.Errorf("--mail-from: %w", err)
	}
	if _, err := f.Domains(); err != nil {
		return err
	}
	if _, err := f.Learning(); err != nil {
		return err
	}
	if err := report.CheckStore(f.ReportStore); err != nil {
		return fmt.Errorf("--report-store: %w", err)
	}
	if f.SMTPURL != "" {
		if _, err := mail.NewSMTP(f.SMTPURL); err != nil { // which does not connect
			return fmt.Errorf("--smtp-url: %w", err)
		}
	}
	if f.Workers < 1 || f.Workers > 1000 {
		return fmt.Errorf("--workers must be between 1 and 1000: %d", f.Workers)
	}
	if f.Connections < MinConnections || f.Connections > 1000 {
		return fmt.Errorf("--connections must be between %[2]d and 1000: %[1]d", f.Connections, MinConnections)
	}
	if _, err := f.Endpoints("" /* version */, nil /* clock */); err != nil { // which does not connect
		return err
	}
	return errors.Join(f.validateEndpoints(), f.CheckKey())
}

// Learning returns the URL of the learning platform; nil if there is none.
func (f WorkFlags) Learning() (*url.URL, error) {
	if f.LearnerURL == "" {
		return nil, nil
	}
	u, err := mail.LearningURL(f.LearnerURL)
	if err != nil {
		return nil, fmt.Errorf("--learner-url: %w", err)
	}
	return u, nil
}

// MinConnections is the minimum pool size: the daily refresh needs two connections at a time.
const MinConnections = 5

// ConnectionsNeeded returns the maximum number of connections of a process to the server: its pool, the reserved ones
// and its listeners. A process without background work has two listeners less, those for email and reports. The pool is
// omitted behind a pooler, which has its own connections.
func (f WorkFlags) ConnectionsNeeded(working, pooled bool) int {
	n := f.Connections + pg.ReservedConns + pg.Listeners
	if pooled {
		n -= f.Connections
	}
	if !working {
		n -= 2
	}
	return n
}

// CheckConnections returns an error if the process may need more connections than the database allows, and warns if
// other processes leave too few. working reports whether the process does background work.
func (f WorkFlags) CheckConnections(ctx context.Context, d *db.DB, log *slog.Logger, working bool) error {
	conns, err := doctor.ReadConnections(ctx, d, f.ConnectionsNeeded(working, d.Pooled()))
	switch {
	case err != nil:
		return err
	case conns.TooFew():
		return fmt.Errorf("this process may need %d connections (--connections %d), but the database allows only %d; "+
			"lower --connections or raise the database's max_connections", conns.Needed, f.Connections, conns.Allowed)
	case conns.Scarce():
		log.WarnContext(ctx, "the database may run out of connections; lower --connections or raise the database's max_connections",
			"needed", conns.Needed, "used_by_others", conns.Used, "allowed", conns.Allowed)
	}
	return nil
}

// EndClockHold accepts the day that the clock shows, if --accept-clock is set and work waits because of that day.
// command is the command that accepts it.
func (f WorkFlags) EndClockHold(ctx context.Context, d *db.DB, log *slog.Logger, command string) error {
	if !f.AcceptClock {
		return nil
	}
	entry := domain.AuditEntry{Operation: command, Fields: []string{"accept_clock"}}
	accepted, err := d.AcceptClock(ctx, database.AsCommand(entry))
	switch {
	case err != nil:
		return err
	case accepted:
		log.WarnContext(ctx, "the clock's date is accepted; remove --accept-clock", "now", d.Now())
	default:
		log.InfoContext(ctx, "--accept-clock has no effect, because no work waits for the clock's date")
	}
	return nil
}

// StartTelemetry opens the log of a process and its traces, which are nil unless the OTEL_… variables enable them.
// flush exports the remaining spans, within telemetry.FlushWithin; it does nothing without traces.
func (f WorkFlags) StartTelemetry(
	ctx context.Context, s cli.Env,
) (log *slog.Logger, traces *telemetry.Telemetry, flush func(), err error) {
	log = output.NewLog(s.Err, f.LogLevel, f.LogFormat)
	traces, err = telemetry.Start(ctx, s.Version, log)
	return log, traces, func() {
		last, cancel := context.WithTimeout(context.WithoutCancel(ctx), telemetry.FlushWithin)
		defer cancel()
		traces.Shutdown(last, log)
	}, err
}

// StartupEnv returns the environment for the start of a process, which prints its steps to the error stream. If the log
// is JSON, they become lines of the log, so that every line of the stream is JSON.
func (f WorkFlags) StartupEnv(s cli.Env, log *slog.Logger) cli.Env {
	if f.LogFormat == "json" {
		s.Err = slog.NewLogLogger(log.Handler(), slog.LevelInfo).Writer()
	}
	return s
}

// webhookFlags restrict where events may be delivered.
type webhookFlags struct {
	WebhookAllowPrivate bool   `name:"webhook-allow-private" help:"Also deliver events to private, local and special IP addresses, for tests and closed networks."`
	WebhookCA           string `name:"webhook-ca" type:"path" placeholder:"FILE" help:"Certificate authorities (PEM) to trust for webhook endpoints, in addition to the system's."`
}

// Endpoints returns the client of webhook endpoints, for a version of the program.
func (f webhookFlags) Endpoints(version string, clock domain.Clock) (*webhook.Endpoints, error) {
	e, err := webhook.NewEndpoints(webhook.Options{
		AllowPrivate: f.WebhookAllowPrivate, CAFile: f.WebhookCA, Version: version, Clock: clock,
	})
	if err != nil {
		return nil, fmt.Errorf("--webhook-ca: %w", err)
	}
	return e, nil
}

// DirectoryFlags set the addresses of directories.
type DirectoryFlags struct {
	GraphURL  string `name:"microsoft-graph-url" placeholder:"URL" help:"URL of Microsoft Graph, without a version, for national clouds. Default: https://graph.microsoft.com."`
	LoginURL  string `name:"microsoft-login-url" placeholder:"URL" help:"URL where Microsoft issues tokens, for national clouds. Default: https://login.microsoftonline.com."`
	GoogleURL string `name:"google-url" placeholder:"URL" help:"URL of Google's Admin SDK. Default: https://admin.googleapis.com."`
}

// Connector returns a function that connects to directories. Its requests have spans unless traces is nil.
func (f DirectoryFlags) Connector(traces *telemetry.Telemetry) directory.Connect {
	return directory.NewConnect(directory.Endpoints{Graph: f.GraphURL, Login: f.LoginURL, Google: f.GoogleURL},
		traces.Transport)
}

// validateEndpoints returns an error for the first address that is given and invalid.
func (f DirectoryFlags) validateEndpoints() error {
	for _, flag := range []struct{ name, address string }{
		{"--microsoft-graph-url", f.GraphURL}, {"--microsoft-login-url", f.LoginURL}, {"--google-url", f.GoogleURL},
	} {
		if flag.address == "" {
			continue
		}
		if err := directory.CheckEndpoint(flag.address); err != nil {
			return fmt.Errorf("%s: %w", flag.name, err)
		}
	}
	return nil
}
