package main

import (
	"maps"
	"slices"

	"github.com/gin-gonic/gin"

	"partnerapi/docs"
	"partnerapi/platform/site"
	"partnerapi/v2/api"
	"partnerapi/v2/op"
)

// guides lists the guides in reading order. Those of extensions follow.
var guides = []site.Group{
	{Title: "Begin", Guides: []string{"start", "keys", "generate-client"}},
	{Title: "Do the work", Guides: []string{"onboard", "simulation", "risk-score", "report"}},
	{Title: "Build it well", Guides: []string{"paging", "delta-sync", "errors", "rate-limits", "idempotency", "releases"}},
	{Title: "Events", Guides: []string{"webhooks", "events", "listen"}},
	{Title: "Agents", Guides: []string{"mcp"}},
}

// operate lists the operators' guides in reading order. Those of extensions follow.
var operate = []string{"operating", "scale", "issuing-keys", "import", "breaches", "flags", "metrics"}

// allGuides returns the guides, with those of extensions.
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

// releaseNotes describes what each release adds.
var releaseNotes = map[op.Release]string{
	op.V2_0: "The first reads: clients with their summaries, and their admins.",
	op.V2_1: "All other reads: users, risk, training, phishing results, policies, collections, exposures, reports.",
	op.V2_2: "The writes: clients, users, training, collections, frameworks, phishing, reports, syncs.",
	op.V2_3: "Webhooks, the feed of events, and the MCP server.",
	op.V2_4: "The training of a whole client, users by email address, the calling key, and cancelled sends.",
}

// searchWords are what readers call operations that have other names, by the operations' ids.
var searchWords = map[string]string{
	"clients.update":  "archive, offboard, deactivate, delete a client",
	"users.create":    "add a user",
	"users.update":    "deactivate, reactivate, offboard, delete, remove a user",
	"users.find":      "filter, search users by email",
	"training.assign": "assign a course, enrol",
	"admins.invite":   "add an admin",
}

// mountPages adds the pages for people. They need no key and count against no budget.
func (s *service) mountPages() error {
	config, err := pagesOf(s.config.Release)
	if err != nil {
		return err
	}
	config.Documents, config.Log, config.Demo, config.Notice = s.documents, s.log, s.config.Demo, s.notice
	pages := gin.WrapH(site.New(config))
	for _, path := range []string{"/", "/llms.txt", "/llms-full.txt", "/docs", "/docs/*page"} {
		s.openPath(path, pages)
	}
	return nil
}

// pagesOf returns the content of the pages while a release is served.
func pagesOf(release op.Release) (site.Config, error) {
	document, err := documentV2(release)
	if err != nil {
		return site.Config{}, err
	}
	config := site.Config{
		Documents: &site.Documents{}, Version: version, Releases: releasesOf(release), Guides: docs.Guides(), Groups: allGuides(),
		Operate: docs.Operate(), OperateOrder: slices.Clone(operate),
		GuidePaths: map[string]string{}, Words: searchWords,
		References: []site.Reference{{
			Name: "v2", Title: "API v2", Prefix: "/v2", Document: document,
			Files: []string{"/v2/openapi.yaml", "/v2/openapi.json"},
		}},
	}
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

// releasesOf lists the releases with the operations that each adds.
func releasesOf(served op.Release) []site.Release {
	var list []site.Release
	for r := op.V2_0; r <= op.Latest; r++ {
		release := site.Release{Name: r.String(), About: releaseNotes[r], Served: r <= served}
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
