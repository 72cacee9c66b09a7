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

// TestBehindProxy walks all that pages, the index of the search and headers lead to, behind a proxy that takes the
// path of --public-url off. No link leads past it.
func TestBehindProxy(t *testing.T) {
	t.Parallel()
	const path = "/partners/api"
	const public = "https://partner.example" + path
	flag := demonstration(t)
	if older() {
		must(t, "v1", "announce", flag, "--announced=2024-01-31", "--sunset=2099-01-31")
	}
	s := builtService(t, opened(t, flag), guideBase, resources{}, "serve", "--demo", "--release=latest", "--public-url="+public)
	w := walk{T: t, front: http.StripPrefix(path, s.engine), public: public, from: map[string]string{}}

	w.add("the start", "/", "/llms.txt", "/docs/operate", "/docs/guide/start/", "/docs/reference/v2/clients")
	if older() {
		w.add("the start", "/v1/clients?limit=1", "/v1/clients/1/users", "/v1/partner")
	}
	for len(w.todo) > 0 {
		next := w.todo[0]
		w.todo = w.todo[1:]
		w.visit(next)
	}
	inHeaders := 0
	for _, from := range w.from {
		if strings.HasPrefix(from, "a header of ") {
			inHeaders++
		}
	}
	if len(w.from) < 60 || older() && inHeaders < 6 {
		t.Errorf("only %d links were followed, %d of headers", len(w.from), inHeaders)
	}
}

// walk is a visit of all links behind a proxy.
type walk struct {
	*testing.T
	front  http.Handler // takes the path off
	public string
	todo   []string
	from   map[string]string // where each link was found
}

// add adds paths below the public address.
func (w *walk) add(from string, paths ...string) {
	path := strings.TrimPrefix(w.public, "https://partner.example")
	for _, p := range paths {
		w.follow(from, path+p)
	}
}

// follow adds a link, if it leads to the service.
func (w *walk) follow(from, link string) {
	target, err := url.Parse(strings.ReplaceAll(link, w.public, strings.TrimPrefix(w.public, "https://partner.example")))
	if err != nil {
		w.Errorf("%s: %v", from, err)
		return
	}
	if at := target.RequestURI(); target.Host == "" && target.Path != "" && w.from[at] == "" {
		w.from[at] = from
		w.todo = append(w.todo, at)
	}
}

var (
	headerLink = regexp.MustCompile(`<([^>]+)>`)
	textLink   = regexp.MustCompile(`\]\((https://partner\.example[^)]*)\)`)
)

// visit follows a link, and adds those that its answer has.
func (w *walk) visit(link string) {
	answer, r := httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, link, nil)
	r.Header.Set("X-API-Key", "pk_demo_all")
	w.front.ServeHTTP(answer, r)
	if answer.Code == http.StatusMovedPermanently {
		w.follow(link, answer.Header().Get("Location"))
		return
	}
	if answer.Code != http.StatusOK {
		w.Errorf("%s, which %s leads to: status %d", link, w.from[link], answer.Code)
	}
	body := answer.Body.Bytes()
	for _, found := range headerLink.FindAllStringSubmatch(strings.Join(answer.Header()["Link"], " "), -1) {
		w.follow("a header of "+link, found[1])
	}
	switch kind, _, _ := strings.Cut(answer.Header().Get("Content-Type"), ";"); {
	case kind == "text/html":
		for _, found := range linksOf(sitetest.Read(w.T, link, string(body))) {
			w.follow(link, found)
		}
	case kind == "text/plain":
		for _, found := range textLink.FindAllSubmatch(body, -1) {
			w.follow(link, string(found[1]))
		}
	case strings.Contains(link, "/docs/search-"):
		var entries []struct{ Path string }
		if err := json.Unmarshal(body, &entries); err != nil {
			w.Fatal(err)
		}
		for _, e := range entries {
			w.follow(link, e.Path)
		}
	}
}
