package main

import (
	"encoding/xml"
	"errors"
	"io/fs"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/getkin/kin-openapi/openapi3"
	"golang.org/x/net/html"

	"partnerapi/domain"
	"partnerapi/platform/site"
	"partnerapi/platform/site/sitetest"
	"partnerapi/v2/api"
	"partnerapi/v2/op"
	"partnerapi/v2/op/openapi"
)

// elsewhere are the paths that pages link to and that the site does not serve.
var elsewhere = []string{
	"/healthz", "/readyz", "/v2/openapi.yaml", "/v2/openapi.json", "/v1/openapi.yaml", "/v1/openapi.json",
}

// TestPages reads every page of the first and the latest release, and of the latest without version 1, as a visitor does
// who follows every link from the start page, and an operator from the operators'. The slowest tests read the others.
func TestPages(t *testing.T) {
	t.Parallel()
	for _, release := range []op.Release{op.V2_0, op.Latest} {
		config := crawlRelease(t, release)
		if older() && release == op.Latest { // make without-v1 tries the other
			config.References, config.Groups, config.OperateOrder = config.References[:1], guides, operate
			t.Run(release.String()+" without the older version", func(t *testing.T) { crawl(t, release, config) })
		}
	}
}

// crawlRelease crawls the pages of a release, and returns their configuration.
func crawlRelease(t *testing.T, release op.Release) site.Config {
	t.Helper()
	config, err := pagesOf(release)
	if err != nil {
		t.Fatal(err)
	}
	t.Run(release.String(), func(t *testing.T) { crawl(t, release, config) })
	return config
}

func crawl(t *testing.T, release op.Release, config site.Config) {
	pages := site.New(config)
	read := map[string]sitetest.Page{}
	links := map[string]string{} // with the page that each is on
	for todo := []string{"/", "/docs/operate"}; len(todo) > 0; todo = todo[1:] {
		path := todo[0]
		if _, known := read[path]; known {
			continue
		}
		w := httptest.NewRecorder()
		pages.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
		if w.Code != http.StatusOK {
			t.Fatalf("%s: status %d", path, w.Code)
		}
		if !strings.HasPrefix(w.Header().Get("Content-Type"), "text/html") {
			read[path] = sitetest.Page{}
			continue
		}
		page := sitetest.Read(t, path, w.Body.String())
		read[path] = page
		checkPage(t, path, page)
		for _, link := range linksOf(page) {
			target, err := url.Parse(link)
			if err != nil {
				t.Errorf("%s: the link %s: %v", path, link, err)
				continue
			}
			if target.Host != "" {
				continue
			}
			if target.Path == "" {
				target.Path = path
			}
			if !strings.HasPrefix(target.Path, "/") {
				t.Errorf("%s: the link %s is not rooted", path, link)
				continue
			}
			if at := target.Path + "#" + target.Fragment; links[at] == "" || path == "/docs/index" {
				links[at] = path
			}
			if strings.HasPrefix(target.Path, "/docs/operate") && !strings.HasPrefix(path, "/docs/operate") {
				t.Errorf("%s leads partners to %s", path, link)
			}
			if !slices.Contains(elsewhere, target.Path) {
				todo = append(todo, target.Path)
			}
		}
	}

	for link, from := range links {
		path, fragment, _ := strings.Cut(link, "#")
		if fragment != "" && !read[path].IDs[fragment] && !strings.HasPrefix(path, "/docs/reference/") {
			t.Errorf("%s: the link to %s leads nowhere", from, link)
		}
	}
	paths, err := pages.Paths()
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range paths {
		if _, ok := read[path]; !ok {
			t.Errorf("no link leads to %s", path)
		}
	}
	wantOperations(t, release, links)
	checkTextLinks(t, pages, read)
}

// guideLink matches links in Markdown; relativeGuideLink those that depend on the place of the file.
var (
	guideLink         = regexp.MustCompile(`\]\(http://example\.com([^)#\s]*)#?([^)\s]*)\)`)
	relativeGuideLink = regexp.MustCompile(`\]\((?:[\w./-]*\.md|#)[^)]*\)`)
)

// checkTextLinks verifies that the links in /llms-full.txt, and in the Markdown of guides, lead to pages and headings.
func checkTextLinks(t *testing.T, pages *site.Site, read map[string]sitetest.Page) {
	t.Helper()
	paths := []string{"/llms-full.txt"}
	for path := range read {
		if strings.HasPrefix(path, "/docs/") && strings.HasSuffix(path, ".md") {
			paths = append(paths, path)
		}
	}
	found := 0
	for _, path := range paths {
		w := httptest.NewRecorder()
		pages.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
		if left := relativeGuideLink.FindString(w.Body.String()); left != "" {
			t.Errorf("%s: the link %s is relative", path, left)
		}
		for _, link := range guideLink.FindAllStringSubmatch(w.Body.String(), -1) {
			found++
			page, known := read[strings.TrimSuffix(link[1], ".md")]
			if fragment, err := url.PathUnescape(link[2]); !known || err != nil || fragment != "" && !page.IDs[fragment] {
				t.Errorf("%s: the link %s leads nowhere", path, link[0])
			}
		}
	}
	if found < 50 {
		t.Errorf("%d links in %d texts", found, len(paths))
	}
}

// wantOperations holds that pages link to every operation of the release, and to no other of v2.
func wantOperations(t *testing.T, release op.Release, links map[string]string) {
	t.Helper()
	const reference = "/docs/reference/v2#"
	want := map[string]bool{reference: true, reference + "reference": true} // the second skips to its content
	for _, o := range api.Operations {
		m := o.Meta()
		link := reference + "tag/" + m.Resource() + "/" + strings.NewReplacer(".", "-", "_", "-").Replace(m.ID)
		if m.Since <= release {
			want[link] = true
			if links[link] != "/docs/index" {
				t.Errorf("the index has no link to %s", link)
			}
		}
	}
	for link, from := range links {
		if strings.HasPrefix(link, reference) && !want[link] {
			t.Errorf("%s: the link to %s leads nowhere", from, link)
		}
	}
}

func linksOf(page sitetest.Page) []string {
	found := map[string]bool{}
	for _, n := range page.Nodes {
		for _, name := range []string{"href", "src", "data-library", "data-index", "data-document"} {
			if link := sitetest.Attribute(n, name); link != "" {
				found[link] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(found))
}

// checkPage holds a page to what a browser with a strict policy, and a reader
// without eyes or a mouse, needs of it.
func checkPage(t *testing.T, path string, page sitetest.Page) {
	t.Helper()
	count, labels := map[string]int{}, map[string]bool{}
	level := 0
	for _, n := range page.Nodes {
		if count[n.Data]++; n.Data == "label" {
			labels[sitetest.Attribute(n, "for")] = true
		}
		if len(n.Data) == 2 && n.Data[0] == 'h' && n.Data[1] >= '1' && n.Data[1] <= '6' {
			now := int(n.Data[1] - '0')
			if now > level+1 {
				t.Errorf("%s: a heading of level %d follows one of level %d", path, now, level)
			}
			level = now
		}
	}
	for _, n := range page.Nodes {
		loads := sitetest.Attribute(n, "src")
		if n.Data == "link" && sitetest.Attribute(n, "rel") != "expect" { // which names an element of the page
			loads = sitetest.Attribute(n, "href")
		}
		switch {
		case loads != "" && !strings.HasPrefix(loads, "/docs/assets/"):
			t.Errorf("%s loads %s", path, loads)
		case n.Data == "input" && !labels[sitetest.Attribute(n, "id")]:
			t.Errorf("%s: the input %s has no label", path, sitetest.Attribute(n, "id"))
		case n.Data == "th" && sitetest.Attribute(n, "scope") == "" && inside(n, "main") && !inside(n, "thead"):
			t.Errorf("%s: a heading of a table has no scope", path)
		case n.Data == "table" && !strings.Contains(sitetest.Attribute(n.Parent, "class"), "wide"):
			t.Errorf("%s: a table cannot be scrolled", path)
		}
	}
	for _, name := range []string{"h1", "main", "title", "header", "footer", "style"} {
		want := 1
		if name == "style" || strings.HasPrefix(path, "/docs/reference/") && name != "title" && name != "header" {
			want = 0 // Scalar makes them; no page has a style of its own
		}
		if count[name] != want {
			t.Errorf("%s has %d <%s>", path, count[name], name)
		}
	}
}

// inside reports whether a node lies in an element.
func inside(n *html.Node, name string) bool {
	for p := range n.Ancestors() {
		if p.Data == name {
			return true
		}
	}
	return false
}

// readPage returns the body of a page.
func readPage(t *testing.T, pages http.Handler, path string) string {
	t.Helper()
	w := httptest.NewRecorder()
	pages.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
	if w.Code != http.StatusOK {
		t.Fatalf("%s: status %d", path, w.Code)
	}
	return w.Body.String()
}

// TestErrorGuide: what an error's doc_url names is a heading of the guide, for every code, and lies below the public
// address where there is one.
func TestErrorGuide(t *testing.T) {
	t.Parallel()
	config, err := pagesOf(op.Latest)
	if err != nil {
		t.Fatal(err)
	}
	page := sitetest.Read(t, op.ErrorGuide, readPage(t, site.New(config), op.ErrorGuide))
	for _, code := range op.ErrorCodes() {
		link := op.EnvelopeOf(&domain.Error{Code: code}, "", "https://partner.example/api").Error.DocURL
		at, ok := strings.CutPrefix(link, "https://partner.example/api"+op.ErrorGuide+"#")
		if !ok || !page.IDs[at] {
			t.Errorf("%s leads to %s", code, link)
		}
	}
	s := builtService(t, opened(t, databaseFlag(t)), guideBase, resources{}, "serve", "--release=latest", "--public-url=https://partner.example/api/")
	for path, anchor := range map[string]string{"/v2/nothing": "unauthorized", "/mcp": "unauthorized"} {
		w := httptest.NewRecorder()
		s.engine.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
		if want := `"doc_url":"https://partner.example/api/docs/guide/errors#` + anchor + `"`; !strings.Contains(w.Body.String(), want) {
			t.Errorf("%s: %s has no %s", path, w.Body, want)
		}
	}
}

// TestChangelog: every operation is on the page and in the feed, at its release, and a release later than the served
// one links to no reference.
func TestChangelog(t *testing.T) {
	t.Parallel()
	config, err := pagesOf(op.V2_0)
	if err != nil {
		t.Fatal(err)
	}
	pages := site.New(config)
	type entry struct {
		ID      string    `xml:"id"`
		Updated time.Time `xml:"updated"`
		Content string    `xml:"content"`
	}
	var feed struct {
		ID      string  `xml:"id"`
		Entries []entry `xml:"entry"`
	}
	if err := xml.Unmarshal([]byte(readPage(t, pages, "/docs/changelog.atom")), &feed); err != nil || feed.ID != "tag:partnerapi,2026:changelog" {
		t.Fatalf("the feed is %+v: %v", feed, err)
	}
	page := readPage(t, pages, "/docs/changelog")
	of24 := slices.IndexFunc(feed.Entries, func(e entry) bool { return strings.HasSuffix(e.ID, "/release-2.4") })
	for _, name := range []string{"field <code>phishing.click_rate_total</code>", "field <code>failing_since</code>", "parameter <code>external_id</code>"} {
		kind, code, _ := strings.Cut(name, " ")
		text := strings.NewReplacer("<code>", "", "</code>", "").Replace(code)
		if !strings.Contains(page, "The "+name+" of ") || of24 < 0 || !strings.Contains(strings.ToLower(feed.Entries[of24].Content), kind+" "+text+" (") {
			t.Errorf("the page or the feed has no %s", name)
		}
	}
	if goName := regexp.MustCompile(`<code>[A-Z]\w+\.\w+</code>`).FindString(page); goName != "" {
		t.Errorf("the page has the name of a Go type: %s", goName)
	}
	for _, o := range api.Operations {
		m := o.Meta()
		name := m.Method + " /v2" + op.Braced(m.Path)
		if !strings.Contains(page, "<code>"+html.EscapeString(name)+"</code>") {
			t.Errorf("the page has no %s", name)
		}
		found := false
		for i, e := range feed.Entries {
			found = found || strings.HasSuffix(e.ID, "/release-"+m.Since.String()) && strings.Contains(e.Content, name+": "+m.Summary)
			if i > 0 && e.Updated.After(feed.Entries[i-1].Updated) {
				t.Errorf("%s is newer than the entry before it", e.ID)
			}
		}
		if !found {
			t.Errorf("the feed has no %s at release %s", name, m.Since)
		}
	}
	if strings.Contains(page, "#tag/webhooks/") || !strings.Contains(page, "#tag/clients/clients-list") {
		t.Error("the page links to operations that are not served, or not to those that are")
	}
}

// TestMembersSince: a member of an object, or a parameter, that the kept document of a release does not have says since
// when it is there. TestAdditions verifies that the changelog has those that say so.
func TestMembersSince(t *testing.T) {
	t.Parallel()
	latest, err := documentV2(op.Latest)
	if err != nil {
		t.Fatal(err)
	}
	tagged := func(schema *openapi3.SchemaRef) bool { return schema.Value.Extensions[openapi.Since] != nil }
	for r := op.V2_0; r <= op.Latest; r++ {
		kept, err := openapi3.NewLoader().LoadFromFile("../../tools/openapi/baseline/v2-" + r.String() + ".yaml")
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		now, err2 := documentV2(r)
		if err := errors.Join(err, err2); err != nil {
			t.Fatal(err)
		}
		for object, schema := range kept.Components.Schemas {
			for name := range now.Components.Schemas[object].Value.Properties {
				if schema.Value.Properties[name] == nil && !tagged(latest.Components.Schemas[object].Value.Properties[name]) {
					t.Errorf("%s.%s is not in the kept document of release %s, and has no tag since", object, name, r)
				}
			}
		}
		for path, item := range kept.Paths.Map() {
			for method, operation := range item.Operations() {
				for _, p := range now.Paths.Value(path).GetOperation(method).Parameters {
					if operation.Parameters.GetByInAndName(p.Value.In, p.Value.Name) == nil && !tagged(p.Value.Schema) {
						t.Errorf("%s %s?%s is not in the kept document of release %s, and has no tag since", method, path, p.Value.Name, r)
					}
				}
			}
		}
	}
}

// TestAdditions verifies that the changelog has each field of the objects of the latest document, and each parameter,
// that says since when it is there.
func TestAdditions(t *testing.T) {
	t.Parallel()
	latest, err := documentV2(op.Latest)
	if err != nil {
		t.Fatal(err)
	}
	listed, seen := additionsSince(latest), 0
	check := func(name string, schema *openapi3.SchemaRef, parameter bool) {
		since, ok := schema.Value.Extensions[openapi.Since].(string)
		if !ok {
			return
		}
		seen++
		if !slices.ContainsFunc(listed[since], func(a site.Addition) bool {
			return a.Parameter == parameter && (a.Name == name || strings.HasSuffix(a.Name, "."+name)) && (len(a.Operations) > 0 || a.InEvents)
		}) {
			t.Errorf("the changelog has no %s at release %s", name, since)
		}
	}
	for _, schema := range latest.Components.Schemas {
		for name, member := range schema.Value.Properties {
			check(name, member, false)
		}
	}
	for _, item := range latest.Paths.Map() {
		for _, operation := range item.Operations() {
			for _, p := range operation.Parameters {
				check(p.Value.Name, p.Value.Schema, true)
			}
		}
	}
	if seen < 10 {
		t.Errorf("got %d fields and parameters with a release, want at least 10", seen)
	}
}

// TestSupport: --support-url is in the header of pages, on that of errors, and the contact of the documents.
func TestSupport(t *testing.T) {
	t.Parallel()
	d := opened(t, databaseFlag(t))
	for address, contact := range map[string]string{
		"https://help.example/partners": "url: https://help.example/partners", "mailto:help@example.com": "email: help@example.com",
	} {
		s := builtService(t, d, guideBase, resources{}, "serve", "--support-url="+address)
		parts := map[string]string{
			"/": `<li><a href="` + address + `">Support</a></li>`, op.ErrorGuide: `<a href="` + address + `">Contact support</a>`,
			"/v2/openapi.yaml": contact,
		}
		if older() {
			parts["/v1/openapi.yaml"] = contact
		}
		for path, part := range parts {
			if !strings.Contains(readPage(t, s.engine, path), part) {
				t.Errorf("%s has no %s", path, part)
			}
		}
	}
}

// TestPagesServed reads pages from a running service, which asks for no key and
// counts none of them. Version 1 answers where it is a part of the program.
func TestPagesServed(t *testing.T) {
	t.Parallel()
	r := serving(t, demonstration(t), "--demo")
	says(t, r.out.String(), "start page: "+r.address+"/\n")
	for range 100 { // more than an address has without a key
		r.get("/docs", "").want(http.StatusOK)
	}
	says(t, string(r.get("/", "").want(http.StatusOK).body), "release 2.0")
	if head := r.do(http.MethodHead, "/docs/guide/start", "", nil).want(http.StatusOK); len(head.body) > 0 {
		t.Error("HEAD has a body")
	}
	r.get("/v2/clients", "").want(http.StatusUnauthorized)
	const envelope = `{"error":{"code":"not_found",`
	for path, body := range map[string]string{
		"/docs/nothing": "<!doctype html>", "/nothing": envelope, "//v2/clients": envelope, "/V2/clients": envelope, "/v3/clients": envelope,
	} {
		if got := r.get(path, "").want(http.StatusNotFound); !strings.HasPrefix(string(got.body), body) {
			t.Errorf("%s: %s", path, got.body)
		}
	}
	status := map[bool]int{true: http.StatusOK, false: http.StatusNotFound}[older()]
	r.get("/v1/partner", "pk_demo_all").want(status)
	if strings.Contains(r.out.String(), "/v1/") != older() {
		t.Errorf("the greeting speaks of version 1:\n%s", r.out)
	}
}
