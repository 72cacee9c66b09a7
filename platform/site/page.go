package site

import (
	"bytes"
	"embed"
	"fmt"
	"html/template"
	"strings"

	"partnerapi/domain"
)

//go:embed templates/*.html
var templateFiles embed.FS

// templates are the layout, and the templates of the contents of pages by kind.
var templates = template.Must(template.New("").Funcs(template.FuncMap{"code": highlight, "breaks": withBreaksInText}).
	ParseFS(templateFiles, "templates/*.html"))

// page is what the layout needs to know of a page.
type page struct {
	Path, Title, About string
	// Section is the part of the site: guides, operate, index or the name of a reference; empty for none.
	Section string
	// Headings are the page's table of contents.
	Headings []heading
	// Markdown is the path of the page's Markdown; empty for none.
	Markdown string
	// Reference is the reference that Scalar shows on the page; nil for none.
	Reference *reference
}

// Contents returns the page's table of contents: its headings of level 2, or nil if there are fewer than two.
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
	*builder
	page
	// Notice is noticeMark on pages with the notice; otherwise empty.
	Notice template.HTML
	// Data is the data of the kind of page.
	Data any
	// Content is the rendered template of the kind of page.
	Content template.HTML
}

// Nearest returns the placeholder of the link to the nearest page.
func (layout) Nearest() template.HTML { return nearestMark }

// Parts returns the parts of a guide if the page is the guide or one of them; otherwise nil.
func (l layout) Parts(whole *guide) []*guide {
	parts, within := []*guide(nil), l.Path == whole.Path
	for _, g := range l.Guides {
		if strings.HasPrefix(g.Name, whole.Name+"/") {
			parts, within = append(parts, g), within || l.Path == g.Path
		}
	}
	if !within {
		return nil
	}
	return parts
}

// ServiceName returns the placeholder of the service's name.
func (layout) ServiceName() string { return nameMark }

// ServiceLogo returns the placeholder of the service's logo or name.
func (layout) ServiceLogo() template.HTML { return logoMark }

// ServiceStyle returns the placeholder of the style sheet with the service's accent color.
func (layout) ServiceStyle() template.HTML { return styleMark }

// Served returns the name of the last release that the service serves; empty if it serves none.
func (l layout) Served() string {
	name := ""
	for _, r := range l.Config.Releases {
		if r.Served {
			name = r.Name
		}
	}
	return name
}

// add adds a page (render). A path that another page has is an error.
func (b *builder) add(kind string, p page, data any) error {
	made, err := b.render(kind, p, data)
	if err != nil {
		return err
	}
	if _, taken := b.pages[p.Path]; taken {
		return fmt.Errorf("page %s is there twice", p.Path)
	}
	b.pages[p.Path] = made
	if p.Path != notFoundPage && p.Section != "operate" {
		b.listed = append(b.listed, p)
	}
	return nil
}

// render renders a page with the template named kind, whose data is data, in the layout.
func (b *builder) render(kind string, p page, data any) (*content, error) {
	l := layout{builder: b, page: p, Data: data}
	if b.hasNotice(p) {
		l.Notice = noticeMark
	}
	var inner, whole bytes.Buffer
	if err := templates.ExecuteTemplate(&inner, kind+".html", l); err != nil {
		return nil, fmt.Errorf("page %s: %w", p.Path, err)
	}
	l.Content = template.HTML(inner.String())
	if err := templates.ExecuteTemplate(&whole, "layout.html", l); err != nil {
		return nil, fmt.Errorf("page %s: %w", p.Path, err)
	}

	made := newContent("text/html; charset=utf-8", revalidated, b.Config.addRoot(whole.Bytes()))
	made.shiftsDates = kind == "guide" && p.Section == "guides" // not operators' guides
	if p.Reference != nil {
		made.policy = scalarPolicy // the page of a reference loads Scalar
	}
	return made, nil
}

// fixedPages are the pages that every site has, by their template. The page for operators is omitted without guides
// for them.
var fixedPages = map[string]page{
	"home": {Path: "/", Title: domain.ServiceName, About: "The partner API of a security awareness training service."},
	"docs": {Path: "/docs", Title: "Documentation", Section: "guides", About: "Guides and reference of the partner API."},
	"operate": {Path: "/docs/operate", Title: "Operating the service", Section: "operate",
		About: "Guides for operators of the service."},
	"index": {Path: "/docs/index", Title: "Index", Section: "index",
		About: "All headings of the guides and all operations, on one page."},
	"notfound": {Path: notFoundPage, Title: "Page not found"},
}
