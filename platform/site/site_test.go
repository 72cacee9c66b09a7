package site_test

import (
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/getkin/kin-openapi/openapi3"
	"golang.org/x/net/html"

	"partnerapi/platform/site"
	"partnerapi/platform/site/sitetest"
)

func config(t *testing.T, guides fstest.MapFS) site.Config {
	t.Helper()
	doc, err := openapi3.NewLoader().LoadFromFile("testdata/things.yaml")
	if err != nil {
		t.Fatal(err)
	}
	return site.Config{
		Documents: &site.Documents{}, Version: "dev", Guides: guides, Groups: []site.Group{{Title: "All", Guides: []string{"one", "two"}}}, Log: slog.New(slog.DiscardHandler),
		Releases:   []site.Release{{Name: "9.1", Served: true}, {Name: "9.2"}},
		References: []site.Reference{{Name: "v9", Title: "API v9", Prefix: "/v9", Document: doc, Files: []string{"/v9/openapi.json"}}},
	}
}

var twoGuides = fstest.MapFS{
	"one.md": {Data: []byte("# One\n\nFirst *words* of it.\n\n" +
		"## A part\n\nSee `GET /v9/things/{thing_id}` and [two](two.md#more).\n\n" +
		"| a | b |\n|---|---|\n| 1 | 2<!-- aside-line --> |\n\n<!-- aside -->\n## Another\n\nIt<!-- aside --> goes on<!-- /aside -->.\n\n<!-- /aside -->\n```sh\ncurl \"$X\" # <so>\n```\n\n<script>alert(1)</script>\n")},
	"two.md": {Data: []byte("# Two\n\nSecond.\n\n## More\n")},
}

func get(t *testing.T, s http.Handler, path string, headers ...string) *httptest.ResponseRecorder {
	t.Helper()
	return called(t, s, path, "example.com", false, headers...)
}

func TestGuide(t *testing.T) {
	t.Parallel()
	s := site.New(config(t, twoGuides))
	page := get(t, s, "/docs/guide/one").Body.String()
	for _, part := range []string{
		"<h1>One</h1>", `<h2 id="a-part">A part</h2> <a class="permalink" href="#a-part" aria-label="Link to: A part">#</a>`, `<li><a href="#another">Another</a></li>`,
		`<a href="/docs/guide/two#more">two</a>`,
		`<a href="/docs/reference/v9#tag/big_things/things-get-one"><code>GET /<wbr>v9/<wbr>things/<wbr>{thing_<wbr>id}</code></a>`,
		`<div class="wide" tabindex="0" role="group" aria-label="Table"><table>`,
		`<a rel="next" href="/docs/guide/two"><span>Next</span> Two</a>`, "&lt;so&gt;",
	} {
		if !strings.Contains(page, part) {
			t.Errorf("the page has no %s:\n%s", part, page)
		}
	}
	if strings.Contains(page, "aside -->") || !strings.Contains(page, " goes on") || strings.Contains(page, "alert(1)") || strings.Contains(page, `rel="prev"`) {
		t.Errorf("the page has what it should not:\n%s", page)
	}
	list := get(t, s, "/docs").Body.String()
	if !strings.Contains(list, "First words of it.") {
		t.Errorf("the list does not say what the guide is about:\n%s", list)
	}
}

// TestBreaks verifies that names in headings and tables may break after a slash, an underscore or a dot, and that samples
// do not.
func TestBreaks(t *testing.T) {
	t.Parallel()
	s := site.New(config(t, fstest.MapFS{
		"one.md": {Data: []byte("# One\n\nIn `a_b`.\n\n## GET /v8/a_b\n\n| a | b |\n|---|---|\n| `risk.high_risk` | 1.5 of `pk_demo_all` |\n\n```sh\ncd a/b_c\n```\n")},
		"two.md": twoGuides["two.md"],
	}))
	page := get(t, s, "/docs/guide/one").Body.String()
	for _, part := range []string{
		"<code>a_b</code>", ">GET /<wbr>v8/<wbr>a_<wbr>b</h2>", "<td><code>risk.<wbr>high_<wbr>risk</code></td>", "<td>1.5 of <code>YOUR_API_KEY</code></td>", "a/b_c",
	} {
		if !strings.Contains(page, part) {
			t.Errorf("the page has no %s:\n%s", part, page)
		}
	}
}

// TestNotFound verifies that the page for unknown paths names the nearest page, if one is near, and that likely paths
// lead to the pages that they mean.
func TestNotFound(t *testing.T) {
	t.Parallel()
	c := config(t, fstest.MapFS{"start.md": {Data: []byte("# Start & more\n\nFirst.\n")}, "webhooks.md": {Data: []byte("# Webhooks\n\nSecond.\n")}})
	c.Groups = []site.Group{{Title: "All", Guides: []string{"start", "webhooks"}}}
	c.PublicURL = "https://partner.example/api"
	s := site.New(c)
	const start, webhooks = `<p>Did you mean <a href="/api/docs/guide/start">Start &amp; more</a>?</p>`, `<p>Did you mean <a href="/api/docs/guide/webhooks">Webhooks</a>?</p>`
	for path, want := range map[string]string{
		"/docs/guide/strat": start, "/docs/start": start, "/docs/guides/Start.html": start, "/docs/guide/webhoks": webhooks,
		"/docs/guide/zzz": "", "/docs/" + strings.Repeat("start", 100): "", "/docs/<script>": "",
	} {
		w := get(t, s, path)
		body := w.Body.String()
		if got := strings.Contains(body, "Did you mean"); w.Code != http.StatusNotFound || got != (want != "") || !strings.Contains(body, want) || strings.Contains(body, "nearest -->") {
			t.Errorf("%s: status %d, want %s:\n%s", path, w.Code, want, body)
		}
		if !strings.Contains(body, " data-missing ") {
			t.Errorf("%s does not focus the search", path)
		}
	}
	for path, want := range map[string]string{
		"/docs/getting-started": "/docs/guide/start", "/docs/quickstart/": "/docs/guide/start", "/docs/guides": "/docs", "/docs/Webhooks": "/docs/guide/webhooks",
		"/guides": "/docs",
	} {
		if w := get(t, s, path); w.Code != http.StatusMovedPermanently || w.Header().Get("Location") != "/api"+want {
			t.Errorf("%s: status %d, to %s, want %s", path, w.Code, w.Header().Get("Location"), want)
		}
	}
	if w := get(t, s, "/docs/reference"); w.Code != http.StatusNotFound { // as there is no v2
		t.Errorf("a likely path of no page: status %d", w.Code)
	}
}

// TestOtherDefaults verifies that a table shows in color where a parameter has another default.
func TestOtherDefaults(t *testing.T) {
	t.Parallel()
	s := site.New(config(t, fstest.MapFS{
		"one.md": {Data: []byte("# One\n\nFirst.\n\n| request | how |\n|---|---|\n| `status` | other default: `active` in v1 |\n| `q` | same |\n")}, "two.md": twoGuides["two.md"],
	}))
	page := get(t, s, "/docs/guide/one").Body.String()
	if want := `<td><strong class="differs">other default</strong>: <code>active</code> in v1</td>`; !strings.Contains(page, want) || strings.Count(page, "differs") != 1 {
		t.Errorf("the page has no %s:\n%s", want, page)
	}
}

// TestTabs verifies that adjacent programs are tabs, each with its output, or with one output after all of them.
// Commands are the first tab of a group, or none.
func TestTabs(t *testing.T) {
	t.Parallel()
	const (
		python, output, js = "```python\nprint(1)\n```\n\n", "```text\n1\n```\n\n", "```js\nconsole.log(2)\n```\n\n"
		shell, csharp      = "```sh\necho pk_demo_all\n```\n\n", "```csharp\nConsole.WriteLine(3);\n```\n\n"
	)
	for source, want := range map[string][]string{
		python + output + js + output + shell:    {"tabs-1-python", "tabs-1-js"},
		python + "And:\n\n" + js:                 nil,
		python + output + shell + output + js:    nil,
		shell + shell + output + shell:           nil,
		shell + python + js + csharp + output:    {"tabs-1-curl", "tabs-1-python", "tabs-1-js", "tabs-1-csharp"},
		shell + python + shell + js:              {"tabs-1-curl", "tabs-1-python", "tabs-2-curl", "tabs-2-js"},
		python + js + js + python:                {"tabs-1-python", "tabs-1-js", "tabs-2-js", "tabs-2-python"},
		python + js + "Or:\n\n" + js + python:    {"tabs-1-python", "tabs-1-js", "tabs-2-js", "tabs-2-python"},
		"- " + strings.TrimSpace(shell) + "\n\n": nil,
	} {
		s := site.New(config(t, fstest.MapFS{"one.md": {Data: []byte("# One\n\nFirst.\n\n" + source)}, "two.md": twoGuides["two.md"]}))
		page := sitetest.Read(t, source, get(t, s, "/docs/guide/one").Body.String())
		var got []string
		for _, n := range page.Nodes {
			if sitetest.Attribute(n, "role") != "tabpanel" {
				continue
			}
			id := sitetest.Attribute(n, "id")
			if got = append(got, id); !page.IDs[id+"-tab"] {
				t.Errorf("%q: no tab leads to %s", source, id)
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("%q: the tabs are %v, want %v", source, got, want)
		}
	}
}

// TestGuidePaths: a guide lies at its declared path, and guides find each other by
// the paths of their files.
func TestGuidePaths(t *testing.T) {
	t.Parallel()
	c := config(t, fstest.MapFS{
		"one.md": {Data: []byte("# One\n\nSee [two](../two.md#more).\n")},
		"two.md": {Data: []byte("# Two\n\nSee [one](guide/one.md).\n")},
	})
	c.GuidePaths = map[string]string{"two": "/docs/two"}
	s := site.New(c)
	for path, link := range map[string]string{
		"/docs/guide/one": `<a href="/docs/two#more">two</a>`, "/docs/two": `<a href="/docs/guide/one">one</a>`,
		"/docs": `<a href="/docs/two">`,
	} {
		if w := get(t, s, path); w.Code != http.StatusOK || !strings.Contains(w.Body.String(), link) {
			t.Errorf("%s: status %d, or no link %s", path, w.Code, link)
		}
	}
	for _, extension := range []string{"", ".md"} { // links of the time when it was there
		if w := get(t, s, "/docs/guide/two"+extension); w.Code != http.StatusMovedPermanently || w.Header().Get("Location") != "/docs/two"+extension {
			t.Errorf("/docs/guide/two%s: status %d, to %s", extension, w.Code, w.Header().Get("Location"))
		}
	}
}

// TestCurrentPage verifies that each page of a guide is marked, once in each list of pages, as the current one. The parts
// of a guide are listed on its pages only.
func TestCurrentPage(t *testing.T) {
	t.Parallel()
	c := config(t, fstest.MapFS{
		"one.md": twoGuides["one.md"], "two.md": twoGuides["two.md"],
		"two/old.md": {Data: []byte("# Old: from one to two\n\nParts.\n")}, "two/new.md": {Data: []byte("# New: from one to two\n\nParts.\n")},
	})
	c.Groups = append(c.Groups, site.Group{Title: "Parts", Guides: []string{"two/old", "two/new"}})
	c.GuidePaths = map[string]string{"two": "/docs/two", "two/old": "/docs/two/old", "two/new": "/docs/two/new"}
	s := site.New(c)
	for path, parts := range map[string]bool{
		"/docs": false, "/docs/guide/one": false, "/docs/two": true, "/docs/two/old": true, "/docs/two/new": true, "/docs/index": false,
	} {
		page := sitetest.Read(t, path, get(t, s, path).Body.String())
		var current, listed []string
		for _, n := range page.Nodes {
			if n.Data != "a" || !slices.ContainsFunc(slices.Collect(n.Ancestors()), func(p *html.Node) bool { return sitetest.Attribute(p, "class") == "pages" }) {
				continue
			}
			if link := sitetest.Attribute(n, "href"); strings.HasPrefix(link, "/docs/two/") {
				listed = append(listed, n.FirstChild.Data)
			}
			if sitetest.Attribute(n, "aria-current") == "page" {
				current = append(current, sitetest.Attribute(n, "href"))
			}
		}
		if !slices.Equal(current, []string{path}) {
			t.Errorf("the current pages of %s are %q", path, current)
		}
		if want := []string{"Old", "New"}; parts && !slices.Equal(listed, want) || !parts && len(listed) > 0 {
			t.Errorf("%s lists the parts %q", path, listed)
		}
	}
}

// TestTexts: each guide is there as Markdown, and /llms.txt lists them with the documents.
func TestTexts(t *testing.T) {
	t.Parallel()
	s := site.New(config(t, twoGuides))
	guide := get(t, s, "/docs/guide/two.md")
	absolute := func(guide []byte, extension string) string {
		return strings.ReplaceAll(string(guide), "](two.md#more)", "](http://example.com/docs/guide/two"+extension+"#more)")
	}
	if got := get(t, s, "/docs/guide/one.md").Body.String(); got != absolute(twoGuides["one.md"].Data, ".md") {
		t.Errorf("got %s", got)
	}
	if guide.Body.String() != string(twoGuides["two.md"].Data) || guide.Header().Get("Content-Type") != "text/markdown; charset=utf-8" {
		t.Errorf("%v %q", guide.Header(), guide.Body)
	}
	full := get(t, s, "/llms-full.txt").Body.String()
	for _, g := range twoGuides {
		if !strings.Contains(full, strings.TrimSpace(absolute(g.Data, ""))) {
			t.Errorf("/llms-full.txt lacks %s", g.Data)
		}
	}
	if page := get(t, s, "/docs/guide/two").Body.String(); !strings.Contains(page, "View as Markdown</a>\n<button type=\"button\" class=\"markdown") {
		t.Errorf("the page cannot be copied as Markdown:\n%s", page)
	}
	list := get(t, s, "/llms.txt").Body.String()
	for _, line := range []string{"# Partner API\n", "\n- [One](http://example.com/docs/guide/one.md): First words of it.", "](http://example.com/v9/openapi.json): "} {
		if !strings.Contains(list, line) {
			t.Errorf("it has no %q:\n%s", line, list)
		}
	}
}

// TestReference: the page has what Scalar needs, and its policy no more. The pages that tags
// had lead there.
func TestReference(t *testing.T) {
	t.Parallel()
	s := site.New(config(t, twoGuides))
	w := get(t, s, "/docs/reference/v9")
	for _, part := range []string{`data-document="/v9/openapi.json"`, `<script src="/docs/assets/scalar.`, "<noscript>", `data-index="/docs/search-`} {
		if !strings.Contains(w.Body.String(), part) {
			t.Errorf("the page has no %s:\n%s", part, w.Body)
		}
	}
	if script := get(t, s, "/docs/assets/scalar"+between(w.Body.String(), `src="/docs/assets/scalar`, `"`)); script.Code != http.StatusOK ||
		!strings.HasPrefix(script.Body.String(), "/*! @scalar/api-reference") || !strings.Contains(script.Body.String()[:200], "MIT License") {
		t.Errorf("Scalar: status %d, and no license at its head", script.Code)
	}
	for _, path := range []string{"/docs/reference/v9/big_things", "/docs/reference/v9/other", "/docs/reference/v9/"} {
		if w := get(t, s, path); w.Code != http.StatusMovedPermanently || w.Header().Get("Location") != "/docs/reference/v9" {
			t.Errorf("%s: status %d, to %s", path, w.Code, w.Header().Get("Location"))
		}
	}
	if w := get(t, s, "/docs/reference/v8/big_things"); w.Code != http.StatusNotFound {
		t.Errorf("an unknown version: status %d", w.Code)
	}
}

// entry is an entry of the index that is searched.
type entry struct {
	Title, Place, Path, Text, Words string
	Weight                          float64
}

// index reads the index that pages name.
func index(t *testing.T, s http.Handler) (list []entry) {
	t.Helper()
	path := "/docs/search-" + between(get(t, s, "/docs").Body.String(), `data-index="/docs/search-`, `"`)
	if err := json.Unmarshal(get(t, s, path).Body.Bytes(), &list); err != nil {
		t.Fatal(err)
	}
	return list
}

// TestSearch: the index has the sections of guides, the changes, and the operations with their parameters
// and fields, each once.
func TestSearch(t *testing.T) {
	t.Parallel()
	c := config(t, twoGuides)
	c.Changes = []site.Change{{ID: "release-9.1", Title: "Release 9.1", Text: "More", Operations: []site.Operation{{Summary: "Read a thing"}}}}
	s := site.New(c)
	var got []string
	for _, e := range index(t, s) {
		got = append(got, strings.Join([]string{e.Title, e.Place, e.Path, e.Text}, "|"))
	}
	want := []string{
		"One|One|/docs/guide/one|First words of it.",
		"A part|One|/docs/guide/one#a-part|See GET /v9/things/{thing_id} and two. a b 1 2",
		"Another|One|/docs/guide/one#another|It goes on. curl \"$X\" # <so>",
		"Two|Two|/docs/guide/two|Second.",
		"More|Two|/docs/guide/two#more|",
		"Release 9.1|Changelog|/docs/changelog#release-9.1|More Read a thing",
		"Update a thing|PATCH /v9/things/{thing_id}|/docs/reference/v9#tag/small_things/things-update|",
		"thing_id|Parameter of PATCH /v9/things/{thing_id} and 1 more|/docs/reference/v9#tag/small_things/things-update|",
		"size_mm|Field of PATCH /v9/things/{thing_id}|/docs/reference/v9#tag/small_things/things-update|",
		"Read a thing|GET /v9/things/{thing_id}|/docs/reference/v9#tag/big_things/things-get-one|See the guide.",
		"shape|Parameter of GET /v9/things/{thing_id}|/docs/reference/v9#tag/big_things/things-get-one|Its shape. round flat",
		"owner|Field of GET /v9/things/{thing_id}|/docs/reference/v9#tag/big_things/things-get-one|Whose it is.",
		"part_name|Field of GET /v9/things/{thing_id}|/docs/reference/v9#tag/big_things/things-get-one|",
		"whole|Field of GET /v9/things/{thing_id}|/docs/reference/v9#tag/big_things/things-get-one|",
		"parts|Field of GET /v9/things/{thing_id}|/docs/reference/v9#tag/big_things/things-get-one|",
	}
	if !slices.Equal(got, want) {
		t.Errorf("the index is\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// TestSearchWords: comments and the configuration say by which other words sections and operations are found, which
// pages do not show. The language of a program is one, and so is the address of samples. A guide with parts weighs
// less than others, and what its parts have too is listed there alone.
func TestSearchWords(t *testing.T) {
	t.Parallel()
	c := config(t, fstest.MapFS{
		"one.md": {Data: []byte("# One\n\n<!-- search: unity -->\n\nAt `http://127.0.0.1:8080`, with `pk_demo_all`.\n\n## A part\n\n" +
			"<!-- search: piece, slice -->\n\n```php\necho 1;\n```\n")},
		"two.md":     {Data: []byte("# Two\n\nSecond.\n\n## GET /old\n\nSee [it](two/old.md).\n\n## All\n")},
		"two/old.md": {Data: []byte("# Old\n\nParts.\n\n## GET /old\n\nGone.\n")},
	})
	c.Words = map[string]string{"things.update": "change"}
	c.Groups = append(c.Groups, site.Group{Title: "Parts", Guides: []string{"two/old"}})
	s := site.New(c)
	if page := get(t, s, "/docs/guide/one").Body.String(); strings.Contains(page, "search:") {
		t.Errorf("the page is\n%s", page)
	}
	var got []string
	for _, e := range index(t, s)[:7] {
		got = append(got, fmt.Sprint(e.Path, "|", e.Text, "|", e.Words, "|", e.Weight))
	}
	want := []string{
		"/docs/guide/one|At BASE, with YOUR_API_KEY.|unity|2", "/docs/guide/one#a-part|echo 1; PHP|piece, slice|1.5",
		"/docs/guide/two|Second.||0.2", "/docs/guide/two#all|||0.2", "/docs/guide/two/old|Parts.||0.2",
		"/docs/guide/two/old#get-old|Gone.||0.2", "/docs/reference/v9#tag/small_things/things-update||change|2.5",
	}
	if !slices.Equal(got, want) {
		t.Errorf("the index begins with\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// between is the part of a text after one that it has, up to another.
func between(text, begin, end string) string {
	_, rest, _ := strings.Cut(text, begin)
	part, _, _ := strings.Cut(rest, end)
	return part
}

func TestMistakesInGuides(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"no title": "Text.\n", "no such file": "# One\n\n[x](three.md)\n", "no page": "# One\n\n[x](../x.go)\n",
	} {
		guides := fstest.MapFS{"one.md": {Data: []byte(text)}, "two.md": twoGuides["two.md"]}
		s := site.New(config(t, guides))
		if _, err := s.Paths(); err == nil {
			t.Errorf("%s: no error", name)
		}
		if w := get(t, s, "/docs"); w.Code != http.StatusInternalServerError {
			t.Errorf("%s: status %d", name, w.Code)
		}
	}
}

func TestAnswers(t *testing.T) {
	t.Parallel()
	s := site.New(config(t, twoGuides))
	plain := get(t, s, "/docs")
	if plain.Header().Get("Content-Encoding") != "" || !strings.HasPrefix(plain.Body.String(), "<!doctype html>") {
		t.Error("a caller without gzip gets something else than a page")
	}
	packed := get(t, s, "/docs", "Accept-Encoding", "br, gzip;q=0.5")
	r, err := gzip.NewReader(packed.Body)
	if err != nil {
		t.Fatal(err)
	}
	if text, err := io.ReadAll(r); err != nil || string(text) != plain.Body.String() {
		t.Errorf("the compressed page is another one: %v", err)
	}
	if w := get(t, s, "/docs", "Accept-Encoding", "gzip;q=0"); w.Header().Get("Content-Encoding") != "" {
		t.Error("gzip is sent to a caller who refuses it")
	}
	etag := plain.Header().Get("ETag")
	if w := get(t, s, "/docs", "If-None-Match", `"x", `+etag); w.Code != http.StatusNotModified || w.Body.Len() > 0 {
		t.Errorf("status %d for a page that the caller has", w.Code)
	}
	head := httptest.NewRecorder()
	s.ServeHTTP(head, httptest.NewRequest(http.MethodHead, "/docs", nil))
	if head.Code != http.StatusOK || head.Body.Len() > 0 || head.Header().Get("Content-Length") == "0" {
		t.Errorf("HEAD: status %d, %d bytes, %v", head.Code, head.Body.Len(), head.Header())
	}
	w := get(t, s, "/docs/guide/one/")
	if w.Code != http.StatusMovedPermanently || w.Header().Get("Location") != "/docs/guide/one" {
		t.Errorf("status %d with a slash at the end", w.Code)
	}
	w = get(t, s, "/docs/guide/three", "If-None-Match", "*")
	if w.Code != http.StatusNotFound || w.Header().Get("ETag") != "" {
		t.Errorf("status %d for a page that is not there", w.Code)
	}
}

func TestHeaders(t *testing.T) {
	t.Parallel()
	s := site.New(config(t, twoGuides))
	paths, err := s.Paths()
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range append(paths, "/docs/nothing") {
		h := get(t, s, path).Header()
		policy := h.Get("Content-Security-Policy")
		for _, part := range []string{
			"default-src 'none'; ", "script-src 'self'; ", "connect-src 'self'; ", "object-src 'none'", "base-uri 'none'", "frame-ancestors 'none'", "form-action 'none'",
		} {
			if !strings.Contains(policy, part) {
				t.Errorf("%s: the policy has no %s", path, part)
			}
		}
		reference := path == "/docs/reference/v9"
		if strings.Contains(policy, "'unsafe-inline'") != reference || strings.Contains(policy, "data:") != reference || strings.Contains(policy, "http") || strings.Contains(policy, "*") {
			t.Errorf("%s: the policy is %s", path, policy)
		}
		if h.Get("X-Content-Type-Options") != "nosniff" || h.Get("Referrer-Policy") != "no-referrer" {
			t.Errorf("%s: headers %v", path, h)
		}
		want := "no-cache"
		if strings.HasPrefix(path, "/docs/assets/") || strings.HasPrefix(path, "/docs/search-") {
			want = "public, max-age=31536000, immutable"
		}
		if got := strings.TrimPrefix(h.Get("Cache-Control"), "private, "); got != want {
			t.Errorf("%s: Cache-Control %s", path, got)
		}
	}
}

// TestOperate: the operators' guides have their own list and navigation, and partners'
// pages and lists know nothing of them.
func TestOperate(t *testing.T) {
	t.Parallel()
	c := config(t, twoGuides)
	c.Operate, c.OperateOrder = fstest.MapFS{"running.md": {Data: []byte("# Running\n\nSee [one](../guide/one.md).\n")}}, []string{"running"}
	s := site.New(c)
	for _, path := range []string{"/docs/operate", "/docs/operate/running"} {
		page := get(t, s, path).Body.String()
		if !strings.Contains(page, `<li><a href="/docs/operate/running"`) || strings.Contains(page, `<li><a href="/docs/guide/`) {
			t.Errorf("the navigation of %s is not the operators':\n%s", path, page)
		}
	}
	if page := get(t, s, "/docs/operate/running").Body.String(); !strings.Contains(page, `<a href="/docs/guide/one">one</a>`) {
		t.Errorf("no link leads to a partners' guide:\n%s", page)
	}
	paths, err := s.Paths()
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range paths {
		if body := get(t, s, path).Body.String(); !strings.HasPrefix(path, "/docs/operate") && strings.Contains(body, "/docs/operate") {
			t.Errorf("%s leads to the operators' guides:\n%s", path, body)
		}
	}
}
