package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"partnerapi/db"
	"partnerapi/domain"
	"partnerapi/idmap"
	"partnerapi/platform/site"
	"partnerapi/v1compat"
	v2 "partnerapi/v2"
)

// This file is all that the program knows of version 1. Deleting it with the
// packages v1compat and idmap switches v1 off; nothing else changes.

// registrySize is how many objects the registry remembers, at some 200 bytes
// each.
const registrySize = 100_000

// The list of extensions has to be filled before main runs, by a file that may
// not be there: the one thing that init is for.
func init() {
	extensions = append(extensions, extension{
		commands: &struct {
			IDMap  idmapCmd  `cmd:"" name:"idmap" help:"The numbers that v1 knows objects by."`
			Parity parityCmd `cmd:"" help:"Compare what v1 and v2 say, to move a caller from one to the other."`
		}{},
		migrate: func(ctx context.Context, d *db.DB) error { return idmap.Migrate(ctx, d.SQL()) },
		version: func(ctx context.Context, d *db.DB) (int64, int64, error) { return idmap.SchemaVersion(ctx, d.SQL()) },
		mount:   mountV1,
		name:    "v1",
		document: func(api *v2.API) ([]byte, error) {
			return v1compat.New(api, v1compat.Config{}).YAML()
		},
		reference: referenceV1,
		guides:    []string{"moving-from-v1"},
		routes:    routesV1,
		greet:     greetV1,
	})
}

func mountV1(ctx context.Context, s *service) error {
	registry := idmap.New(s.db.SQL(), registrySize)
	config := v1compat.Config{Registry: registry, Clock: s.clock, Release: s.config.Release}
	if s.redis != nil {
		config.Store = v1compat.NewRedis(s.redis, s.log)
	}
	if err := v1compat.New(s.api, config).Mount(s.edge, s.engine); err != nil {
		return err
	}
	s.group.Go(func() { registry.Watch(ctx, s.log) })
	return nil
}

func referenceV1(api *v2.API) (site.Reference, error) {
	document, err := v1compat.New(api, v1compat.Config{}).Document()
	return site.Reference{
		Name: "v1", Title: "API v1", Prefix: "/v1", Document: document, Files: []string{"/v1/openapi.yaml"},
	}, err
}

func routesV1(api *v2.API) []route {
	var routes []route
	for meta, operation := range v1compat.New(api, v1compat.Config{}).Routes() {
		routes = append(routes, route{meta.ID, meta.Method, meta.Path, operation, meta.Fails})
	}
	return routes
}

// greetV1 shows the commands of v1 for a client, and one that shows v1 and v2
// saying the same of it.
func greetV1(ctx context.Context, d *db.DB, address, key string, client domain.ClientID) ([]string, error) {
	entries, err := idmap.New(d.SQL(), 0).Describe(ctx, idmap.Client, client.String())
	if err != nil || len(entries) == 0 {
		return nil, errors.Join(err, fmt.Errorf("the client has no number"))
	}
	n := entries[0].Number
	return []string{
		fmt.Sprintf("curl -s -H 'X-API-Key: %s' '%s/v1/clients/%d/users?limit=2'", key, address, n),
		fmt.Sprintf("for path in 'v1/clients?ids=%d' v2/clients/%s; do curl -s -H 'X-API-Key: %s' \"%s/$path\"; echo; done",
			n, client, key, address),
	}, nil
}

type idmapCmd struct {
	Import importCmd `cmd:"" help:"Make numbers from before the registry the objects' own."`
	Lookup lookupCmd `cmd:"" help:"Show what the registry knows of a number or an id."`
}

type importCmd struct {
	databaseFlags
	File   string `arg:"" type:"existingfile" help:"Lines of kind,number,id."`
	DryRun bool   `name:"dry-run" env:"-" help:"Say what would be, and change nothing."`
}

// Run imports a file, or refuses it with every bad row.
func (c importCmd) Run(ctx context.Context, s streams) (err error) {
	file, err := os.Open(c.File)
	if err != nil {
		return err
	}
	defer file.Close()
	d, shut, err := c.open(ctx, s.err)
	if err != nil {
		return err
	}
	defer closing(shut, &err)
	report, err := idmap.Import(ctx, d.SQL(), file, c.DryRun)
	for _, refusal := range report.Refused {
		fmt.Fprintln(s.err, refusal)
	}
	if err != nil {
		return err
	}
	verb := "moved"
	if c.DryRun {
		verb = "would move"
	}
	_, err = fmt.Fprintf(s.out, "%d rows: %s %d objects to their numbers, %d had them already\n", report.Rows, verb,
		report.Moved, report.Unchanged)
	return err
}

type lookupCmd struct {
	databaseFlags
	Kind string `arg:"" help:"client, collection, policy, template, group or report."`
	What string `arg:"" help:"A number, or an id as v2 shows it or as a UUID."`
}

// Run shows the registry's entries.
func (c lookupCmd) Run(ctx context.Context, s streams) (err error) {
	kind, err := idmap.ParseKind(c.Kind)
	if err != nil {
		return err
	}
	d, shut, err := c.open(ctx, s.err)
	if err != nil {
		return err
	}
	defer closing(shut, &err)
	entries, err := idmap.New(d.SQL(), 0).Describe(ctx, kind, strings.TrimSpace(c.What))
	if err != nil {
		return err
	}
	if len(entries) == 0 {
		return fmt.Errorf("the registry knows no %s %s", kind, c.What)
	}
	for _, entry := range entries {
		fmt.Fprintln(s.out, entry)
	}
	return nil
}
