package site

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"strings"
)

// guide is a page with its Markdown source.
type guide struct {
	Name, Path string
	source     []byte
	parsed
}

// groupOfGuides is a Group with its parsed guides.
type groupOfGuides struct {
	Title  string
	Guides []*guide
}

// Part reports whether the guide is a part of another guide: its name is GUIDE/PART.
func (g *guide) Part() bool { return strings.Contains(g.Name, "/") }

// ShortTitle returns the title without what follows a colon, for lists of the parts of a guide.
func (g *guide) ShortTitle() string {
	short, _, _ := strings.Cut(g.Title, ": ")
	return short
}

// readGuides reads and parses the named guides.
func (b *builder) readGuides(files fs.FS, names []string) (list []*guide, err error) {
	for _, name := range names {
		g := &guide{Name: name, Path: b.markdown.guides[name]}
		if g.source, err = fs.ReadFile(files, name+".md"); err == nil {
			g.parsed, err = b.markdown.render(g.source)
		}
		if err != nil {
			return nil, fmt.Errorf("guide %s: %w", name, err)
		}
		list = append(list, g)
	}
	return list, nil
}

// addGuidePages adds the pages of all guides, and the Markdown of those that are not for operators, with shifted dates
// and links to each other's Markdown.
func (b *builder) addGuidePages() error {
	for _, g := range b.Guides {
		b.addText(g.Path+".md", "text/markdown; charset=utf-8", b.markdown.withAbsoluteLinks(g, ".md")).shiftsDates = true
	}
	return errors.Join(b.addGuides(b.Guides, "guides"), b.addGuides(b.Operate, "operate"))
}

// addGuides adds the pages of guides in reading order, each with links to the previous and the next.
func (b *builder) addGuides(list []*guide, section string) error {
	for i, g := range list {
		var before, after *guide
		if i > 0 {
			before = list[i-1]
		}
		if i+1 < len(list) {
			after = list[i+1]
		}
		p := page{Path: g.Path, Title: g.Title, About: g.Lead, Section: section, Headings: g.Headings}
		if section == "guides" {
			p.Markdown = g.Path + ".md"
		}
		if err := b.add("guide", p, struct{ Guide, Before, After *guide }{g, before, after}); err != nil {
			return err
		}
	}
	return nil
}

// addLLMsText adds /llms.txt, which lists the guides as Markdown and the documents (llmstxt.org), and /llms-full.txt,
// which contains all guides, with links to their pages.
func (b *builder) addLLMsText() {
	var text strings.Builder
	text.WriteString("# Partner API\n\n> The partner API of a security awareness training service.\n\n## Guides\n\n")
	for _, g := range b.Guides {
		fmt.Fprintf(&text, "- [%s](%s%s.md): %s\n", g.Title, SampleBase, g.Path, g.Lead)
	}
	fmt.Fprintf(&text, "\nAll guides in one file: %s%s\n\n## Reference\n\n", SampleBase, fullText)
	for _, r := range b.References {
		for _, file := range r.Files {
			fmt.Fprintf(&text, "- [%s, %s](%s%s): every operation with its parameters, fields and errors, as OpenAPI\n", r.Title, file, SampleBase, file)
		}
	}
	b.addText("/llms.txt", "text/plain; charset=utf-8", []byte(text.String()))

	var full strings.Builder
	for _, g := range b.Guides {
		fmt.Fprintf(&full, "<!-- %s%s -->\n\n%s\n\n", SampleBase, g.Path, bytes.TrimSpace(b.markdown.withAbsoluteLinks(g, "" /* to pages */)))
	}
	b.addText(fullText, "text/plain; charset=utf-8", []byte(full.String())).shiftsDates = true // guides have dates of samples
}

// fullText is the path of the text that contains all guides.
const fullText = "/llms-full.txt"

// addText adds a text file, and returns it.
func (b *builder) addText(path, contentType string, text []byte) *content {
	made := newContent(contentType, revalidated, text)
	b.pages[path] = made
	return made
}
