package phishing

import (
	"regexp"
	"strings"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// TextToHTML returns a plain text as HTML: a paragraph for each part between empty lines. Compose makes links of the web
// addresses in it.
func TextToHTML(text string) string {
	var b strings.Builder
	for paragraph := range strings.SplitSeq(strings.ReplaceAll(text, "\r\n", "\n"), "\n\n") {
		if paragraph = strings.TrimSpace(paragraph); paragraph != "" {
			b.WriteString("<p>" + strings.ReplaceAll(html.EscapeString(paragraph), "\n", "<br>\n") + "</p>\n")
		}
	}
	return b.String()
}

// spaceBeforeEnd matches the space that writeText adds after a URL, before punctuation that ends a part of a sentence.
var spaceBeforeEnd = regexp.MustCompile(`\) ([.,;:!?)]+)(\s|$)`)

// HTMLToText returns the text that an HTML text shows, as the plain text of an email: a line for each block, and after
// each link its URL in parentheses. It returns an empty text for HTML that cannot be read.
func HTMLToText(text string) string {
	doc, err := html.Parse(strings.NewReader(text))
	if err != nil {
		return ""
	}
	var b strings.Builder
	writeText(&b, doc)
	var lines []string
	for line := range strings.Lines(b.String()) {
		if line = strings.Join(strings.Fields(line), " "); line != "" {
			lines = append(lines, spaceBeforeEnd.ReplaceAllString(line, ")$1$2"))
		}
	}
	return strings.Join(lines, "\n")
}

// writeText writes the text of a node and the nodes in it.
func writeText(b *strings.Builder, n *html.Node) {
	if n.Type == html.TextNode {
		b.WriteString(strings.Join(strings.FieldsFunc(n.Data, func(r rune) bool { return r == '\n' || r == '\r' }), " "))
		return
	}
	url := ""
	switch n.DataAtom {
	case atom.Head, atom.Style, atom.Script, atom.Template, atom.Noscript, atom.Iframe, atom.Noframes:
		return
	case atom.P, atom.Div, atom.Tr, atom.Li, atom.Br, atom.Table, atom.H1, atom.H2, atom.H3, atom.H4, atom.Blockquote, atom.Pre:
		b.WriteByte('\n')
		defer b.WriteByte('\n')
	case atom.A:
		for _, a := range n.Attr {
			if a.Key == "href" && !strings.HasPrefix(a.Val, "#") {
				url = a.Val
			}
		}
	}
	for child := range n.ChildNodes() {
		writeText(b, child)
	}
	if url != "" {
		b.WriteString(" (" + url + ") ") // a space, so that email programs do not take a next word for a part of the URL
	}
}
