package main

import (
	"context"
	"maps"
	"reflect"
	"slices"
	"time"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/gin-gonic/gin"

	"partnerapi/docs"
	"partnerapi/domain"
	"partnerapi/platform/mail"
	"partnerapi/platform/site"
	"partnerapi/v2/api"
	"partnerapi/v2/op"
)

// guides lists the guides in reading order. Those of extensions follow.
var guides = []site.Group{
	{Title: "Get started", Guides: []string{"start", "keys", "generate-client"}},
	{Title: "Common tasks", Guides: []string{"onboard", "overdue", "simulation", "allowlist", "risk-score", "report", "billing"}},
	{Title: "Best practices", Guides: []string{"paging", "delta-sync", "connect-tools", "errors", "rate-limits", "idempotency", "releases"}},
	{Title: "Events", Guides: []string{"webhooks", "events", "listen"}},
	{Title: "Examples", Guides: []string{"examples", "nightly-sync", "click-tickets", "monthly-reports"}},
	{Title: "AI assistants", Guides: []string{"mcp"}},
}

// guidePaths are the paths of guides that are not at /docs/guide/NAME.
var guidePaths = map[string]string{
	"examples": "/docs/examples", "nightly-sync": "/docs/examples/nightly-sync",
	"click-tickets": "/docs/examples/click-tickets", "monthly-reports": "/docs/examples/monthly-reports",
}

// operate lists the operators' guides in reading order. Those of extensions follow.
var operate = []string{"operating", "versions", "scale", "issuing-keys", "emails", "import", "breaches", "flags", "metrics"}

// allGuides returns the guides, with the guides of extensions.
func allGuides() []site.Group {
	list := slices.Clone(guides)
	for _, e := range extensions {
		list = append(list, e.Guides)
	}
	return list
}

// guideOrder returns the names of all guides in reading order.
func guideOrder() (names []string) {
	for _, group := range allGuides() {
		names = append(names, group.Guides...)
	}
	return names
}

// releaseNotes describes what each release adds, and since which day it can be served.
var releaseNotes = map[op.Release]struct {
	on    time.Time
	about string
}{
	op.V2_0: {day(2026, 11, 21), "The first read operations: clients with their summaries and admins."},
	op.V2_1: {day(2026, 11, 22), "The other read operations: users, risk, training, phishing results, policies, collections, exposures and reports."},
	op.V2_2: {day(2026, 11, 22), "The write operations: clients, users, training, collections, frameworks, phishing, reports and syncs."},
	op.V2_3: {day(2026, 11, 22), "Webhooks, the event feed and the MCP server."},
	op.V2_4: {day(2026, 11, 25), "Client-wide training lists, user lookup by email address, the current API key, and cancellation of simulations."},
	op.V2_5: {day(2026, 11, 29), "The audit log, usage for billing, lists of departments, user overrides, campaigns by label, lists with the newest items first, and more settings for webhooks and MCP."},
}

// day returns the start of a day in UTC.
func day(year int, month time.Month, day int) time.Time {
	return time.Date(year, month, day, 0, 0, 0, 0, time.UTC)
}

// searchWords maps operation ids to words by which readers may search for the operation, besides those in its reference.
var searchWords = map[string]string{
	"clients.update":  "archive, offboard, deactivate, delete a client",
	"users.create":    "add a user",
	"users.list":      "list all users, high risk users",
	"users.update":    "deactivate, reactivate, offboard, delete, remove a user",
	"users.find":      "filter, search users by email",
	"training.assign": "assign a course, enroll, enrol",
	"admins.invite":   "add an admin",
	"usage.list":      "billing, invoice, license count, seats, active users per month",
}

// mountPages adds the pages for people. They need no key and count against no budget.
func (s *service) mountPages(ctx context.Context) error {
	config, err := pagesOf(s.config.Release)
	if err != nil {
		return err
	}
	config.Documents, config.Log, config.Demo, config.Notice = s.documents, s.log, s.config.Demo, s.notice
	if err := s.readBrand(ctx); err != nil {
		return err
	}
	config.Brand = s.brand.Load
	s.runInBackground(ctx, "watch the service's brand", s.watchBrand)
	s.pages = site.New(config)
	pages := gin.WrapH(s.pages)
	for _, path := range append(site.LikelyPaths(), "/", "/llms.txt", "/llms-full.txt", "/docs", "/docs/*page") {
		s.openPath(path, pages)
	}
	return nil
}

// readBrand reads the service's brand, which the pages show.
func (s *service) readBrand(ctx context.Context) error {
	read, err := s.db.Brand(ctx, domain.BrandOwner{})
	if err != nil {
		return err
	}
	if last := s.brand.Load(); last == nil || !reflect.DeepEqual(*last, read.Brand) {
		s.brand.Store(&read.Brand)
	}
	return nil
}

// brandEvery is how often a process reads the service's brand.
const brandEvery = time.Minute

// watchBrand reads the service's brand until ctx ends.
func (s *service) watchBrand(ctx context.Context) {
	for domain.Pause(ctx, brandEvery) == nil {
		if err := s.readBrand(ctx); err != nil {
			s.log.WarnContext(ctx, "the service's brand cannot be read", "error", err)
		}
	}
}

// mountLearning adds the pages that the links of emails to users lead to without a learning platform, or did before there
// was one.
func (s *service) mountLearning() error {
	platform, err := s.config.Learning()
	if err != nil {
		return err
	}
	pages := gin.WrapH(mail.LearningPages{Platform: platform, Log: s.log, Brand: func(context.Context) (domain.Brand, error) {
		return *s.brand.Load(), nil // which mountPages has set
	}})
	for _, path := range domain.LinkPaths {
		s.openPath(path, pages)
	}
	return nil
}

// pagesOf returns the content of the pages of a service that serves a release.
func pagesOf(release op.Release) (site.Config, error) {
	document, err := documentV2(release)
	if err != nil {
		return site.Config{}, err
	}
	config := site.Config{
		Version: builtVersion(), Releases: releasesOf(release), Guides: docs.Guides(), Groups: allGuides(),
		Operate: docs.Operate(), OperateOrder: slices.Clone(operate),
		GuidePaths: maps.Clone(guidePaths), Words: searchWords, Documents: &site.Documents{}, // mountPages sets another
		References: []site.Reference{{
			Name: "v2", Title: "API v2", Prefix: "/v2", Document: document,
			Files: []string{"/v2/openapi.yaml", "/v2/openapi.json"},
		}},
	}
	latest, err := documentV2(op.Latest)
	if err != nil {
		return site.Config{}, err
	}
	config.Changes = changesOf(config.Releases, latest)
	for _, e := range extensions {
		more, err := e.Reference()
		if err != nil {
			return site.Config{}, err
		}
		config.References = append(config.References, more)
		config.OperateOrder = append(config.OperateOrder, e.Operate...)
		maps.Copy(config.GuidePaths, e.GuidePaths)
	}
	return config, nil
}

// changesOf lists what each release added, the newest first. The document, that of the latest release, names the release
// that added each field and parameter.
func changesOf(releases []site.Release, document *openapi3.T) (list []site.Change) {
	additions := additionsSince(document)
	for i, r := range slices.Backward(releases) {
		note := releaseNotes[op.V2_0+op.Release(i)] // releases has all, from 2.0 on
		list = append(list, site.Change{
			ID: "release-" + r.Name, Title: "Release " + r.Name, On: note.on, Text: note.about, Operations: r.Operations,
			Additions: additions[r.Name],
		})
	}
	return list
}

// releasesOf lists all releases, with the operations that each adds, and whether each is part of the served release.
func releasesOf(served op.Release) []site.Release {
	var list []site.Release
	for r := op.V2_0; r <= op.Latest; r++ {
		release := site.Release{Name: r.String(), About: releaseNotes[r].about, Served: r <= served}
		for _, o := range api.Operations {
			if m := o.Meta(); m.Since == r {
				release.Operations = append(release.Operations, site.Operation{
					Method: m.Method, Path: "/v2" + op.Braced(m.Path), Summary: m.Summary,
				})
			}
		}
		list = append(list, release)
	}
	return list
}
