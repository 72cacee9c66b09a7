package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/netip"
	"strings"

	"partnerapi/db"
	"partnerapi/db/seed"
)

// fill fills an empty database with the demonstration, where that was asked
// for, and returns what it holds.
func (c serveCmd) fill(ctx context.Context, d *db.DB) (*seed.DemoKeys, error) {
	if !c.Demo {
		return nil, nil
	}
	demo, err := seed.Demo(ctx, d)
	if err != nil {
		return nil, fmt.Errorf("fill the database with the demonstration: %w", err)
	}
	return &demo, nil
}

// reachedAt is the URL of a listen address. One that stands for all of the
// machine's addresses can be reached as localhost from there.
func reachedAt(listen string) string {
	if a, err := netip.ParseAddrPort(listen); err == nil && a.Addr().IsUnspecified() {
		listen = net.JoinHostPort("localhost", fmt.Sprint(a.Port()))
	}
	return "http://" + listen
}

// greet says where the service is and, in a demonstration, what to try.
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
		more, err := e.greet(ctx, s.db, address, demo.All, demo.Client)
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
