package site

import (
	"fmt"
	"io/fs"
	"strings"
)

// guide is a page that explains.
type guide struct {
	Name, Path string
	source     []byte
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
	return &guide{Name: name, Path: b.markdown.guides[name], source: source, parsed: p}, nil
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
		if err := b.addText(g.Path+".md", "text/markdown; charset=utf-8", g.source); err != nil {
			return err
		}
	}
	return b.add("docs", page{
		Path: "/docs", Title: "Documentation", Section: "guides",
		About: "Guides and reference of the partner API.",
	}, nil)
}

// forModels adds /llms.txt, which leads programs that read text to the guides as Markdown
// and to the documents (llmstxt.org).
func (b *builder) forModels() error {
	var text strings.Builder
	text.WriteString("# Partner API\n\n> The partner API of a security awareness training service.\n\n## Guides\n\n")
	for _, g := range b.guides {
		fmt.Fprintf(&text, "- [%s](%s%s.md): %s\n", g.Title, sampleBase, g.Path, g.Lead)
	}
	text.WriteString("\n## Reference\n\n")
	for _, r := range b.references {
		for _, file := range r.Files {
			fmt.Fprintf(&text, "- [%s, %s](%s%s): every operation with its parameters, fields and errors, as OpenAPI\n", r.Title, file, sampleBase, file)
		}
	}
	return b.addText("/llms.txt", "text/plain; charset=utf-8", []byte(text.String()))
}

// addText adds a text that is no page.
func (b *builder) addText(path, contentType string, text []byte) (err error) {
	b.pages[path], err = newContent(contentType, revalidated, text)
	return err
}
