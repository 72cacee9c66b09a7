package site

import (
	"bytes"
	"embed"
	"fmt"
	"html/template"
)

//go:embed templates/*.html
var templateFiles embed.FS

// templates are the layout, and the templates of the contents of pages by kind.
var templates = template.Must(template.New("").Funcs(template.FuncMap{"code": highlight}).
	ParseFS(templateFiles, "templates/*.html"))

// page is the layout's data of a page, besides its content.
type page struct {
	Path, Title, About string
	// Section is the part of the site: guides, operate, index or the name of a reference; empty for none.
	Section string
	// Headings are the page's table of contents.
	Headings []heading
	// Reference is the reference that Scalar shows on the page; nil for none.
	Reference *reference
}

// Contents returns the page's table of contents: its headings of level 2; nil if there are fewer than two.
func (p page) Contents() []heading {
	var list []heading
	for _, h := range p.Headings {
		if h.Level == 2 {
			list = append(list, h)
		}
	}
	if len(list) < 2 {
		return nil
	}
	return list
}

// layout is the data of templates/layout.html.
type layout struct {
	page
	Assets     assets
	Version    string
	Releases   []Release
	Guides     []*guide
	Groups     []groupOfGuides
	Operate    []*guide
	References []*reference
	// Notice is noticeMark on pages with the notice; else empty.
	Notice template.HTML
	// Support is Documents.SupportURL.
	Support string
	// Data is the data of the kind of page.
	Data any
	// Content is the rendered template of the kind of page.
	Content template.HTML
}

// Served returns the name of the last release that the service serves; empty if it serves none.
func (l layout) Served() string {
	name := ""
	for _, r := range l.Releases {
		if r.Served {
			name = r.Name
		}
	}
	return name
}

// add renders a page with the template named kind, in the layout, and adds it. A path that is taken is an error.
func (b *builder) add(kind string, p page, data any) error {
	l := layout{
		page: p, Assets: b.assets, Version: b.Version, Releases: b.Releases,
		Guides: b.guides, Groups: b.groups, Operate: b.operate, References: b.references, Support: b.SupportURL, Data: data,
	}
	if b.hasNotice(p) {
		l.Notice = noticeMark
	}
	var content, whole bytes.Buffer
	if err := templates.ExecuteTemplate(&content, kind+".html", l); err != nil {
		return fmt.Errorf("page %s: %w", p.Path, err)
	}
	l.Content = template.HTML(content.String())
	if err := templates.ExecuteTemplate(&whole, "layout.html", l); err != nil {
		return fmt.Errorf("page %s: %w", p.Path, err)
	}

	made := newContent("text/html; charset=utf-8", revalidated, b.underRoot(whole.Bytes()))
	made.dated = kind == "guide" && p.Section == "guides"
	if p.Reference != nil {
		made.policy = scalarPolicy
	}
	if _, taken := b.pages[p.Path]; taken {
		return fmt.Errorf("page %s is there twice", p.Path)
	}
	b.pages[p.Path] = made
	return nil
}

// home adds the page at /.
func (b *builder) home() error {
	return b.add("home", page{
		Path: "/", Title: "Partner API",
		About: "The partner API of a security awareness training service.",
	}, nil)
}

// index adds the list of all headings and operations.
func (b *builder) index() error {
	return b.add("index", page{
		Path: "/docs/index", Title: "Index", Section: "index",
		About: "Every heading of the guides and every operation, on one page.",
	}, nil)
}

// notFound adds the page for unknown paths.
func (b *builder) notFound() error {
	return b.add("notfound", page{Path: notFoundPage, Title: "Page not found"}, nil)
}
