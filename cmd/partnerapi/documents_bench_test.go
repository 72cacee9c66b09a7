package main

import (
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/gin-gonic/gin"

	"partnerapi/platform/site"
	"partnerapi/v2/op"
	"partnerapi/v2/op/ginop"
)

// BenchmarkDocuments measures an anonymous request for a document, as each caller names the
// service: by one Host, and by another one at each request.
func BenchmarkDocuments(b *testing.B) {
	for _, path := range []string{
		"/v2/openapi.json", "/v2/openapi.yaml", "/llms.txt", "/llms-full.txt", "/docs", "/docs/guide/errors", "/docs/guide/errors.md", "/docs/reference/v2",
	} {
		for _, hosts := range []int{1, 1 << 30} {
			name := map[int]string{1: "one host", 1 << 30: "changing hosts"}[hosts]
			b.Run(path+"/"+name, func(b *testing.B) {
				h := documentsOnly(b)
				r := httptest.NewRequest(http.MethodGet, path, nil)
				r.Header.Set("Accept-Encoding", "gzip")
				ask := func(i int) {
					r.Host = fmt.Sprintf("h%d.example", i%hosts)
					w := httptest.NewRecorder()
					if h.ServeHTTP(w, r); w.Code != http.StatusOK {
						b.Fatal(w.Code)
					}
				}
				for i := range 50 { // those that are compressed
					ask(i)
				}
				for i := 50; b.Loop(); i++ {
					ask(i)
				}
			})
		}
	}
}

// documentsOnly serves the documents and the pages, and nothing else: it needs no database.
func documentsOnly(tb testing.TB) http.Handler {
	tb.Helper()
	edge := ginop.NewEdge(ginop.Config{Limits: ginop.DefaultLimits, Log: slog.New(slog.DiscardHandler)})
	engine, err := edge.Engine(nil)
	if err != nil {
		tb.Fatal(err)
	}
	surface := edge.Mount(engine, &op.Set{}, op.Latest)
	config, err := pagesOf(op.Latest)
	if err != nil {
		tb.Fatal(err)
	}
	if err := openDocuments(surface, op.Latest, config.Documents, false); err != nil {
		tb.Fatal(err)
	}
	pages := gin.WrapH(site.New(config))
	for _, path := range []string{"/", "/llms.txt", "/llms-full.txt", "/docs", "/docs/*page"} {
		engine.GET(path, pages)
	}
	return ginop.Compress(engine)
}
