package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
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

// greet prints the service's address and, for a demonstration, requests to try.
func greet(ctx context.Context, to io.Writer, s *service, address string, demo *seed.DemoKeys) error {
	var text strings.Builder
	fmt.Fprintf(&text, "\npartnerapi %s serves v2 release %s at %s\n", version, s.config.Release, address)
	fmt.Fprintf(&text, "  start page: %s/\n", address)
	if demo == nil {
		fmt.Fprintf(&text, "  documents: %s/v2/openapi.yaml; keys: the command keys create\n\n", address)
		_, err := io.WriteString(to, text.String())
		return err
	}
	text.WriteString("\nKeys of the demonstration:\n")
	for _, k := range [][2]string{
		{demo.All, "all clients; read, write"}, {demo.ReadOnly, "all clients; read"},
		{demo.Subset, "two clients; read, write"}, {demo.Other, "another partner; read, write"},
	} {
		fmt.Fprintf(&text, "  %-18s %s\n", k[0], k[1])
	}
	commands := []string{fmt.Sprintf("curl -s -H 'X-API-Key: %s' '%s/v2/clients?limit=2'", demo.All, address)}
	for _, e := range extensions {
		more, err := e.Greet(ctx, s.db, address, demo.All, demo.Client)
		if err != nil {
			return err
		}
		commands = append(commands, more...)
	}
	text.WriteString("\nTry:\n")
	for _, command := range commands {
		fmt.Fprintf(&text, "  %s\n", command)
	}
	text.WriteByte('\n')
	_, err := io.WriteString(to, text.String())
	return err
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
