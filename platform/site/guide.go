package site

import (
	"io/fs"
)

// guide is a page that explains.
type guide struct {
	Name, Path string
	parsed
}

func (b *builder) readGuide(name string) (*guide, error) {
	source, err := fs.ReadFile(b.Guides, name+".md")
	if err != nil {
		return nil, err
	}
	p, err := b.markdown.page(source)
	if err != nil {
		return nil, err
	}
	return &guide{Name: name, Path: b.markdown.guides[name], parsed: p}, nil
}

// guidePages adds the guides and the page that lists them.
func (b *builder) guidePages() error {
	for i, g := range b.guides {
		var before, after *guide
		if i > 0 {
			before = b.guides[i-1]
		}
		if i+1 < len(b.guides) {
			after = b.guides[i+1]
		}
		p := page{Path: g.Path, Title: g.Title, About: g.Lead, Section: "guides", Headings: g.Headings}
		if err := b.add("guide", p, struct{ Guide, Before, After *guide }{g, before, after}); err != nil {
			return err
		}
	}
	return b.add("docs", page{
		Path: "/docs", Title: "Documentation", Section: "guides",
		About: "Guides and reference of the partner API.",
	}, nil)
}
