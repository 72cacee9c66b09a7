package main

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/gin-gonic/gin"
	"github.com/klauspost/compress/gzhttp"
	"golang.org/x/net/html"

	"partnerapi/platform/site"
	"partnerapi/v2/op"
	"partnerapi/v2/op/ginop"
)

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
			body += textOf(body) // a sample may be cut into coloured pieces
		}
		for _, part := range []string{"pk_demo", "http://127.0.0.1:8080", "http://example.com"} {
			if i := strings.Index(body, part); i >= 0 {
				t.Errorf("%s shows %q", path, body[max(0, i-40):min(len(body), i+80)])
			}
		}
	}
}

// textOf is a page without its tags.
func textOf(page string) string {
	var out strings.Builder
	for z := html.NewTokenizer(strings.NewReader(page)); ; {
		switch z.Next() {
		case html.ErrorToken:
			if !errors.Is(z.Err(), io.EOF) {
				return z.Err().Error()
			}
			return out.String()
		case html.TextToken:
			out.Write(z.Text())
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

// TestInventedAddresses: whoever asks for a document by ever new Hosts is sent it as it is
// after a while, and by nobody compressed; who has it is told so.
func TestInventedAddresses(t *testing.T) {
	t.Parallel()
	h := documentsOnly(t)
	for _, path := range []string{
		"/v2/openapi.json", "/v2/openapi.yaml", "/llms.txt", "/", "/docs", "/docs/guide/errors", "/docs/guide/errors.md",
	} {
		plain := 0
		for i := range 25 {
			r, w := httptest.NewRequest(http.MethodGet, path, nil), httptest.NewRecorder()
			r.Host = fmt.Sprintf("h%d.example", i)
			r.Header.Set("Accept-Encoding", "gzip")
			h.ServeHTTP(w, r)
			if w.Header().Get("Content-Encoding") == "" {
				plain++
				if !strings.Contains(w.Body.String(), "http://"+r.Host) {
					t.Errorf("%s does not name %s", path, r.Host)
				}
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
		if plain < 5 {
			t.Errorf("%s was compressed for %d addresses", path, 25-plain)
		}
	}
}

// documentsOnly serves the documents and the pages, and nothing else: it needs no database.
func documentsOnly(t *testing.T) http.Handler {
	t.Helper()
	edge := ginop.NewEdge(ginop.Config{Limits: ginop.DefaultLimits, Log: slog.New(slog.DiscardHandler)})
	engine, err := edge.Engine(nil)
	if err != nil {
		t.Fatal(err)
	}
	surface := edge.Mount(engine, &op.Set{}, op.Latest)
	config, err := pagesOf(op.Latest)
	if err != nil {
		t.Fatal(err)
	}
	if err := openDocuments(surface, op.Latest, config.Documents, false); err != nil {
		t.Fatal(err)
	}
	pages := gin.WrapH(site.New(config))
	for _, path := range []string{"/", "/llms.txt", "/llms-full.txt", "/docs", "/docs/*page"} {
		engine.GET(path, pages)
	}
	return ginop.Compress(engine)
}
