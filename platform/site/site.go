// Package site serves the pages for people: / and /docs, with the guides and
// the reference of every version (decisions 12.2). Pages are made once, at the
// first request for one of them, and kept compressed; those that name the service's
// address are kept so for a few addresses. They need no key and are
// counted in no budget. Nothing on them comes from another host.
package site

import (
	"cmp"
	"errors"
	"fmt"
	"html/template"
	"io/fs"
	"log/slog"
	"net/http"
	"strings"
	"sync"

	"github.com/getkin/kin-openapi/openapi3"
)

// Config is the content of the pages.
type Config struct {
	// Version is that of the program.
	Version string
	// Releases are the releases of the interface, lowest first.
	Releases []Release
	// Changes are the entries of the changelog, the newest first.
	Changes []Change
	// Guides holds a file NAME.md for each name of Groups, which are in the order of reading.
	Guides fs.FS
	Groups []Group
	// Operate holds the operators' guides in the same way. They are below /docs/operate,
	// which only they lead to.
	Operate      fs.FS
	OperateOrder []string
	// GuidePaths are the paths of guides that are not at /docs/guide/NAME, by name.
	GuidePaths map[string]string
	// References are the versions of the interface, the preferred one first.
	References []Reference
	// Words are further search words for operations, by the operations' ids.
	Words map[string]string
	// Documents says how the service is named.
	*Documents
	// Demo says that the keys of the demonstration are valid; else no page shows them.
	Demo bool
	// Notice may be zero.
	Notice Notice
	// Log is notified of a mistake in the pages' sources, which answers 500.
	Log *slog.Logger
}

// Group is guides with a common purpose.
type Group struct {
	Title  string
	Guides []string
}

// Release is a release of the interface.
type Release struct {
	Name string
	// About says in a sentence what the release adds.
	About string
	// Served says that the service answers the release's operations.
	Served bool
	// Operations are those that the release adds.
	Operations []Operation
}

// Operation is an operation by method and path: GET, /v2/clients.
type Operation struct{ Method, Path, Summary string }

// Reference is the documentation of a version of the interface.
type Reference struct {
	// Name is the version's in paths: v2.
	Name string
	// Title heads its pages.
	Title string
	// Prefix is the path that the document's paths lie below: /v2.
	Prefix string
	// Document is searched, and is not changed.
	Document *openapi3.T
	// Files are the paths of the document itself. The last is shown.
	Files []string
}

// Site is the pages, an http.Handler for /, /llms.txt, /llms-full.txt, /docs and all below /docs.
type Site struct {
	config Config
	pages  func() (map[string]*content, error)
}

// New returns the pages, which are rendered by the first request.
func New(c Config) *Site {
	return &Site{config: c, pages: sync.OnceValues(func() (map[string]*content, error) { return build(c) })}
}

// notFoundPage is the key of the page for unknown paths, which is no path.
const notFoundPage = ""

// Paths returns the paths of all pages and files, unordered. It fails on a mistake in the guides or documents.
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

// ServeHTTP answers GET and HEAD.
func (s *Site) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	setHeaders(w.Header())
	pages, err := s.pages()
	if err != nil {
		s.config.Log.ErrorContext(r.Context(), "the pages cannot be made", "error", err)
		http.Error(w, "The documentation is not available.", http.StatusInternalServerError)
		return
	}

	path, now := r.URL.Path, servedState{demo: s.config.Demo}
	if s.config.Notice.Text != nil {
		now.notice = template.HTML(s.config.underRoot([]byte(s.config.Notice.Text())))
	}
	if found, ok := pages[path]; ok && path != notFoundPage {
		if found.dated {
			now.days = daysAt(s.config.now())
		}
		found.serve(s.config.Documents, now, w, r, http.StatusOK)
		return
	}
	if to := s.moved(path, pages); to != notFoundPage {
		http.Redirect(w, r, s.config.Root()+to, http.StatusMovedPermanently)
		return
	}
	pages[notFoundPage].serve(s.config.Documents, now, w, r, http.StatusNotFound)
}

// moved returns the new path of a moved page, or path without slashes at its end if that is a page; else notFoundPage.
func (s *Site) moved(path string, pages map[string]*content) string {
	if trimmed := strings.TrimRight(path, "/"); pages[trimmed] != nil {
		return trimmed
	}
	// All guides were below /docs/guide.
	name, isText := strings.CutSuffix(strings.TrimPrefix(path, "/docs/guide/"), ".md")
	if to := s.config.GuidePaths[name]; to != "" && isText {
		return to + ".md"
	} else if to != "" {
		return to
	}
	// A reference had a page for each of its tags.
	name, _, _ = strings.Cut(strings.TrimPrefix(path, referencePath), "/")
	if reference := referencePath + name; pages[reference] != nil {
		return reference
	}
	return notFoundPage
}

// policy lets a page load and call nothing but this service; scalarPolicy also lets Scalar
// write its styles, and load images and fonts that are part of them.
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

// build renders all pages and files.
func build(c Config) (map[string]*content, error) {
	b, err := newBuilder(c)
	if err != nil {
		return nil, err
	}
	if err := b.searchIndex(); err != nil {
		return nil, err
	}
	b.addLLMsText()
	return b.pages, errors.Join(b.home(), b.guidePages(), b.referencePages(), b.changelog(), b.index(), b.notFound())
}

// builder renders pages.
type builder struct {
	Config
	pages  map[string]*content
	assets assets
	guides []*guide
	groups []groupOfGuides
	// operate are the operators' guides.
	operate []*guide
	// operations are the links of the operations of all references, by method
	// and path: "GET /v2/clients".
	operations map[string]string
	references []*reference
	markdown   *markdown
}

// newBuilder returns a builder with the references and guides of the configuration.
func newBuilder(c Config) (*builder, error) {
	b := &builder{Config: c, pages: map[string]*content{}, operations: map[string]string{}}
	var err error
	if b.assets, err = b.addAssets(); err != nil {
		return nil, err
	}

	for _, r := range c.References {
		made, err := newReference(r)
		if err != nil {
			return nil, fmt.Errorf("reference %s: %w", r.Name, err)
		}
		b.references = append(b.references, made)
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
		b.guides, b.groups = append(b.guides, list...), append(b.groups, groupOfGuides{group.Title, list})
	}
	b.operate, err = b.readGuides(c.Operate, c.OperateOrder)
	return b, err
}
