//go:build slow

package main

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"partnerapi/platform/site/sitetest"
)

var (
	headerLink = regexp.MustCompile(`<([^>]+)>`)
	textLink   = regexp.MustCompile(`\]\((https://partner\.example[^)]*)\)`)
)

// TestBehindProxy walks all that pages, the index of the search and headers lead to, behind a proxy that takes the
// path of --public-url off. No link leads past it.
func TestBehindProxy(t *testing.T) {
	t.Parallel()
	const host, path = "https://partner.example", "/partners/api"
	flag := demonstration(t)
	starts := []string{"/", "/llms.txt", "/docs/operate", "/docs/guide/start/", "/docs/reference/v2/clients"}
	if older() {
		must(t, "v1", "announce", flag, "--announced=2024-01-31", "--sunset=2099-01-31")
		starts = append(starts, "/v1/clients?limit=1", "/v1/clients/1/users", "/v1/partner")
	}
	s := builtService(t, opened(t, flag), guideBase, resources{}, "serve", "--demo", "--release=latest", "--public-url="+host+path)
	front := http.StripPrefix(path, s.engine)

	from, todo, inHeaders := map[string]string{}, []string{}, 0 // where each link was found
	follow := func(source string, links ...string) (added int) {
		for _, link := range links {
			target, err := url.Parse(strings.TrimPrefix(link, host))
			if err != nil {
				t.Fatalf("%s: %v", source, err)
			}
			if at := target.RequestURI(); target.Host == "" && target.Path != "" && from[at] == "" {
				from[at] = source
				todo = append(todo, at)
				added++
			}
		}
		return added
	}
	for _, start := range starts {
		follow("the start", path+start)
	}
	for ; len(todo) > 0; todo = todo[1:] {
		link := todo[0]
		answer, r := httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, link, nil)
		r.Header.Set("X-API-Key", "pk_demo_all")
		front.ServeHTTP(answer, r)
		if answer.Code == http.StatusMovedPermanently {
			follow(link, answer.Header().Get("Location"))
			continue
		}
		if answer.Code != http.StatusOK {
			t.Errorf("%s, which %s leads to: status %d", link, from[link], answer.Code)
		}
		for _, found := range headerLink.FindAllStringSubmatch(strings.Join(answer.Header()["Link"], " "), -1) {
			inHeaders += follow("a header of "+link, found[1])
		}
		follow(link, linksWithin(t, link, answer)...)
	}
	if len(from) < 60 || older() && inHeaders < 6 {
		t.Errorf("only %d links were followed, %d of headers", len(from), inHeaders)
	}
}

// linksWithin are the links of a page, a text, or the index of the search.
func linksWithin(t *testing.T, path string, answer *httptest.ResponseRecorder) (links []string) {
	body := answer.Body.String()
	switch kind, _, _ := strings.Cut(answer.Header().Get("Content-Type"), ";"); {
	case kind == "text/html":
		return linksOf(sitetest.Read(t, path, body))
	case kind == "text/plain":
		for _, found := range textLink.FindAllStringSubmatch(body, -1) {
			links = append(links, found[1])
		}
	case strings.Contains(path, "/docs/search-"):
		var entries []struct{ Path string }
		if err := json.Unmarshal([]byte(body), &entries); err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			links = append(links, e.Path)
		}
	}
	return links
}
