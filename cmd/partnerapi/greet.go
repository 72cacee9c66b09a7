package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/netip"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"partnerapi/cmd/internal/extension"
	"partnerapi/cmd/internal/output"
	"partnerapi/db"
	"partnerapi/db/reports"
	"partnerapi/db/seed"
	"partnerapi/v2/api"
	"partnerapi/v2/op/mcp"
)

// loadDemo fills an empty database with the demonstration, and returns its keys; nil without --demo.
func (c serveCmd) loadDemo(ctx context.Context, d *db.DB) (*seed.DemoKeys, error) {
	if !c.Demo {
		return nil, nil
	}
	demo, err := seed.Demo(ctx, d)
	if err != nil {
		return nil, fmt.Errorf("fill the database with demonstration data: %w", err)
	}
	return &demo, nil
}

// greeting is what a service says of itself when it begins to serve.
type greeting struct {
	release, address string
	// keys are those of a demonstration, each with its access; commands are commands to try or, for an empty database,
	// those that lead to a first client.
	keys     [][2]string
	commands []string
	// emails says where emails go.
	emails string
	// public is the address of a demonstration that other machines can reach.
	public string
}

// programPath is the name by which a shell finds this program. main changes it.
var programPath = "partnerapi"

// programName returns the name by which a shell finds a program that was called as name.
func programName(name string) string {
	if _, err := exec.LookPath("partnerapi"); err == nil || !strings.ContainsRune(name, filepath.Separator) {
		return "partnerapi"
	}
	return name
}

// greet prints the service's address and commands: for a demonstration, what to try, and for an empty database, the way to
// a first client. If the log is JSON, it is a line of the log, so that every line of the process is JSON.
func greet(ctx context.Context, to io.Writer, log *slog.Logger, s *service, address string, demo *seed.DemoKeys) error {
	g := greeting{release: s.config.Release.String(), address: address, emails: s.config.emailsGoTo()}
	if demo == nil {
		used, err := s.db.HasPartners(ctx)
		if err != nil {
			return err
		}
		if !used {
			g.commands = s.config.firstSteps(address)
		}
	} else {
		g.keys = [][2]string{
			{demo.All, "all clients; read, write"}, {demo.ReadOnly, "all clients; read"},
			{demo.Subset, "two clients; read, write"}, {demo.Other, "another partner; read, write"},
		}
		if !isLoopback(s.config.Listen) {
			g.public = s.config.Listen
			log.WarnContext(ctx, "publicly known demonstration keys are accepted on an address that other machines can access", "listen", g.public)
		}
		g.commands = []string{fmt.Sprintf("curl -s -H 'X-API-Key: %s' '%s/v2/clients?limit=2'", demo.All, address)}
		for _, e := range extensions {
			more, err := e.Greet(ctx, extension.Demonstration{
				DB: s.db, Program: programPath, Address: address, Key: demo.All, Client: demo.Client, Release: s.config.Release,
			})
			if err != nil {
				return err
			}
			g.commands = append(g.commands, more...)
		}
		if s.config.Release >= mcp.Since {
			g.commands = append(g.commands, fmt.Sprintf("PARTNERAPI_KEY=%s %s mcp --url %s   # connects an AI assistant", demo.ReadOnly, programPath, address))
		}
	}
	if s.config.LogFormat == "json" {
		g.log(ctx, log)
		return nil
	}
	_, err := io.WriteString(to, g.String())
	return err
}

// emailsGoTo says where the emails of the process go.
func (c serveCmd) emailsGoTo() string {
	switch {
	case c.NoWork:
		return "sent by partnerapi work"
	case c.SMTPURL != "":
		return "to the mail server of --smtp-url"
	}
	return "files in " + filepath.Join(c.DataDir, "outbox")
}

// firstSteps returns the commands that lead from an empty database to a first client.
func (c serveCmd) firstSteps(address string) []string {
	database := c.databaseFlag()
	client := fmt.Sprintf(`curl -s -H "X-API-Key: $KEY" -d '{"name": "First client"}' '%s/v2/clients'`, address)
	if since := api.CreateClient.Meta().Since; c.Release < since {
		client = fmt.Sprintf(`curl -s -H "X-API-Key: $KEY" '%s/v2/clients'   # to create clients, serve --release %s or later`, address, since)
	}
	return []string{
		programPath + " partners create 'First partner'" + database,
		"KEY=$(" + programPath + " keys create --name 'First key' --partner 'First partner' --clients all --scopes read,write" + database + ")",
		client,
	}
}

// databaseFlag returns the flag by which a command in another shell uses the database of the process. It prints no
// password: the command then reads the variable of the flag.
func (c serveCmd) databaseFlag() string {
	switch {
	case c.DatabaseURL == "":
		return " --data-dir " + shellWord(c.DataDir)
	case output.WithoutSecrets(c.DatabaseURL) != c.DatabaseURL:
		return ` --database-url "$PARTNERAPI_DATABASE_URL"`
	}
	return " --database-url " + shellWord(c.DatabaseURL)
}

// shellWord quotes a text as one word of a shell, if that is necessary.
func shellWord(text string) string {
	if strings.ContainsFunc(text, func(r rune) bool { return !strings.ContainsRune(plainRunes, r) }) {
		return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
	}
	return text
}

// plainRunes are characters that mean nothing to a shell.
const plainRunes = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/._-:@"

// log writes the greeting as a line of the log.
func (g greeting) log(ctx context.Context, log *slog.Logger) {
	line := []any{"version", builtVersion(), "release", g.release, "address", g.address}
	switch {
	case g.keys != nil:
		line = append(line, "demonstration_keys", g.keys, "try", g.commands)
	case g.commands != nil:
		line = append(line, "first_steps", g.commands)
	}
	log.InfoContext(ctx, "serving", line...)
}

// String returns the greeting for people.
func (g greeting) String() string {
	var text strings.Builder
	fmt.Fprintf(&text, "\npartnerapi %s serves v2 release %s at %s\n", builtVersion(), g.release, g.address)
	fmt.Fprintf(&text, "  start page: %s/\n", g.address)
	if g.keys == nil {
		fmt.Fprintf(&text, "  OpenAPI document: %s/v2/openapi.yaml; to create API keys, run keys create\n", g.address)
		if g.commands != nil {
			text.WriteString("\nThe database is empty. To create a first client, run in another terminal:\n")
		}
		g.writeCommands(&text)
		return text.String()
	}
	fmt.Fprintf(&text, "  emails: %s\n", g.emails)
	text.WriteString("\nDemonstration keys:\n")
	for _, k := range g.keys {
		fmt.Fprintf(&text, "  %-18s %s\n", k[0], k[1])
	}
	if g.public != "" {
		fmt.Fprintf(&text, "\nWARNING: these keys are public, and other machines can access %s: anyone there can read and\n"+
			"change everything. Serve a demonstration on --listen 127.0.0.1:8080; serve real clients without --demo.\n", g.public)
	}
	text.WriteString("\nTry:\n")
	g.writeCommands(&text)
	return text.String()
}

// writeCommands writes the commands, a line each, and the empty line at the end of the greeting.
func (g greeting) writeCommands(text *strings.Builder) {
	for _, command := range g.commands {
		fmt.Fprintf(text, "  %s\n", command)
	}
	text.WriteByte('\n')
}

// isLoopback reports whether only this machine can reach a listener's address.
func isLoopback(address string) bool {
	listener, err := netip.ParseAddrPort(address)
	return err == nil && listener.Addr().Unmap().IsLoopback()
}

// demoAge is the minimum age of the reports that a demonstration has from its start. The background work makes the
// younger ones.
const demoAge = 48 * time.Hour

// completeDemo adds the demo data that needs the encryption key or the report store: the secret of the webhook
// subscription, if there is a key, and the reports that are at least demoAge old. A report that fails stays pending for
// the background work.
func (c serveCmd) completeDemo(ctx context.Context, d *db.DB, r resources, log *slog.Logger) error {
	if !c.Demo {
		return nil
	}
	if r.keys != nil {
		if err := seed.SealSubscription(ctx, d, r.keys.Seal); err != nil {
			return err
		}
	}
	pending, err := reports.PendingReports(ctx, d, d.Now().Add(-demoAge), 100) // all: there are few
	if err != nil {
		return err
	}
	worker := newReportWorker(d, r, log, newReportMetrics(), nil) // neither counted nor traced
	for _, p := range pending {
		if _, err := worker.Process(ctx, reports.ReportLease{Client: p.ClientID, Report: p.ID}); err != nil {
			log.WarnContext(ctx, "a report of the demonstration was not created; it will be retried", "error", err)
		}
	}
	return nil
}
