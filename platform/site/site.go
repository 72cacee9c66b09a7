// Package site serves the pages for people: / and /docs, with the guides and the reference of every version (decisions
// 12.2). All pages are rendered at the first request, and each is compressed once. Requests need no API key, and no
// rate limit applies to them. Pages load nothing from other hosts.
package site

import (
	"cmp"
	"errors"
	"fmt"
	"html/template"
	"io/fs"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/getkin/kin-openapi/openapi3"

	"partnerapi/domain"
)

// Config is the content of the pages.
type Config struct {
	// Version is the version of the program.
	Version string
	// Releases are the releases of the API, lowest first.
	Releases []Release
	// Changes are the entries of the changelog, the newest first.
	Changes []Change
	// Guides holds a file NAME.md for each name of Groups, which are in the order of reading.
	Guides fs.FS
	Groups []Group
	// Operate holds a file NAME.md for each name of OperateOrder: the operators' guides,
	// whose pages are below /docs/operate.
	Operate      fs.FS
	OperateOrder []string
	// GuidePaths are the paths of guides that are not at /docs/guide/NAME, by name.
	GuidePaths map[string]string
	// References are the references of the API's versions, the preferred version first.
	References []Reference
	// Words are further search words for operations, by the operations' ids.
	Words map[string]string
	// Documents has the addresses of the service.
	*Documents
	// Demo is true if the keys of the demonstration are valid; otherwise no page shows them.
	Demo bool
	// Brand returns the brand for a request: the same pointer until the brand changes. Nil is a function that returns
	// none.
	Brand func() *domain.Brand
	// Notice may be zero.
	Notice Notice
	// Log gets errors in the pages' sources, for which all requests return 500.
	Log *slog.Logger
}

// Group is a list of guides with a common purpose, by name.
type Group struct {
	Title  string
	Guides []string
}

// Release is a release of the API.
type Release struct {
	Name string
	// About is a sentence about the additions of the release.
	About string
	// Served is true if the service serves the release's operations.
	Served bool
	// Operations are the operations that the release adds.
	Operations []Operation
}

// Operation is an operation by method and path: GET, /v2/clients.
type Operation struct{ Method, Path, Summary string }

// Reference is the reference of a version of the API.
type Reference struct {
	// Name is the name of the version in paths: v2.
	Name string
	// Title is the title of its page.
	Title string
	// Prefix is the prefix of the document's paths: /v2.
	Prefix string
	// Document is the OpenAPI document. It is not changed.
	Document *openapi3.T
	// Files are the paths of the document. The page loads the last.
	Files []string
}

// Site serves the pages: it is an http.Handler for /, /llms.txt, /llms-full.txt, /docs and all paths below /docs.
type Site struct {
	config Config
	pages  func() (map[string]*content, error)
	// builder is set by pages. changelog is the changelog that was requested last.
	builder   *builder
	changelog atomic.Pointer[currentChangelog]
	// branded is the header for the brand of the request before.
	branded atomic.Pointer[brandedHeader]
}

// New returns a Site, which renders the pages at the first request.
func New(c Config) *Site {
	s := &Site{config: c}
	s.pages = sync.OnceValues(func() (map[string]*content, error) {
		b, err := build(c)
		if err != nil {
			return nil, err
		}
		s.builder = b
		return b.pages, nil
	})
	return s
}

// notFoundPage is the key of the page for unknown paths in the map of pages. It is not a path.
const notFoundPage = ""

// Paths returns all paths except notFoundPage, unordered. It returns an error for an invalid guide or document.
func (s *Site) Paths() ([]string, error) {
	pages, err := s.pages()
	if err != nil {
		return nil, err
	}
	var paths []string
	for path := range pages {
		if path != notFoundPage {
			paths = append(paths, path)
		}
	}
	return paths, nil
}

// ServeHTTP answers GET and HEAD: with the page of the path, a redirect to the new path of a moved page, or 404.
func (s *Site) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	setHeaders(w.Header())
	pages, err := s.pages()
	if err != nil {
		s.config.Log.ErrorContext(r.Context(), "the pages cannot be rendered", "error", err)
		http.Error(w, "The documentation is not available.", http.StatusInternalServerError)
		return
	}

	path, state, v := r.URL.Path, servedState{demo: s.config.Demo, header: s.header()}, values{base: s.config.BaseOf(r)}
	if found := state.header.files[path]; found != nil {
		found.serve(w, r, http.StatusOK, state, v)
		return
	}
	if s.config.Notice.Text != nil {
		state.notice = template.HTML(s.config.addRoot([]byte(s.config.Notice.Text())))
	}
	if found, err := s.changelogPage(path); err != nil {
		s.config.Log.ErrorContext(r.Context(), "the changelog cannot be rendered", "error", err)
	} else if found != nil {
		found.serve(w, r, http.StatusOK, state, v)
		return
	}
	if found, ok := pages[path]; ok && path != notFoundPage { // which is served as a 404 only
		if found.shiftsDates {
			state.days = daysSinceSample(s.config.clock().Now())
		}
		found.serve(w, r, http.StatusOK, state, v)
		return
	}
	if to := s.redirectTarget(path, pages); to != notFoundPage {
		http.Redirect(w, r, s.config.Root()+to, http.StatusMovedPermanently)
		return
	}
	v.nearest = s.nearestLink(path)
	pages[notFoundPage].serve(w, r, http.StatusNotFound, state, v)
}

// likely maps addresses that readers try to those of the pages that they mean. A page that does not exist is skipped.
var likely = map[string]string{
	"/docs/api": "/docs/reference/v2", "/docs/reference": "/docs/reference/v2", "/docs/api-reference": "/docs/reference/v2",
	"/docs/guide": "/docs", "/docs/guides": "/docs", "/docs/search": "/docs/index",
	"/docs/quickstart": "/docs/guide/start", "/docs/getting-started": "/docs/guide/start",
	"/docs/authentication": "/docs/guide/keys", "/docs/webhooks": "/docs/guide/webhooks", "/docs/errors": "/docs/guide/errors",
	"/docs/releases": "/docs/changelog", "/docs/feed": "/docs/changelog.atom", "/docs/rss": "/docs/changelog.atom",
	"/guides": "/docs", "/reference": "/docs/reference/v2", "/changelog": "/docs/changelog",
}

// LikelyPaths returns the paths that the Site redirects and that are not below /docs.
func LikelyPaths() (paths []string) {
	for path := range likely {
		if !strings.HasPrefix(path, "/docs/") {
			paths = append(paths, path)
		}
	}
	slices.Sort(paths)
	return paths
}

// redirectTarget returns path without trailing slashes if that is a page, otherwise the new path of a page that moved,
// the page that a likely path means, or notFoundPage.
func (s *Site) redirectTarget(path string, pages map[string]*content) string {
	if trimmed := strings.TrimRight(path, "/"); pages[trimmed] != nil {
		return trimmed
	}
	// Guides with a path in GuidePaths were below /docs/guide in earlier releases. Other paths are no guide's name.
	name, isText := strings.CutSuffix(strings.TrimPrefix(path, "/docs/guide/"), ".md")
	if to := s.config.GuidePaths[name]; to != "" && isText {
		return to + ".md"
	} else if to != "" {
		return to
	}
	if to := likely[strings.TrimRight(strings.ToLower(path), "/")]; to != "" && pages[to] != nil {
		return to
	}
	// In earlier releases a reference had a page for each of its tags. For other paths name is empty, and no page's.
	name, _, _ = strings.Cut(strings.TrimPrefix(path, referencePath), "/")
	if reference := referencePath + name; pages[reference] != nil {
		return reference
	}
	return notFoundPage
}

// policy allows a page to load and call this service only; scalarPolicy also allows Scalar's
// inline styles, and images and fonts in data URLs.
const (
	policy       = "style-src 'self'; img-src 'self'; " + both
	scalarPolicy = "style-src 'self' 'unsafe-inline'; img-src 'self' data:; font-src 'self' data:; " + both

	both = "default-src 'none'; script-src 'self'; connect-src 'self'; " +
		"form-action 'none'; object-src 'none'; base-uri 'none'; frame-ancestors 'none'"
)

// setHeaders sets the security headers.
func setHeaders(h http.Header) {
	h.Set("Content-Security-Policy", policy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
}

// build returns a builder with all pages and files. The page for operators is omitted if there are no guides for them.
func build(c Config) (*builder, error) {
	b, err := newBuilder(c)
	if err != nil {
		return nil, err
	}
	if err := b.addSearchIndex(); err != nil { // before the pages, which refer to it
		return nil, err
	}
	b.addLLMsText()
	errs := []error{b.addGuidePages(), b.addReferencePages(), b.addChangelog()}
	for template, p := range fixedPages {
		if template != "operate" || len(b.Operate) > 0 {
			errs = append(errs, b.add(template, p, nil))
		}
	}
	return b, errors.Join(errs...)
}

// builder renders pages. Its exported fields are the data of all templates.
type builder struct {
	Config Config
	Assets assets
	Guides []*guide
	Groups []groupOfGuides
	// Operate are the operators' guides.
	Operate    []*guide
	References []*reference
	pages      map[string]*content
	listed     []page // the pages for people that partners read, but for notFoundPage
	// operations are the links of the operations of all references, by method and path: "GET /v2/clients".
	operations map[string]string
	markdown   *markdown
	// finder returns the finder of the guides.
	finder func() *finder
}

// newBuilder returns a builder with the assets, references and guides of the configuration.
func newBuilder(c Config) (*builder, error) {
	b := &builder{Config: c, pages: map[string]*content{}, operations: map[string]string{}}
	b.finder = sync.OnceValue(func() *finder { return newFinder(b.guideEntries()) })
	var err error
	if b.Assets, err = b.addAssets(); err != nil {
		return nil, err
	}

	for _, r := range c.References {
		made, err := newReference(r)
		if err != nil {
			return nil, fmt.Errorf("reference %s: %w", r.Name, err)
		}
		b.References = append(b.References, made)
		for _, o := range made.Operations {
			b.operations[o.Method+" "+o.Path] = o.Link
		}
	}

	paths := map[string]string{}
	for _, group := range c.Groups {
		for _, name := range group.Guides {
			paths[name] = cmp.Or(c.GuidePaths[name], "/docs/guide/"+name)
		}
	}
	for _, name := range c.OperateOrder {
		paths[name] = "/docs/operate/" + name
	}
	b.markdown = newMarkdown(b.operations, paths)
	for _, group := range c.Groups {
		list, err := b.readGuides(c.Guides, group.Guides)
		if err != nil {
			return nil, err
		}
		b.Guides, b.Groups = append(b.Guides, list...), append(b.Groups, groupOfGuides{group.Title, list})
	}
	b.Operate, err = b.readGuides(c.Operate, c.OperateOrder)
	return b, err
}
