package main

import (
	"encoding/json"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"

	"golang.org/x/net/html"

	"partnerapi/platform/site"
	v2 "partnerapi/v2"
	"partnerapi/v2/op"
)

// elsewhere are the paths that pages link to and that the site does not serve.
var elsewhere = []string{
	"/healthz", "/readyz", "/v2/openapi.yaml", "/v2/openapi.json", "/v1/openapi.yaml", "/v1/openapi.json",
}

// TestPages reads every page of every release, with and without version 1, as
// a visitor does who follows every link from the start page, and an operator from the
// operators'.
func TestPages(t *testing.T) {
	t.Parallel()
	api := v2.New(nil, nil)
	for release := op.V2_0; release <= op.Latest; release++ {
		config, err := pagesOf(api, release)
		if err != nil {
			t.Fatal(err)
		}
		t.Run(release.String(), func(t *testing.T) { crawl(t, api, release, config) })
		if older() {
			config.References, config.Order, config.OperateOrder = config.References[:1], guides, operate
			t.Run(release.String()+" without the older version", func(t *testing.T) { crawl(t, api, release, config) })
		}
	}
}

// visitedPage is a page that was read.
type visitedPage struct {
	nodes []*html.Node
	ids   map[string]bool
}

func crawl(t *testing.T, api *v2.API, release op.Release, config site.Config) {
	pages := site.New(config)
	read := map[string]visitedPage{}
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
			read[path] = visitedPage{}
			continue
		}
		page := parsePage(t, path, w.Body.String())
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
		if fragment != "" && !read[path].ids[fragment] && !strings.HasPrefix(path, "/docs/reference/") {
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
	wantOperations(t, api, release, links)
}

// wantOperations holds that pages link to every operation of the release, and to no other of v2.
func wantOperations(t *testing.T, api *v2.API, release op.Release, links map[string]string) {
	t.Helper()
	const reference = "/docs/reference/v2#"
	want := map[string]bool{reference: true}
	for _, o := range api.Set.All() {
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

func parsePage(t *testing.T, path, text string) visitedPage {
	t.Helper()
	root, err := html.Parse(strings.NewReader(text))
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	if balanced := unbalanced(text); balanced != "" {
		t.Errorf("%s: %s", path, balanced)
	}
	v := visitedPage{ids: map[string]bool{}}
	for n := range root.Descendants() {
		if n.Type != html.ElementNode {
			continue
		}
		v.nodes = append(v.nodes, n)
		if id := attributeOf(n, "id"); id != "" {
			if v.ids[id] {
				t.Errorf("%s: the id %s is there twice", path, id)
			}
			v.ids[id] = true
		}
	}
	return v
}

// void are the elements without an end.
var void = []string{"meta", "link", "input", "br", "hr", "img"}

// unbalanced says where tags do not match, which a parser would mend.
func unbalanced(text string) string {
	var open []string
	for z := html.NewTokenizer(strings.NewReader(text)); ; {
		switch z.Next() {
		case html.ErrorToken:
			if len(open) > 0 {
				return "<" + open[len(open)-1] + "> is not closed"
			}
			return ""
		case html.StartTagToken:
			if name, _ := z.TagName(); !slices.Contains(void, string(name)) {
				open = append(open, string(name))
			}
		case html.EndTagToken:
			name, _ := z.TagName()
			if len(open) == 0 || open[len(open)-1] != string(name) {
				return "</" + string(name) + "> closes nothing, or closes " + strings.Join(open, " ")
			}
			open = open[:len(open)-1]
		}
	}
}

func attributeOf(n *html.Node, name string) string {
	for _, a := range n.Attr {
		if a.Key == name {
			return a.Val
		}
	}
	return ""
}

func linksOf(page visitedPage) []string {
	found := map[string]bool{}
	for _, n := range page.nodes {
		for _, name := range []string{"href", "src", "data-library", "data-index", "data-document"} {
			if link := attributeOf(n, name); link != "" {
				found[link] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(found))
}

// checkPage holds a page to what a browser with a strict policy, and a reader
// without eyes or a mouse, needs of it.
func checkPage(t *testing.T, path string, page visitedPage) {
	t.Helper()
	count := map[string]int{}
	level := 0
	labels := map[string]bool{}
	for _, n := range page.nodes {
		count[n.Data]++
		if n.Data == "label" {
			labels[attributeOf(n, "for")] = true
		}
		checkAttributes(t, path, page, n)
		if len(n.Data) == 2 && n.Data[0] == 'h' && n.Data[1] >= '1' && n.Data[1] <= '6' {
			now := int(n.Data[1] - '0')
			if now > level+1 {
				t.Errorf("%s: a heading of level %d follows one of level %d", path, now, level)
			}
			level = now
		}
	}
	for _, n := range page.nodes {
		switch {
		case n.Data == "input" && !labels[attributeOf(n, "id")]:
			t.Errorf("%s: the input %s has no label", path, attributeOf(n, "id"))
		case n.Data == "th" && attributeOf(n, "scope") == "" && inside(n, "main") && !inside(n, "thead"):
			t.Errorf("%s: a heading of a table has no scope", path)
		case n.Data == "table" && !strings.Contains(attributeOf(n.Parent, "class"), "wide"):
			t.Errorf("%s: a table cannot be scrolled", path)
		}
	}
	for _, name := range []string{"h1", "main", "title", "header", "footer"} {
		want := 1
		if strings.HasPrefix(path, "/docs/reference/") && name != "title" && name != "header" {
			want = 0 // Scalar makes them
		}
		if count[name] != want {
			t.Errorf("%s has %d <%s>", path, count[name], name)
		}
	}
	if count["style"] > 0 {
		t.Errorf("%s has a style of its own", path)
	}
}

func checkAttributes(t *testing.T, path string, page visitedPage, n *html.Node) {
	t.Helper()
	if n.Data == "script" && (attributeOf(n, "src") == "" || n.FirstChild != nil) {
		t.Errorf("%s has a script of its own", path)
	}
	for _, a := range n.Attr {
		switch {
		case a.Key == "style", strings.HasPrefix(a.Key, "on"):
			t.Errorf("%s: <%s %s>", path, n.Data, a.Key)
		case a.Key == "src", a.Key == "href" && n.Data == "link":
			if !strings.HasPrefix(a.Val, "/docs/assets/") {
				t.Errorf("%s loads %s", path, a.Val)
			}
		case a.Key == "aria-labelledby", a.Key == "aria-describedby", a.Key == "for":
			if !page.ids[a.Val] {
				t.Errorf("%s: %s=%s names nothing", path, a.Key, a.Val)
			}
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

// TestSearch: what readers look for is in the index of the search, with the page that says it.
func TestSearch(t *testing.T) {
	t.Parallel()
	config, err := pagesOf(v2.New(nil, nil), op.Latest)
	if err != nil {
		t.Fatal(err)
	}
	pages := site.New(config)
	w := httptest.NewRecorder()
	pages.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/docs/index", nil))
	_, rest, _ := strings.Cut(w.Body.String(), `data-index="`)
	path, _, _ := strings.Cut(rest, `"`)
	w = httptest.NewRecorder()
	pages.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
	var entries []struct{ Title, Place, Path, Text string }
	if err := json.Unmarshal(w.Body.Bytes(), &entries); err != nil {
		t.Fatal(err)
	}

	for words, path := range map[string]string{
		"rate limit": "/docs/guide/rate-limits", "429": "/docs/guide/rate-limits", "paging": "/docs/guide/paging",
		"updated_since": "/docs/guide/delta-sync", "Only clients that changed": "/docs/reference/v2#tag/clients/clients-list",
		"click_rate_90d": "/docs/reference/v2#tag/clients/clients-list", "request_timeout": "/docs/guide/errors",
		"signature": "/docs/guide/webhooks", "rate_limited": "/docs/guide/errors",
		"Create a webhook": "/docs/reference/v2#tag/webhooks/webhooks-create",
	} {
		found := false
		for _, e := range entries {
			text := strings.ToLower(e.Title + " " + e.Text)
			found = found || strings.HasPrefix(e.Path, path) && strings.Contains(text, strings.ToLower(words))
		}
		if !found {
			t.Errorf("no entry of %s has %q", path, words)
		}
	}
}

// TestPagesServed reads pages from a running service, which asks for no key and
// counts none of them.
func TestPagesServed(t *testing.T) {
	t.Parallel()
	r := serving(t, demonstration(t), "--demo")
	if !strings.Contains(r.out.String(), "start page: "+r.address+"/\n") {
		t.Errorf("the greeting does not name the start page:\n%s", r.out)
	}
	for range 100 { // more than an address has without a key
		r.get("/docs", "").want(http.StatusOK)
	}
	home := r.get("/", "").want(http.StatusOK)
	if !strings.Contains(string(home.body), "release 2.0") {
		t.Error("the start page does not say which release is served")
	}
	if head := r.do(http.MethodHead, "/docs/guide/start", "", nil).want(http.StatusOK); len(head.body) > 0 {
		t.Error("HEAD has a body")
	}
	r.get("/v2/clients", "").want(http.StatusUnauthorized)
	for path, body := range map[string]string{"/docs/nothing": "<!doctype html>", "/nothing": "not found\n"} {
		if got := r.get(path, "").want(http.StatusNotFound); !strings.HasPrefix(string(got.body), body) {
			t.Errorf("%s: %s", path, got.body)
		}
	}
}
