package site

import (
	"bytes"
	"fmt"
	"html/template"
	"regexp"
	"strings"

	"github.com/alecthomas/chroma/v2"
	"github.com/alecthomas/chroma/v2/formatters/html"
	"github.com/alecthomas/chroma/v2/lexers"
	"github.com/alecthomas/chroma/v2/styles"
	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	extast "github.com/yuin/goldmark/extension/ast"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/renderer"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"
)

// markdown renders the Markdown of guides as HTML. It drops raw HTML.
type markdown struct {
	goldmark goldmark.Markdown
	// operations are the links of operations, by method and path.
	operations map[string]string
	// guides are the paths of the pages of guides, by name.
	guides map[string]string
}

// newMarkdown returns a renderer with the links of operations and guides.
func newMarkdown(operations map[string]string, guides map[string]string) *markdown {
	return &markdown{
		goldmark: goldmark.New(
			goldmark.WithExtensions(extension.Table, extension.Strikethrough),
			goldmark.WithParserOptions(parser.WithAutoHeadingID()),
			goldmark.WithRendererOptions(renderer.WithNodeRenderers(util.Prioritized(blocks{}, 1))), // 1: preferred
		),
		operations: operations, guides: guides,
	}
}

// heading is a heading of a page.
type heading struct {
	Level    int
	ID, Text string
}

// parsed is a Markdown text rendered as HTML.
type parsed struct {
	// Title is the heading of the first level, which is not in Body.
	Title string
	// Lead is the text of the first paragraph.
	Lead     string
	Body     template.HTML
	Headings []heading
	Sections []section
}

// section is the plain text below a heading. The first section has the page's title, and no id. Words are further
// search words, from a comment in the text.
type section struct{ ID, Title, Text, Words string }

// searchWords matches the comment with search words.
var searchWords = regexp.MustCompile(`<!-- search: (.*) -->`)

// Text in which lines may break at a joint: operations in links, code in tables, and headings.
var (
	breakable = regexp.MustCompile(`"><code>[A-Z]+ /[^<]*|(?m)^<t[dh][ >].*$|<h[2-6] id="[^"]*">[^<]*`)
	codeText  = regexp.MustCompile(`>[^<]*`)
	joint     = regexp.MustCompile(`[/_][\w{]|\.[A-Za-z]`)
)

// withBreaks returns HTML that allows line breaks within breakable names, such as paths and fields, after their joints.
// Without them, narrow pages break names at any letter. The address and the keys of samples stay as they are.
func withBreaks(html string) string {
	return breakable.ReplaceAllStringFunc(html, func(part string) string { return codeText.ReplaceAllStringFunc(part, breakJoints) })
}

// breakJoints allows line breaks in HTML without tags.
func breakJoints(html string) string {
	if sampleMarks.MatchString(html) {
		return html
	}
	return joint.ReplaceAllStringFunc(html, func(at string) string { return at[:1] + "<wbr>" + at[1:] })
}

// withBreaksInText returns a text as HTML that allows line breaks as withBreaks does.
func withBreaksInText(text string) template.HTML {
	return template.HTML(breakJoints(template.HTMLEscapeString(text)))
}

// add adds the text of a block to the section. For a program it also adds the name of the language. A comment with
// search words sets Words.
func (s *section) add(n ast.Node, source []byte) {
	language, _ := languageOf(n, source)
	if before, _ := languageOf(n.PreviousSibling(), source); programs[language] != "" && programs[before] != "" {
		return // the program before it in another language
	}
	s.Text += plainText(n, source) + "\n"
	switch n := n.(type) {
	case *ast.HTMLBlock:
		if found := searchWords.FindSubmatch(n.Lines().Value(source)); found != nil {
			s.Words = string(found[1])
		}
	case *ast.FencedCodeBlock:
		if language != "sh" {
			s.Text += programs[language] + "\n"
		}
	}
}

// render renders a text as HTML, and returns it with its title, lead, headings and sections. It returns an error if the
// text does not start with a heading of the first level, or links to an unknown file.
func (m *markdown) render(source []byte) (p parsed, err error) {
	doc := m.goldmark.Parser().Parse(text.NewReader(source))
	for n := doc.FirstChild(); n != nil; n = n.NextSibling() {
		if paragraph, ok := n.(*ast.Paragraph); ok && p.Lead == "" {
			p.Lead = plainText(paragraph, source)
		}
		h, ok := n.(*ast.Heading)
		if !ok {
			if last := len(p.Sections) - 1; last >= 0 {
				p.Sections[last].add(n, source)
			}
			continue
		}
		if h.Level == 1 && p.Title == "" {
			p.Title = plainText(h, source)
			p.Sections = append(p.Sections, section{Title: p.Title})
			continue
		}
		id, _ := h.AttributeString("id")
		name, _ := id.([]byte)
		p.Headings = append(p.Headings, heading{h.Level, string(name), plainText(h, source)})
		p.Sections = append(p.Sections, section{ID: string(name), Title: plainText(h, source)})
	}
	first, ok := doc.FirstChild().(*ast.Heading)
	if !ok || first.Level != 1 {
		return p, fmt.Errorf("it does not begin with its title")
	}
	doc.RemoveChild(doc, first)
	if err := m.rewriteLinks(doc, source); err != nil {
		return p, err
	}
	groupTabs(doc, source)

	var out bytes.Buffer
	if err := m.goldmark.Renderer().Render(&out, source, doc); err != nil {
		return p, err
	}
	body := strings.ReplaceAll(out.String(), "<td>other default: ", `<td><strong class="differs">other default</strong>: `)
	p.Body = template.HTML(withBreaks(body))
	return p, nil
}

// rewriteLinks rewrites references between files to pages, and links operations named in code to their reference. A
// reference to an unknown file is an error.
func (m *markdown) rewriteLinks(doc ast.Node, source []byte) error {
	var operations []*ast.CodeSpan // replaced after the walk, which needs their siblings
	err := ast.Walk(doc, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if !entering {
			return ast.WalkContinue, nil
		}
		switch n := n.(type) {
		case *ast.Link:
			target, err := m.target(string(n.Destination))
			if err != nil {
				return ast.WalkStop, err
			}
			n.Destination = []byte(target)
		case *ast.CodeSpan:
			if m.operations[plainText(n, source)] != "" && n.Parent().Kind() != ast.KindLink {
				operations = append(operations, n)
			}
			return ast.WalkSkipChildren, nil
		}
		return ast.WalkContinue, nil
	})

	for _, n := range operations {
		link := ast.NewLink()
		link.Destination = []byte(m.operations[plainText(n, source)])
		n.Parent().ReplaceChild(n.Parent(), n, link)
		link.AppendChild(link, n)
	}
	return err
}

// target returns the site's path for a link in a file. A link to a fragment only, or to an absolute URL, stays. A link
// to a file that is no guide is an error.
func (m *markdown) target(destination string) (string, error) {
	file, fragment, cut := strings.Cut(destination, "#")
	if file == "" || strings.Contains(file, "://") {
		return destination, nil
	}
	name, isFile := strings.CutSuffix(file, ".md")
	for _, folder := range []string{"../", "guide/", "operate/"} { // at most one of each, in this order
		name = strings.TrimPrefix(name, folder)
	}
	page, ok := m.guides[name]
	if !isFile || !ok {
		return "", fmt.Errorf("the link to %s leads to no page", destination)
	}
	if cut {
		fragment = "#" + fragment
	}
	return page + fragment, nil
}

// withAbsoluteLinks returns a guide's Markdown with the URLs of other guides and their headings in place of links
// relative to its file. extension is appended to the paths: of a page none, of its Markdown .md.
func (m *markdown) withAbsoluteLinks(g *guide, extension string) []byte {
	var links []string // pairs of old and new
	_ = ast.Walk(m.goldmark.Parser().Parse(text.NewReader(g.source)), func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		link, ok := n.(*ast.Link)
		if !ok || !entering {
			return ast.WalkContinue, nil
		}
		written := string(link.Destination)
		target, err := m.target(written)
		if strings.HasPrefix(target, "#") {
			target = g.Path + target
		}
		if err == nil && strings.HasPrefix(target, "/") {
			path, fragment, cut := strings.Cut(target, "#")
			if path = SampleBase + path + extension; cut {
				path += "#" + fragment
			}
			links = append(links, "]("+written+")", "]("+path+")")
		}
		return ast.WalkContinue, nil
	})
	return []byte(strings.NewReplacer(links...).Replace(string(g.source)))
}

// plainText returns the text of a node without markup, with a line break after each block.
func plainText(n ast.Node, source []byte) string {
	var out strings.Builder
	_ = ast.Walk(n, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		switch t := n.(type) {
		case *ast.Text:
			if entering {
				out.Write(t.Segment.Value(source))
				if t.SoftLineBreak() {
					out.WriteByte(' ')
				}
			}
		case *ast.FencedCodeBlock:
			if entering {
				out.Write(t.Lines().Value(source))
			}
		default:
			if !entering && n.Type() == ast.TypeBlock {
				out.WriteByte('\n')
			}
		}
		return ast.WalkContinue, nil
	})
	return strings.TrimSpace(out.String())
}

// blocks renders highlighted code, the tabs of samples, headings with permalinks, and tables that scroll.
type blocks struct{}

// RegisterFuncs implements renderer.NodeRenderer.
func (b blocks) RegisterFuncs(r renderer.NodeRendererFuncRegisterer) {
	r.Register(ast.KindFencedCodeBlock, b.renderCode)
	r.Register(ast.KindCodeBlock, b.renderCode)
	r.Register(ast.KindHeading, b.renderHeading)
	r.Register(extast.KindTable, b.renderTable)
	r.Register(kindTabs, b.renderTabs)
	r.Register(kindPanel, b.renderPanel)
}

// renderHeading renders a heading with a permalink beside it: inside the heading, the link would be part of the
// heading's accessible name.
func (blocks) renderHeading(w util.BufWriter, source []byte, n ast.Node, entering bool) (ast.WalkStatus, error) {
	h := n.(*ast.Heading)
	id, _ := h.AttributeString("id")
	if entering {
		_, err := fmt.Fprintf(w, `<div class="heading"><h%d id="%s">`, h.Level, id)
		return ast.WalkContinue, err
	}
	_, err := fmt.Fprintf(w, `</h%d> <a class="permalink" href="#%s" aria-label="Link to: %s">#</a></div>`+"\n",
		h.Level, id, template.HTMLEscapeString(plainText(h, source)))
	return ast.WalkContinue, err
}

// renderCode renders highlighted code.
func (blocks) renderCode(w util.BufWriter, source []byte, n ast.Node, entering bool) (ast.WalkStatus, error) {
	if !entering {
		return ast.WalkContinue, nil
	}
	language := ""
	if fenced, ok := n.(*ast.FencedCodeBlock); ok {
		language = string(fenced.Language(source))
	}
	html, err := highlight(string(n.Lines().Value(source)), language)
	if err != nil {
		return ast.WalkStop, err
	}
	_, err = w.WriteString(string(html))
	return ast.WalkSkipChildren, err
}

// renderTable renders a table in an element that scrolls.
func (blocks) renderTable(w util.BufWriter, _ []byte, _ ast.Node, entering bool) (ast.WalkStatus, error) {
	tag := `<div class="wide" tabindex="0" role="group" aria-label="Table"><table>` + "\n"
	if !entering {
		tag = "</table></div>\n"
	}
	_, err := w.WriteString(tag)
	return ast.WalkContinue, err
}

// formatter marks tokens with classes, whose colors are in site.css.
var formatter = html.New(html.WithClasses(true), html.PreventSurroundingPre(true))

// highlight renders code in a language, with a button that copies it; in an unknown language as plain text.
func highlight(code, language string) (template.HTML, error) {
	lexer := lexers.Get(language)
	if lexer == nil {
		lexer = lexers.Fallback
	}
	tokens, err := chroma.Coalesce(lexer).Tokenise(nil, strings.TrimRight(code, "\n"))
	if err != nil {
		return "", err
	}
	var out strings.Builder
	if err := formatter.Format(&out, styles.Fallback, tokens); err != nil {
		return "", err
	}
	key := sampleKeyPairs[0] // site.js replaces it in these elements with the reader's key
	text := strings.ReplaceAll(out.String(), key, `<span class="your-key">`+key+"</span>")
	// tabindex: the keyboard can scroll a block that is wider than the page.
	return template.HTML(`<div class="sample"><pre class="code" tabindex="0"><code>` + text +
		`</code></pre><button class="copy" type="button">Copy</button></div>` + "\n"), nil
}
