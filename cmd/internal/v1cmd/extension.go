// Package v1cmd adds version 1 to the program: its extension, and the commands that
// compare and retire it. It is deleted with version 1.
package v1cmd

import (
	"context"
	"errors"
	"fmt"
	"html/template"
	"slices"
	"time"

	"partnerapi/cmd/internal/extension"
	"partnerapi/db"
	"partnerapi/db/doctor"
	"partnerapi/db/migrate"
	"partnerapi/idmap"
	"partnerapi/platform/site"
	"partnerapi/v1compat"
	"partnerapi/v1compat/retire"
	"partnerapi/v1compat/usage"
	"partnerapi/v2/op"
)

// The program refers to version 1 only in this package, in two lines of main.go (its
// import and its place in the list of extensions), and in the flag --v1 of keys create.
// Deleting them with the packages v1compat and idmap removes v1; nothing else changes.

// registrySize is how many objects the registry remembers, at some 200 bytes each.
const registrySize = 100_000

// commands are the commands of version 1.
type commands struct {
	IDMap  idmapCmd  `cmd:"" name:"idmap" help:"Import, export and look up the numeric IDs of v1."`
	V1     v1Cmd     `cmd:"" name:"v1" help:"Retire v1: announce its end, move callers to v2, and end it."`
	Parity parityCmd `cmd:"" help:"Compare the responses of v1 and v2 before a caller moves to v2."`
}

// Extension returns version 1 as an extension, for main's list.
func Extension() extension.Extension {
	return extension.Extension{
		Commands: func() any { return new(commands) },
		Tables: doctor.Tables{
			Name:    "v1's tables",
			Version: func(ctx context.Context, d *db.DB) (int64, int64, error) { return idmap.SchemaVersion(ctx, d.DB) },
			Migrate: func(ctx context.Context, d *db.DB) error { return idmap.Migrate(ctx, d.DB) },
			Steps:   stepsV1,
		},
		Mount:      mountV1,
		Name:       "v1",
		Document:   func() ([]byte, error) { return v1compat.Declare(v1compat.Config{}).YAML() },
		Reference:  referenceV1,
		Guides:     site.Group{Title: "Moving from v1", Guides: guidesV1},
		GuidePaths: guidePathsV1(),
		Operate:    []string{"parity"},
		Routes:     routesV1,
		Greet:      greetV1,
	}
}

// guidesV1 are the guides about v1. The migration guide has a page for each resource.
var guidesV1 = []string{
	"moving-from-v1", "migrating", "migrating/partner", "migrating/clients", "migrating/users", "migrating/collections",
	"migrating/policies", "migrating/dark-web", "migrating/training", "migrating/phishing", "migrating/mails", "migrating/reports",
}

// guidePathsV1 maps the pages of the migration guide to their paths.
func guidePathsV1() map[string]string {
	paths := map[string]string{}
	for _, name := range guidesV1[1:] { // moving-from-v1 is no page of the migration guide
		paths[name] = "/docs/" + name
	}
	return paths
}

// noticeOf returns a notice that v1 ends or has ended, with links to the guides on how to move to v2. It is empty before
// the announcement.
func noticeOf(s *retire.State) template.HTML {
	what, date := "Version 1 of the API ends on", time.Time{}
	switch {
	case s.EndedAt != nil:
		what, date = "Version 1 of the API ended on", *s.EndedAt
	case s.Announcement != nil:
		date = s.Announcement.Sunset
	default:
		return ""
	}
	date = date.UTC()
	return template.HTML(fmt.Sprintf(`<p><strong>%s <time datetime="%s">%s</time>.</strong> `+
		`Read <a href="/docs/guide/moving-from-v1">how to move to version 2</a> and `+
		`<a href="/docs/migrating">what replaces each operation of version 1</a>.</p>`,
		what, date.Format(time.DateOnly), date.Format("2 January 2006")))
}

// changesOf returns entries of the changelog for the announcement of v1's end, each postponement and the end, newest
// first.
func changesOf(s *retire.State) (list []site.Change) {
	const instead = "[Moving from version 1](/docs/guide/moving-from-v1) explains how to move, and [the migration guide](/docs/migrating) " +
		"lists what replaces each operation of version 1."
	const long = "2 January 2006"
	if s.EndedAt != nil {
		list = append(list, site.Change{
			ID: "v1-ended", Title: "Version 1 has ended", On: s.EndedAt.UTC(),
			Text: "Requests to version 1 return 410. " + instead,
		})
	}
	if s.Announcement == nil {
		return list
	}
	announced, first := s.Announcement.Announced.UTC(), s.Announcement.Sunset.UTC()
	change := func(sunset time.Time, title string, on time.Time, text string) {
		list = append(list, site.Change{
			ID: "v1-ends-" + sunset.Format(time.DateOnly), Title: title + sunset.Format(long), On: on,
			Text: text + " After " + s.Announcement.Sunset.UTC().Format(long) + ", requests to version 1 may return 410. " + instead,
		})
	}
	for _, p := range slices.Backward(s.Postponements) {
		first = p.Previous.UTC()
		change(p.Sunset.UTC(), "End of version 1 postponed to ", p.At.UTC(),
			"The end of version 1 was postponed from "+first.Format(long)+" to "+p.Sunset.UTC().Format(long)+".")
	}
	title := "Version 1 ends on "
	if len(s.Postponements) > 0 {
		title = "End of version 1 announced for "
	}
	change(first, title, announced, "The end of version 1 was announced on "+announced.Format(long)+".")
	return list
}

// stepsV1 returns the migrations of v1's tables, with the tables that each locks and for about how long.
func stepsV1(ctx context.Context, d *db.DB) (steps []migrate.Step, err error) {
	scripts, err := idmap.Scripts(ctx, d.DB)
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
	return steps, migrate.Size(ctx, d, steps) // which estimates how long each lock is held
}

// mountV1 records the served release, mounts v1 on the service, and starts its background work.
func mountV1(ctx context.Context, s extension.Host) error {
	store := retire.NewStore(s.DB.DB, s.Clock)
	if err := store.RecordRelease(ctx, s.Release.String()); err != nil {
		return err
	}
	keeper, err := retire.NewKeeper(ctx, store)
	if err != nil {
		return err
	}
	registry := idmap.New(s.DB.DB, registrySize)
	counter := usage.New(s.DB.DB, s.Clock, s.Log)
	counter.PruneIf(s.DB.ClockTrusted)
	config := v1compat.Config{
		Registry: registry, Clock: s.Clock, Release: s.Release, Usage: counter, Keeper: keeper,
		SampleBase: site.SampleBase, SupportURL: s.Documents.SupportURL, DocumentHandler: s.Documents.Handler,
		Root: s.Documents.Root(),
	}
	if s.Redis != nil {
		config.Store = v1compat.NewRedis(s.Redis, s.Clock, s.Log)
	}
	if err := v1compat.New(s.API, config).Mount(s.Edge, s.Engine); err != nil {
		return err
	}
	s.Notify(site.Notice{
		Reference: "v1", Guides: guidesV1, Text: func() template.HTML { return noticeOf(keeper.State()) },
		Changes: func() []site.Change { return changesOf(keeper.State()) },
	})
	s.Beside(ctx, "watch the registry", func(ctx context.Context) { registry.Watch(ctx, s.Log) })
	s.Beside(ctx, "watch the retirement", func(ctx context.Context) { keeper.Watch(ctx, s.Log) })
	s.Beside(ctx, "count the use of version 1", counter.Run)
	s.AtEnd(counter.Record)
	return nil
}

// referenceV1 returns the source of v1's reference.
func referenceV1() (site.Reference, error) {
	document, err := v1compat.Declare(v1compat.Config{}).Document()
	return site.Reference{
		Name: "v1", Title: "API v1", Prefix: "/v1", Document: document, Files: []string{"/v1/openapi.yaml"},
	}, err
}

// routesV1 lists v1's routes in the order of its table.
func routesV1() []extension.Route {
	var routes []extension.Route
	for meta, operation := range v1compat.Declare(v1compat.Config{}).Routes() {
		routes = append(routes, extension.Route{
			ID: meta.ID, Method: meta.Method, Path: meta.Path, Operation: operation, Fails: meta.Fails,
		})
	}
	return routes
}

// greetV1 returns a command that calls v1 for a client and, for a release that has all of v1's successors, one that
// compares v1 with v2. A client without a number is an error.
func greetV1(ctx context.Context, on extension.Demonstration) ([]string, error) {
	entries, err := idmap.New(on.DB.DB, 0).Describe(ctx, idmap.Client, on.Client.String()) // 0: no cache
	if err != nil || len(entries) == 0 {
		return nil, errors.Join(err, fmt.Errorf("the client has no numeric ID"))
	}
	commands := []string{
		fmt.Sprintf("curl -s -H 'X-API-Key: %s' '%s/v1/clients/%d/users?limit=2'", on.Key, on.Address, entries[0].Number),
	}
	if on.Release == op.Latest {
		commands = append(commands, fmt.Sprintf("PARTNERAPI_KEY=%s %s parity --url %s --sample 1", on.Key, on.Program, on.Address))
	}
	return commands, nil
}
