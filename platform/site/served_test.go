package site_test

import (
	"compress/gzip"
	"crypto/sha256"
	"crypto/tls"
	"fmt"
	"html/template"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"golang.org/x/net/html"

	"partnerapi/domain"
	"partnerapi/platform/site"
	"partnerapi/platform/site/sitetest"
)

// sampled is a guide with a sample.
var sampled = fstest.MapFS{
	"one.md": {Data: []byte("# One\n\nFirst.\n\n```sh\ncurl -H \"X-API-Key: pk_demo_all\" \"http://127.0.0.1:8080/v9/things\"\n```\n")},
	"two.md": twoGuides["two.md"],
}

// called is the guide as it is served to a request with a Host.
func called(t *testing.T, s http.Handler, path, host string, secure bool, headers ...string) *httptest.ResponseRecorder {
	t.Helper()
	r := httptest.NewRequest(http.MethodGet, path, nil)
	r.Host = host
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	if secure {
		r.TLS = &tls.ConnectionState{}
	}
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	return w
}

// TestAddress: samples name the public URL, else the address that was called, and one
// that is none never.
func TestAddress(t *testing.T) {
	t.Parallel()
	const own = "http://127.0.0.1:4711"
	for _, tt := range []struct {
		public, host string
		secure       bool
		want         string
	}{
		{"", "api.example.com", false, "http://api.example.com"},
		{"", "api.example.com:8443", true, "https://api.example.com:8443"},
		{"", "[2001:db8::1]:80", false, "http://[2001:db8::1]:80"},
		{"https://partner.example/api", "elsewhere.example", false, "https://partner.example/api"},
		{"https://partner.example/?a&b", "elsewhere.example", false, "https://partner.example/?a&amp;b"},
		{"", "", false, own},
		{"", `x"><script>alert(1)</script>`, false, own},
		{"", "a.example/b", false, own},
		{"", "user@a.example", false, own},
		{"", "a.example\nx", false, own},
		{"", "a.example:123456", false, own},
		{"", "[::1", false, own},
		{"", "$(id)", false, own},
		{"", strings.Repeat("a", 254), false, own},
	} {
		c := config(t, sampled)
		c.PublicURL, c.Address = tt.public, own
		w := called(t, site.New(c), "/docs/guide/one", tt.host, tt.secure, "X-Forwarded-Host", "forwarded.example", "Forwarded", "host=forwarded.example")
		if page := w.Body.String(); !strings.Contains(page, tt.want+"/v9/things") || strings.Contains(page, "forwarded.example") {
			t.Errorf("%+v: the page is\n%s", tt, page)
		}
	}
}

// TestAddressOfEach: what a caller is sent names that caller's address, whoever came
// before, and no cache keeps it for others.
func TestAddressOfEach(t *testing.T) {
	t.Parallel()
	s := site.New(config(t, sampled))
	etags := map[string]string{}
	for _, host := range []string{"a.example", "b.example", "a.example", "a.example"} {
		for _, path := range []string{"/", "/docs", "/llms.txt", "/docs/guide/one", "/docs/guide/one.md"} {
			w := called(t, s, path, host, false)
			if !strings.Contains(w.Body.String(), "http://"+host) || strings.Contains(w.Body.String(), "127.0.0.1:8080") {
				t.Errorf("%s of %s:\n%s", path, host, w.Body)
			}
			if got := w.Header().Get("Cache-Control"); got != "private, no-cache" {
				t.Errorf("%s: Cache-Control %s", path, got)
			}
			etag := w.Header().Get("ETag")
			if before := etags[path+host]; before != "" && before != etag {
				t.Errorf("%s of %s has the ETag %s, and had %s", path, host, etag, before)
			}
			etags[path+host] = etag
			if w := called(t, s, path, host, false, "If-None-Match", etag); w.Code != http.StatusNotModified {
				t.Errorf("%s of %s: status %d", path, host, w.Code)
			}
		}
	}
	if w := called(t, s, "/docs/guide/one", "b.example", false, "If-None-Match", etags["/docs/guide/onea.example"]); w.Code != http.StatusOK {
		t.Errorf("the page of another address is taken for this one: status %d", w.Code)
	}
	if got := called(t, s, "/docs/guide/two", "a.example", false).Header().Get("Cache-Control"); got != "no-cache" {
		t.Errorf("Cache-Control of a page that names no address: %s", got)
	}
}

// BenchmarkInventedAddresses measures a document for callers who invent a Host each time: it costs no copy.
func BenchmarkInventedAddresses(b *testing.B) {
	item := `{"url": "http://127.0.0.1:8080/docs/guide/errors", "text": "` + strings.Repeat("a description ", 10) + `"},`
	s := (&site.Documents{}).Handler("application/json", func() ([]byte, error) { return []byte(strings.Repeat(item, 4000)), nil })
	b.ReportAllocs()
	for n := 0; b.Loop(); n++ {
		r := httptest.NewRequest(http.MethodGet, "/v9/openapi.json", nil)
		r.Host = fmt.Sprintf("host-%d.example", n)
		s.ServeHTTP(unread{http.Header{}}, r)
	}
}

// unread is a response that nobody reads.
type unread struct{ header http.Header }

func (u unread) Header() http.Header          { return u.header }
func (unread) Write(part []byte) (int, error) { return len(part), nil }
func (unread) WriteHeader(int)                {}

// TestKeysOfSamples: the keys of the demonstration are shown where they are valid; elsewhere the
// place of the reader's key is marked. Each sample can be copied.
func TestKeysOfSamples(t *testing.T) {
	t.Parallel()
	for demo, want := range map[bool]string{true: "pk_demo_all", false: "YOUR_API_KEY"} {
		c := config(t, sampled)
		c.Demo = demo
		for _, path := range []string{"/", "/docs", "/docs/guide/one", "/docs/guide/one.md"} {
			body := get(t, site.New(c), path).Body.String()
			if !strings.Contains(body, want) || strings.Contains(body, "pk_demo") != demo {
				t.Errorf("%s, %v:\n%s", path, demo, body)
			}
			if path == "/docs/guide/one" && (!strings.Contains(body, `<button class="copy" type="button">Copy</button>`) ||
				strings.Contains(body, `X-API-Key: <span class="your-key">YOUR_API_KEY</span>`) == demo) {
				t.Errorf("%v:\n%s", demo, body)
			}
		}
	}
}

// TestKeyOfTry verifies that the start page asks for an API key unless the demonstration's key is valid.
func TestKeyOfTry(t *testing.T) {
	t.Parallel()
	for _, demo := range []bool{true, false} {
		c := config(t, twoGuides)
		c.Demo = demo
		page := get(t, site.New(c), "/").Body.String()
		if !strings.Contains(page, ">Try it</a>") || strings.Contains(page, "You need an") == demo {
			t.Errorf("with the demonstration %v, got\n%s", demo, page)
		}
	}
}

// TestCodeInChangelog verifies that the descriptions of additions show names as code, and that the feed has no markup.
func TestCodeInChangelog(t *testing.T) {
	t.Parallel()
	c := config(t, twoGuides)
	c.Changes = []site.Change{{ID: "release-9.1", Title: "Release 9.1", On: site.SampleDay, Additions: []site.Addition{{
		Name: "b", About: "More than evaluated_at. page.as_of is `null` if a < b_2, a.b or e.g. x.",
	}}}}
	s := site.New(c)
	want := "More than <code>evaluated_at</code>. <code>page.as_of</code> is <code>null</code> if a &lt; <code>b_2</code>, a.b or e.g. x.</li>"
	if page := get(t, s, "/docs/changelog").Body.String(); !strings.Contains(page, want) {
		t.Errorf("got\n%s\nwant %s", page, want)
	}
	want = "Field b (): More than evaluated_at. page.as_of is null if a &lt; b_2, a.b or e.g. x.<"
	if feed := get(t, s, "/docs/changelog.atom").Body.String(); !strings.Contains(feed, want) {
		t.Errorf("got\n%s\nwant %s", feed, want)
	}
}

// TestNotice: the notice is on the pages that it is for, as it is at the request.
func TestNotice(t *testing.T) {
	t.Parallel()
	c := config(t, twoGuides)
	now := template.HTML("")
	c.Notice = site.Notice{Reference: "v9", Guides: []string{"two"}, Text: func() template.HTML { return now }}
	s := site.New(c)
	for _, now = range []template.HTML{"", "<p>It ends.</p>", "<p>It ended.</p>", ""} {
		for path, noticed := range map[string]bool{
			"/": true, "/docs": true, "/docs/reference/v9": true, "/docs/guide/two": true, "/docs/guide/one": false, "/docs/nothing": false,
		} {
			page := get(t, s, path).Body.String()
			if got := strings.Contains(page, `<section class="notice" aria-label="Notice">`+string(now)); got != (noticed && now != "") ||
				strings.Contains(page, "notice -->") {
				t.Errorf("%s, %q:\n%s", path, now, page)
			}
		}
	}
}

// TestNoticeIsInTheTitle verifies that a notice is a part of the title. Beside it in the grid of a wide screen, it would
// take the row of the title, and leave a gap above the text.
func TestNoticeIsInTheTitle(t *testing.T) {
	t.Parallel()
	c := config(t, twoGuides)
	c.Notice = site.Notice{Guides: []string{"one"}, Text: func() template.HTML { return "<p>It ends.</p>" }}
	page := sitetest.Read(t, "the guide", get(t, site.New(c), "/docs/guide/one").Body.String())
	class := func(n *html.Node) string { return sitetest.Attribute(n, "class") }
	var rows []string
	for _, n := range page.Nodes {
		if n.Parent.Data == "main" {
			rows = append(rows, class(n))
		}
		if class(n) == "notice" && class(n.Parent) != "title" {
			t.Errorf("the notice is in <%s class=%q>", n.Parent.Data, class(n.Parent))
		}
	}
	if want := []string{"title", "contents-list", "contents", "body"}; !slices.Equal(rows, want) {
		t.Errorf("the parts of the page are %q, want %q", rows, want)
	}
}

// TestToldChanges verifies that the changelog and its feed have the changes that the service tells at a request, in the
// order of their days.
func TestToldChanges(t *testing.T) {
	t.Parallel()
	c := config(t, twoGuides)
	day := func(n int) time.Time { return site.SampleDay.AddDate(0, 0, n) }
	c.Changes = []site.Change{{ID: "release-9.2", Title: "Release 9.2", On: day(20)}, {ID: "release-9.1", Title: "Release 9.1", On: day(0)}}
	var told []site.Change
	c.Notice.Changes = func() []site.Change { return told }
	s := site.New(c)
	end := func(title string) []site.Change {
		return []site.Change{{ID: "end", Title: title, On: day(10), Text: "See [two](/docs/guide/two)."}}
	}
	for _, tt := range []struct {
		told []site.Change
		want []string
	}{
		{nil, []string{"Release 9.2", "Release 9.1"}},
		{end("It ends in May"), []string{"Release 9.2", "It ends in May", "Release 9.1"}},
		{end("It ends in June"), []string{"Release 9.2", "It ends in June", "Release 9.1"}},
		{nil, []string{"Release 9.2", "Release 9.1"}},
	} {
		told = tt.told
		page, feed := get(t, s, "/docs/changelog").Body.String(), get(t, s, "/docs/changelog.atom").Body.String()
		for text, title := range map[string]*regexp.Regexp{page: regexp.MustCompile(`<h2 id="[^"]+">([^<]+)</h2>`), feed: regexp.MustCompile(`    <title>([^<]+)</title>`)} {
			var got []string
			for _, found := range title.FindAllStringSubmatch(text, -1) {
				got = append(got, found[1])
			}
			if !slices.Equal(got, tt.want) {
				t.Errorf("got the entries %q, want %q", got, tt.want)
			}
		}
		if told != nil && (!strings.Contains(page, `See <a href="/docs/guide/two">two</a>.`) || !strings.Contains(feed, "<content>See two.</content>")) {
			t.Errorf("the text is not in\n%s\n%s", page, feed)
		}
	}
}

// TestDates verifies that dates of samples are those of a demonstration that was made today, and that whole months stay
// whole.
func TestDates(t *testing.T) {
	t.Parallel()
	c := config(t, fstest.MapFS{
		"one.md": {Data: []byte("# One\n\nFirst.\n\n```sh\ncurl -d '{\"send_at\": \"2026-06-16T09:00:00Z\"}' http://127.0.0.1:8080/v9/things?since=2025-12-31\ncurl 'http://127.0.0.1:8080/v9/bill?from=2026-05-01&to=2026-05-31'\n```\n\n```json\n{\"never\":\"0001-01-01T00:00:00Z\",\"odd\":\"2026-13-01\"}\n```\n")},
		"two.md": twoGuides["two.md"],
	})
	clock := domain.NewManualClock(site.SampleDay)
	c.Clock = clock
	s := site.New(c)
	for days, want := range map[int][4]string{
		0:   {"2026-06-16T09", "2025-12-31", "from=2026-05-01", "to=2026-05-31"},
		30:  {"2026-07-16T09", "2026-01-30", "from=2026-06-01", "to=2026-06-30"},
		167: {"2026-11-30T09", "2026-06-16", "from=2026-10-01", "to=2026-10-31"},
	} {
		clock.Set(site.SampleDay.AddDate(0, 0, days).Add(23 * time.Hour))
		for _, path := range []string{"/docs/guide/one", "/docs/guide/one.md"} {
			page := get(t, s, path).Body.String()
			for _, part := range append(want[:], "0001-01-01T00", "2026-13-01") {
				if !strings.Contains(page, part) {
					t.Errorf("after %d days %s has no %s:\n%s", days, path, part, page)
				}
			}
		}
	}
}

// TestCompressed verifies that each page is in gzip from the first request on, whatever address it is requested at, and
// is the uncompressed page.
func TestCompressed(t *testing.T) {
	t.Parallel()
	s := site.New(config(t, sampled))
	for i := range 50 {
		host := fmt.Sprintf("h%d.example", i)
		for _, path := range []string{"/docs/guide/one", "/docs/guide/two", "/", "/llms.txt", "/docs/nothing"} {
			w := called(t, s, path, host, false, "Accept-Encoding", "gzip")
			if got := w.Header().Get("Content-Encoding"); got != "gzip" {
				t.Fatalf("%s of %s has the encoding %q", path, host, got)
			}
			if got := w.Header().Get("Content-Length"); got != strconv.Itoa(w.Body.Len()) {
				t.Errorf("%s of %s: Content-Length %s of %d bytes", path, host, got, w.Body.Len())
			}
			r, err := gzip.NewReader(w.Body)
			if err != nil {
				t.Fatal(err)
			}
			text, err := io.ReadAll(r)
			if err != nil {
				t.Fatal(err)
			}
			if want := called(t, s, path, host, false).Body.String(); string(text) != want {
				t.Errorf("%s of %s is\n%s\nwant\n%s", path, host, text, want)
			}
		}
	}
}

// TestAccent verifies that the styles and the icon have the colors of the service's identity.
func TestAccent(t *testing.T) {
	t.Parallel()
	for file, parts := range map[string][]string{
		"frame.css": {
			"--link: " + domain.Accent + ";", "--link: " + domain.AccentOnDark + ";",
			"--scalar-color-accent: " + domain.Accent + ";", "--scalar-color-accent: " + domain.AccentOnDark + ";",
		},
		"icon.svg": {`fill="` + domain.Accent + `"`},
	} {
		text, err := os.ReadFile("assets/" + file)
		if err != nil {
			t.Fatal(err)
		}
		for _, part := range parts {
			if !strings.Contains(string(text), part) {
				t.Errorf("%s has no %s", file, part)
			}
		}
	}
}

// TestStartPage verifies that the start page shows a request in each language, its response, and all operations by their
// resources.
func TestStartPage(t *testing.T) {
	t.Parallel()
	body := get(t, site.New(config(t, twoGuides)), "/").Body.String()
	page := sitetest.Read(t, "/", body)
	var tabs, resources []string
	for _, n := range page.Nodes {
		switch {
		case sitetest.Attribute(n, "role") == "tab":
			tabs = append(tabs, n.FirstChild.Data)
		case n.Data == "h3":
			resources = append(resources, n.FirstChild.Data)
		}
	}
	if want := []string{"curl", "Python", "JavaScript"}; !slices.Equal(tabs, want) {
		t.Errorf("got the tabs %q, want %q", tabs, want)
	}
	if want := []string{"small_things", "big_things"}; !slices.Equal(resources, want) {
		t.Errorf("got the resources %q, want %q", resources, want)
	}
	for _, link := range []string{"/docs/reference/v9#tag/small_things/things-update", "/docs/reference/v9#tag/big_things/things-get-one"} {
		if !strings.Contains(body, `<a href="`+link+`">`) {
			t.Errorf("the page has no link to %s", link)
		}
	}
}

// TestVendored: the scripts of others, and their licenses, are those that renew.sh wrote.
func TestVendored(t *testing.T) {
	t.Parallel()
	const dir = "assets/vendor"
	sums, err := os.ReadFile(filepath.Join(dir, "SHA256SUMS"))
	if err != nil {
		t.Fatal(err)
	}
	files, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var are []string
	for _, file := range files {
		if slices.Contains([]string{"SHA256SUMS", "renew.sh"}, file.Name()) {
			continue
		}
		text, err := os.ReadFile(filepath.Join(dir, file.Name()))
		if err != nil {
			t.Fatal(err)
		}
		are = append(are, fmt.Sprintf("%x  %s", sha256.Sum256(text), file.Name()))
	}
	recorded := strings.Split(strings.TrimSpace(string(sums)), "\n")
	slices.Sort(are)
	slices.Sort(recorded)
	if !slices.Equal(are, recorded) {
		t.Errorf("the files are\n%s\nand SHA256SUMS says\n%s", strings.Join(are, "\n"), strings.Join(recorded, "\n"))
	}
}
