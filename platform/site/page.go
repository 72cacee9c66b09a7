package site

import (
	"bytes"
	"embed"
	"fmt"
	"html/template"
)

//go:embed templates/*.html
var templateFiles embed.FS

// templates are the layout and, by name, the contents of the kinds of pages.
var templates = template.Must(template.New("").Funcs(template.FuncMap{"code": highlight}).
	ParseFS(templateFiles, "templates/*.html"))

// page is the layout's data of a page, besides its content.
type page struct {
	Path, Title, About string
	// Section is what the page belongs to: guides, operate, index, the name of a
	// reference, or nothing.
	Section string
	// Headings are the page's table of contents.
	Headings []heading
	// Reference is the reference that Scalar shows on the page; nil for none.
	Reference *reference
}

// Contents returns the page's table of contents.
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
	// Notice is the mark of the notice, where the page has it.
	Notice template.HTML
	// Support is where partners get help; empty for nowhere.
	Support string
	// Data is what the kind of page needs.
	Data any
	// Content is the page's own part.
	Content template.HTML
}

// Served returns the release that the service serves.
func (l layout) Served() string {
	name := ""
	for _, r := range l.Releases {
		if r.Served {
			name = r.Name
		}
	}
	return name
}

// add renders a page with the template named kind.
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
