package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/netip"
	"strings"
	"time"

	"partnerapi/db"
	"partnerapi/db/reports"
	"partnerapi/db/seed"
)

// loadDemo fills an empty database with the demonstration, and returns its keys; nil without --demo.
func (c serveCmd) loadDemo(ctx context.Context, d *db.DB) (*seed.DemoKeys, error) {
	if !c.Demo {
		return nil, nil
	}
	demo, err := seed.Demo(ctx, d)
	if err != nil {
		return nil, fmt.Errorf("fill the database with the demonstration: %w", err)
	}
	return &demo, nil
}

// greeting is what a service says of itself when it begins to serve.
type greeting struct {
	release, address string
	// keys are those of a demonstration, each with its access; commands are requests to try.
	keys     [][2]string
	commands []string
	// public is the address of a demonstration that other machines can reach.
	public string
}

// greet prints the service's address and, for a demonstration, requests to try. If the log is JSON, it is a line of the
// log, so that every line of the process is JSON.
func greet(ctx context.Context, to io.Writer, log *slog.Logger, s *service, address string, demo *seed.DemoKeys) error {
	g := greeting{release: s.config.Release.String(), address: address}
	if demo != nil {
		g.keys = [][2]string{
			{demo.All, "all clients; read, write"}, {demo.ReadOnly, "all clients; read"},
			{demo.Subset, "two clients; read, write"}, {demo.Other, "another partner; read, write"},
		}
		if !isLoopback(s.config.Listen) {
			g.public = s.config.Listen
			log.WarnContext(ctx, "public demonstration keys are accepted on an address that is not loopback", "listen", g.public)
		}
		g.commands = []string{fmt.Sprintf("curl -s -H 'X-API-Key: %s' '%s/v2/clients?limit=2'", demo.All, address)}
		for _, e := range extensions {
			more, err := e.Greet(ctx, s.db, address, demo.All, demo.Client)
			if err != nil {
				return err
			}
			g.commands = append(g.commands, more...)
		}
	}
	if s.config.LogFormat == "json" {
		g.log(ctx, log)
		return nil
	}
	_, err := io.WriteString(to, g.String())
	return err
}

// log writes the greeting as a line of the log.
func (g greeting) log(ctx context.Context, log *slog.Logger) {
	line := []any{"version", version, "release", g.release, "address", g.address}
	if g.keys != nil {
		line = append(line, "demonstration_keys", g.keys, "try", g.commands)
	}
	log.InfoContext(ctx, "serving", line...)
}

// String returns the greeting for people.
func (g greeting) String() string {
	var text strings.Builder
	fmt.Fprintf(&text, "\npartnerapi %s serves v2 release %s at %s\n", version, g.release, g.address)
	fmt.Fprintf(&text, "  start page: %s/\n", g.address)
	if g.keys == nil {
		fmt.Fprintf(&text, "  documents: %s/v2/openapi.yaml; keys: the command keys create\n\n", g.address)
		return text.String()
	}
	text.WriteString("\nKeys of the demonstration:\n")
	for _, k := range g.keys {
		fmt.Fprintf(&text, "  %-18s %s\n", k[0], k[1])
	}
	if g.public != "" {
		fmt.Fprintf(&text, "\nWARNING: these keys are public, and %s can be reached from other machines: anyone there can read and\n"+
			"change everything. Serve a demonstration on --listen 127.0.0.1:8080; serve real clients without --demo.\n", g.public)
	}
	text.WriteString("\nTry:\n")
	for _, command := range g.commands {
		fmt.Fprintf(&text, "  %s\n", command)
	}
	text.WriteByte('\n')
	return text.String()
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
			log.WarnContext(ctx, "a report of the demonstration was not made; it will be tried again", "error", err)
		}
	}
	return nil
}
