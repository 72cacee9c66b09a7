package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/klauspost/compress/gzhttp"

	"partnerapi/db"
	"partnerapi/db/dbtest"
	"partnerapi/domain"
	"partnerapi/platform/site"
	"partnerapi/v2/op"
	"partnerapi/v2/op/ginop"
)

// TestDocuments wants what the command prints to be what services serve, but for their
// address, and to be valid documents with more operations in each release.
func TestDocuments(t *testing.T) {
	t.Parallel()
	printed := func(args ...string) string {
		return strings.ReplaceAll(must(t, append([]string{"openapi"}, args...)...), site.SampleBase, "")
	}
	operations := func(release string) int {
		text := printed("v2", "--release="+release)
		document, err := openapi3.NewLoader().LoadFromData([]byte(text))
		if err == nil {
			err = document.Validate(t.Context())
		}
		if err != nil {
			t.Fatal(err)
		}
		return strings.Count(text, "operationId: ")
	}
	var counts []int
	for release := op.V2_0; release <= op.Latest; release++ {
		counts = append(counts, operations(release.String()))
	}
	if counts[0] != 3 || !slices.IsSorted(counts) || len(slices.Compact(slices.Clone(counts[:4]))) != 4 {
		t.Errorf("operations per release: %v", counts)
	}
	latest := printed("v2", "--release=latest")
	if latest != printed("v2") || latest != printed("v2", "--release=2.5") {
		t.Error("without --release another document than the latest is printed")
	}

	r := serving(t, databaseFlag(t), "--release=2.0")
	served := func(path string) string {
		return strings.ReplaceAll(string(r.get(path, "").want(http.StatusOK).body), r.address, "")
	}
	if served("/v2/openapi.yaml") != printed("v2", "--release=2.0") || served("/v2/openapi.json") != printed("v2", "--release=2.0", "--json") {
		t.Error("the command prints another document of v2")
	}
	if !older() {
		r.get("/v1/openapi.yaml", "").want(http.StatusNotFound)
		refused(t, 2, []string{"openapi", "v1"}, `"v1"`, "use v2")
		return
	}
	if v1 := printed("v1"); v1 != served("/v1/openapi.yaml") || strings.Count(v1, "operationId: ") < 6 {
		t.Error("the command prints another document of v1")
	}
	refused(t, 2, []string{"openapi", "v1", "--json"}, "--json")
}

// TestSamplesAddressed: what is served names the service as its callers know it, and
// no key of the demonstration where there is none.
func TestSamplesAddressed(t *testing.T) {
	t.Parallel()
	config, err := pagesOf(op.Latest)
	if err != nil {
		t.Fatal(err)
	}
	config.PublicURL = "https://partner.example"
	pages := site.New(config)
	paths, err := pages.Paths()
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range paths {
		w := httptest.NewRecorder()
		pages.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
		body := w.Body.String()
		if strings.Contains(w.Header().Get("Content-Type"), "html") {
			body += regexp.MustCompile(`<[^>]*>`).ReplaceAllString(body, "") // a sample may be cut into colored pieces
		}
		for _, part := range []string{"pk_demo", "http://127.0.0.1:8080", "http://example.com"} {
			if i := strings.Index(body, part); i >= 0 {
				t.Errorf("%s shows %q", path, body[max(0, i-40):min(len(body), i+80)])
			}
		}
	}
}

// TestDocumentsAddressed: the documents' servers are the public URL's, else those of the
// address that was called, or of the service's own where that is none.
func TestDocumentsAddressed(t *testing.T) {
	t.Parallel()
	paths := []string{"/v2/openapi.yaml", "/v2/openapi.json"}
	if older() {
		paths = append(paths, "/v1/openapi.yaml")
	}
	d := opened(t, databaseFlag(t))
	const own = "http://127.0.0.1:4711"
	called := builtService(t, d, own, resources{}, "serve", "--no-work")
	public := builtService(t, d, guideBase, resources{}, "serve", "--public-url=https://partner.example/")
	for _, tt := range []struct {
		service    *service
		host, base string
	}{
		{called, "a.example", "http://a.example"}, {called, "[2001:db8::1]:80", "http://[2001:db8::1]:80"},
		{called, "a.example", "http://a.example"}, {called, `a"b`, own}, {public, "a.example", "https://partner.example"},
	} {
		for _, path := range paths {
			r, w := httptest.NewRequest(http.MethodGet, path, nil), httptest.NewRecorder()
			r.Host = tt.host
			tt.service.engine.ServeHTTP(w, r)
			document, err := openapi3.NewLoader().LoadFromData(w.Body.Bytes())
			if err != nil {
				t.Fatal(err)
			}
			if got := document.Servers[0].URL; got != tt.base+path[:3] || w.Header().Get("Cache-Control") != "private, no-cache" {
				t.Errorf("%s of %s: the server is %s, %v", path, tt.host, got, w.Header())
			}
		}
	}
}

// TestInventedAddresses verifies that documents are in gzip at every Host, which costs no compression (TestCompressed of
// platform/site), and that a caller who has one gets 304.
func TestInventedAddresses(t *testing.T) {
	t.Parallel()
	h := ginop.Compress(builtService(t, opened(t, databaseFlag(t)), guideBase, resources{}, "serve").engine)
	for _, path := range []string{"/v2/openapi.json", "/v2/openapi.yaml", "/llms.txt", "/docs/guide/errors"} {
		for i := range 25 {
			r, w := httptest.NewRequest(http.MethodGet, path, nil), httptest.NewRecorder()
			r.Host = fmt.Sprintf("h%d.example", i)
			r.Header.Set("Accept-Encoding", "gzip")
			h.ServeHTTP(w, r)
			if got := w.Header().Get("Content-Encoding"); got != "gzip" {
				t.Errorf("%s of %s has the encoding %q", path, r.Host, got)
			}
			if leaked := w.Header().Get(gzhttp.HeaderNoCompression); leaked != "" {
				t.Errorf("%s: the header for the compression is sent: %s", path, leaked)
			}

			etag := w.Header().Get("ETag")
			r.Header.Set("If-None-Match", etag)
			w = httptest.NewRecorder()
			if h.ServeHTTP(w, r); etag == "" || w.Code != http.StatusNotModified || w.Body.Len() != 0 {
				t.Errorf("%s with the ETag %q: status %d", path, etag, w.Code)
			}
		}
	}
}

// TestReferenceExamples: every GET of the reference with its example parameters is answered with content by a
// demonstration, whenever that was made.
func TestReferenceExamples(t *testing.T) {
	t.Parallel()
	for _, at := range []time.Time{
		guideTime, time.Date(2026, time.December, 31, 23, 30, 0, 0, time.UTC), time.Date(2028, time.February, 29, 0, 10, 0, 0, time.UTC),
	} {
		t.Run(at.Format(time.DateOnly), func(t *testing.T) {
			t.Parallel()
			d, err := db.Open(dbtest.URL(t, demonstrationOf("reference"+at.Format("20060102"), at)), db.WithClock(domain.NewManualClock(at)))
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = d.Close() })
			s := builtService(t, d, guideBase, resources{}, "serve", "--demo", "--release=latest")
			tried := 0
			for _, request := range exampleRequests(t, s) {
				tried++
				w := httptest.NewRecorder()
				r := httptest.NewRequest(http.MethodGet, request, nil)
				r.Header.Set("X-API-Key", "pk_demo_all")
				s.engine.ServeHTTP(w, r)
				var list struct{ Data []any }
				_ = json.Unmarshal(w.Body.Bytes(), &list)
				if w.Code != http.StatusOK || strings.Contains(w.Body.String(), `"data":[`) && len(list.Data) == 0 {
					t.Errorf("%s answers %d %s", request, w.Code, w.Body)
				}
			}
			if tried < 33 {
				t.Errorf("the reference has %d reads", tried)
			}
		})
	}
}

// exampleRequests are the paths and queries of the reads with the example parameters of the document that a
// service serves.
func exampleRequests(t *testing.T, s *service) (list []string) {
	t.Helper()
	w := httptest.NewRecorder()
	s.engine.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/v2/openapi.json", nil))
	document, err := openapi3.NewLoader().LoadFromData(w.Body.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	for path, item := range document.Paths.Map() {
		if item.Get == nil {
			continue
		}
		query := url.Values{}
		for _, p := range item.Get.Parameters {
			example := p.Value.Example
			if example == nil && p.Value.Schema.Value != nil {
				example = p.Value.Schema.Value.Example
			}
			if example == nil {
				continue
			}
			text, ok := example.(string)
			if !ok {
				encoded, _ := json.Marshal(example)
				text = string(encoded)
			}
			if p.Value.In == openapi3.ParameterInPath {
				path = strings.ReplaceAll(path, "{"+p.Value.Name+"}", url.PathEscape(text))
			} else {
				query.Set(p.Value.Name, text)
			}
		}
		if since, until := query.Get("since"), query.Get("until"); until != "" && since >= until {
			t.Errorf("%s: since %s is not before until %s", path, since, until)
		}
		list = append(list, "/v2"+path+"?"+query.Encode())
	}
	return list
}

// TestPlaceholders: without the demonstration, examples of ids are marked as what to replace.
func TestPlaceholders(t *testing.T) {
	t.Parallel()
	s := builtService(t, opened(t, databaseFlag(t)), guideBase, resources{}, "serve", "--release=latest")
	var marked int
	for _, request := range exampleRequests(t, s) {
		if strings.Contains(request, "_01") || strings.Contains(request, "%40") && !strings.Contains(request, "name%40example.com") {
			t.Errorf("%s names an object of the demonstration", request)
		}
		if strings.Contains(request, "/YOUR_CLIENT_ID") {
			marked++
		}
	}
	if marked < 10 {
		t.Errorf("%d paths have YOUR_CLIENT_ID", marked)
	}
}
