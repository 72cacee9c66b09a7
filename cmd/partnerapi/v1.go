package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"partnerapi/db"
	"partnerapi/db/migrate"
	"partnerapi/domain"
	"partnerapi/idmap"
	"partnerapi/platform/site"
	"partnerapi/v1compat"
	"partnerapi/v1compat/retire"
	"partnerapi/v1compat/usage"
	v2 "partnerapi/v2"
)

// This file and those named v1_… are all that the program knows of version 1.
// Deleting them with the packages v1compat and idmap switches v1 off; nothing else
// changes.

// registrySize is how many objects the registry remembers, at some 200 bytes
// each.
const registrySize = 100_000

// The list of extensions has to be filled before main runs, by a file that may
// not be there: the one thing that init is for.
func init() {
	extensions = append(extensions, extension{
		commands: &struct {
			IDMap  idmapCmd  `cmd:"" name:"idmap" help:"The numbers that v1 knows objects by."`
			V1     v1Cmd     `cmd:"" name:"v1" help:"Retire v1: announce its end, move callers on, and end it."`
			Parity parityCmd `cmd:"" help:"Compare what v1 and v2 say, to move a caller from one to the other."`
		}{},
		migrate: func(ctx context.Context, d *db.DB) error { return idmap.Migrate(ctx, d.SQL()) },
		steps:   stepsV1,
		version: func(ctx context.Context, d *db.DB) (int64, int64, error) { return idmap.SchemaVersion(ctx, d.SQL()) },
		mount:   mountV1,
		name:    "v1",
		document: func(api *v2.API) ([]byte, error) {
			return v1compat.New(api, v1compat.Config{}).YAML()
		},
		reference:  referenceV1,
		guides:     []string{"moving-from-v1", "migrating"},
		guidePaths: map[string]string{"migrating": "/docs/migrating"},
		routes:     routesV1,
		greet:      greetV1,
	})
}

func stepsV1(ctx context.Context, d *db.DB) (steps []migrate.Step, err error) {
	scripts, err := idmap.Scripts(ctx, d.SQL())
	if err != nil {
		return nil, err
	}
	for _, s := range scripts {
		step, err := migrate.ParseStep("v1/"+s.Name, s.Text)
		if err != nil {
			return nil, err
		}
		step.Applied = s.Applied
		steps = append(steps, step)
	}
	return steps, migrate.Size(ctx, d, steps)
}

func mountV1(ctx context.Context, s *service) error {
	store := retire.NewStore(s.db.DB, s.clock)
	if err := store.Serves(ctx, s.config.Release.String()); err != nil {
		return err
	}
	state, err := retire.Keep(ctx, store)
	if err != nil {
		return err
	}
	registry := idmap.New(s.db.DB, registrySize)
	used := usage.New(s.db.DB, s.clock, s.log)
	config := v1compat.Config{
		Registry: registry, Clock: s.clock, Release: s.config.Release, Usage: used, Lifecycle: state.State,
	}
	if s.redis != nil {
		config.Store = v1compat.NewRedis(s.redis, s.log)
	}
	if err := v1compat.New(s.api, config).Mount(s.edge, s.engine); err != nil {
		return err
	}
	s.beside(ctx, "watch the registry", func(ctx context.Context) { registry.Watch(ctx, s.log) })
	s.beside(ctx, "watch the retirement", func(ctx context.Context) { state.Watch(ctx, s.log) })
	s.beside(ctx, "count the use of version 1", func(ctx context.Context) {
		tick := time.NewTicker(usage.Every)
		defer tick.Stop()
		used.Run(ctx, tick.C)
	})
	s.atEnd = append(s.atEnd, func(ctx context.Context) { used.Record(ctx) })
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
	entries, err := idmap.New(d.DB, 0).Describe(ctx, idmap.Client, client.String())
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
