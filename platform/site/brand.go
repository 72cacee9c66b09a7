package site

import (
	"fmt"
	"html/template"

	"partnerapi/domain"
)

// The placeholders of a brand in the sources of pages: of the name, of the name or logo in the header, and of the style
// sheet with the accent color.
const (
	nameMark  = "%service-name%"
	logoMark  = "<!-- service-logo -->"
	styleMark = "<!-- service-style -->"
)

// brandMarks are the placeholders of a brand.
const brandMarks = nameMark + "|" + logoMark + "|" + styleMark

// The size in which the header shows a logo at most.
const (
	maxLogoWidth  = 180
	maxLogoHeight = 32
)

// brandedHeader is what pages have in place of brandMarks, and the files that it links to, by path.
type brandedHeader struct {
	of                *domain.Brand
	name, logo, style string
	files             map[string]*content
}

// header returns the brandedHeader for the brand of the moment.
func (s *Site) header() *brandedHeader {
	brand := &noBrand
	if s.config.Brand != nil {
		brand = s.config.Brand()
	}
	if last := s.branded.Load(); last != nil && last.of == brand {
		return last
	}
	made := s.brandedHeader(brand)
	s.branded.Store(made)
	return made
}

// noBrand is the brand of a service that has none.
var noBrand domain.Brand

// brandedHeader returns the brandedHeader of a brand.
func (s *Site) brandedHeader(of *domain.Brand) *brandedHeader {
	h := &brandedHeader{of: of, name: template.HTMLEscapeString(of.DisplayName), files: map[string]*content{}}
	add := func(path, contentType string, body []byte) string {
		h.files[path] = newContent(contentType, immutable, body)
		return template.HTMLEscapeString(s.config.Root() + path)
	}
	if color := string(of.AccentColor); color != "" {
		css := fmt.Appendf(nil, ":root { --brand: %s; --on-brand: %s; }\n", color, of.AccentColor.TextColor())
		h.style = fmt.Sprintf(`<link rel="stylesheet" href="%s">`, add("/docs/brand-"+hashOf(css)+".css", "text/css; charset=utf-8", css))
	}
	mediaType, size, err := domain.LogoType(of.Logo)
	switch {
	case of.DisplayName == "":
		h.name = template.HTMLEscapeString(domain.ServiceName)
		icon := template.HTMLEscapeString(s.config.Root() + s.builder.Assets.Icon)
		h.logo = fmt.Sprintf(`<img src="%s" alt="" width="24" height="24">%s`, icon, h.name)
	case err != nil: // there is no logo
		h.logo = h.name
	default:
		path := add("/docs/logo-"+hashOf(of.Logo), mediaType, of.Logo)
		shown := domain.FitLogo(size, maxLogoWidth, maxLogoHeight)
		h.logo = fmt.Sprintf(`<img src="%s" alt="%s" width="%d" height="%d">`, path, h.name, shown.X, shown.Y)
	}
	return h
}

// pairs returns the placeholders and what replaces them. Documents have none of them.
func (h *brandedHeader) pairs() []string {
	if h == nil {
		return nil
	}
	return []string{nameMark, h.name, logoMark, h.logo, styleMark, h.style}
}
