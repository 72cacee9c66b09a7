package config

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"

	"partnerapi/cmd/internal/cli"
	"partnerapi/cmd/internal/database"
	"partnerapi/platform/mail"
	"partnerapi/platform/report"
)

// WorkFlags say how the background work reaches the world.
type WorkFlags struct {
	DirectoryFlags
	database.KeyFlags
	StoreFlag
	FontFlag
	webhookFlags
	PublicURL string `name:"public-url" placeholder:"URL" help:"The address that callers reach the service at, with which links begin. It may have a path, which the proxy in front takes off. Default: the listen address."`
	SMTPURL   string `name:"smtp-url" placeholder:"URL" help:"The mail server, as smtp://user:password@host:port, or smtps://. Without it, mail goes to files in the folder outbox of --data-dir."`
	MailFrom  string `name:"mail-from" placeholder:"ADDRESS" help:"The sender of mail. Default: no-reply at the host of --public-url."`
	Workers   int    `default:"${workers}" help:"How many mails are under way at a time."`

	Connections int `default:"20" help:"How many connections to the database requests and background work may use. The process opens up to 9 more: for locks, readiness and metrics, and to be notified of mail, reports and changes of v1."`

	LogLevel  slog.Level `name:"log-level" default:"info" help:"The lowest level that is logged: debug, info, warn or error."`
	LogFormat string     `name:"log-format" enum:"text,json" default:"text" help:"The form of log lines: text or json."`
}

// Check refuses flags that nothing could be done with.
func (f WorkFlags) Check() error {
	if f.PublicURL != "" {
		if _, err := mail.PublicURL(f.PublicURL); err != nil {
			return fmt.Errorf("--public-url: %w", err)
		}
	}
	if _, err := mail.NewComposer(cmp.Or(f.PublicURL, "http://"+cli.DefaultListen), f.MailFrom); err != nil {
		return fmt.Errorf("--mail-from: %w", err)
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
		return fmt.Errorf("--workers: %d is not between 1 and 1000", f.Workers)
	}
	if f.Connections < MinConnections || f.Connections > 1000 {
		return fmt.Errorf("--connections: %d is not between %d and 1000", f.Connections, MinConnections)
	}
	if _, err := f.Endpoints("", nil); err != nil { // which does not connect
		return err
	}
	return errors.Join(f.validateEndpoints(), f.CheckKey())
}
