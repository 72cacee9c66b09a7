package phishing

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// errNoLink is the error of a template without a link.
var errNoLink = errors.New("has no link in its html")

// track returns the HTML of a simulated email: body with every link replaced by the page (rewriter.rewrite), and with
// footer where readers see it, before the end of the body. footer has the link and the picture that start with the
// page's URL, or only the picture. It also returns what it found in body.
//
// A browser decides what the result shows, so the result is parsed as browsers do. If the body's markup hides the footer
// or a link that was not replaced, because an element of it has no end, for example, track writes the markup anew as
// browsers understand it. If that does not help either, it returns an error.
func track(body, page, footer string) (string, Findings, error) {
	r := newRewriter(body, page)
	r.added = strings.Count(footer, html.EscapeString(page)+"/")
	clean := r.rewrite(body)
	end := r.bodyEnd
	if end < 0 {
		end = len(clean)
	}
	result := clean[:end] + footer + clean[end:]
	if r.check(result) == nil {
		return result, r.found, nil
	}
	result, err := normalize(clean, footer)
	if err == nil {
		result = r.rewrite(result)
		err = r.check(result)
	}
	return result, r.found, err
}

// check returns an error if the HTML of a simulated email has a link to elsewhere, no link to the page, or not all elements
// of the footer where readers see them.
func (r *rewriter) check(text string) error {
	doc, err := html.Parse(strings.NewReader(text))
	if err != nil {
		return fmt.Errorf("has invalid html: %w", err)
	}
	before := r.found // check finds nothing new that is worth a note
	defer func() { r.found = before }()
	hasLink, shown := false, 0
	for n := range doc.Descendants() {
		switch {
		case n.Type == html.CommentNode:
			if whole := "<!--" + n.Data + "-->"; r.comment(whole) != whole {
				return errors.New("has a link in a comment that cannot be replaced")
			}
		case n.Type == html.ElementNode:
			if _, changed := r.attributes(n.Data, n.Attr); changed || unsafe(n.Data, n.Attr) {
				return fmt.Errorf("has an element that cannot be replaced: %s", n.Data)
			}
			hasLink = hasLink || r.leadsToPage(n)
			if r.isFooter(n) && visible(n) {
				shown++
			}
		}
	}
	switch {
	case !hasLink:
		return errNoLink
	case shown < r.added:
		return errors.New("has html that hides what is added to it: the picture that records the opening of the email, and, " +
			"if report-link is on, the link that reports it")
	}
	return nil
}

// leadsToPage reports whether an element that is shown is a link or a form that leads to the page.
func (r *rewriter) leadsToPage(n *html.Node) bool {
	for _, a := range n.Attr {
		if a.Val == r.page && roleOf(n.Data, nameOf(a)) == isLink {
			return !under(n, func(p *html.Node) bool { return p.DataAtom == atom.Template || p.DataAtom == atom.Head })
		}
	}
	return false
}

// isFooter reports whether an element is the report link or the picture.
func (r *rewriter) isFooter(n *html.Node) bool {
	for _, a := range n.Attr {
		if n.DataAtom == atom.A && a.Key == "href" && a.Val == reportURL(r.page) ||
			n.DataAtom == atom.Img && a.Key == "src" && a.Val == pictureURL(r.page) {
			return true
		}
	}
	return false
}

// under reports whether an element is inside one for which is returns true.
func under(n *html.Node, is func(*html.Node) bool) bool {
	for p := n.Parent; p != nil; p = p.Parent {
		if is(p) {
			return true
		}
	}
	return false
}

// invisible matches a style that hides an element; clipped and flat match the two parts of another such style. A font size
// of 0 is none of them, because the footer has its own.
var (
	invisible = regexp.MustCompile(`(?i)display\s*:\s*none|visibility\s*:\s*hidden|mso-hide\s*:\s*all|` +
		`(?:^|[;\s])opacity\s*:` + zero)
	clipped = regexp.MustCompile(`(?i)overflow(?:-[xy])?\s*:\s*(?:hidden|clip)`)
	flat    = regexp.MustCompile(`(?i)(?:^|[;\s])(?:max-)?(?:height|width)\s*:` + zero)
)

// zero matches the value 0 of a style, in any unit.
const zero = `\s*[0.]+[a-z%]*\s*(?:[;!/]|$)`

// hides reports whether a style hides what is in its element.
func hides(style string) bool {
	return invisible.MatchString(style) || clipped.MatchString(style) && flat.MatchString(style)
}

// visible reports whether an element is not inside one that hides it or shows something else instead.
func visible(n *html.Node) bool {
	return !under(n, func(p *html.Node) bool {
		switch p.DataAtom {
		case atom.Head, atom.Template, atom.Select, atom.Object, atom.Video, atom.Audio, atom.Canvas, atom.Details, atom.Dialog:
			return true
		}
		for _, a := range p.Attr {
			if a.Key == "hidden" || a.Key == "style" && hides(a.Val) {
				return true
			}
		}
		return p.Namespace != ""
	})
}

// normalize parses an HTML text and writes it anew, with all elements closed and footer as the last content of its body.
func normalize(text, footer string) (string, error) {
	doc, err := html.Parse(strings.NewReader(text))
	if err != nil {
		return "", fmt.Errorf("has invalid html: %w", err)
	}
	var body *html.Node
	for n := range doc.Descendants() {
		switch n.DataAtom {
		case atom.Body:
			body = n
		case atom.Plaintext: // it cannot be closed
			n.DataAtom, n.Data = atom.Pre, "pre"
		}
	}
	if body == nil {
		return "", errors.New("has html with frames instead of a body")
	}
	nodes, err := html.ParseFragment(strings.NewReader(footer), body)
	if err != nil {
		return "", err
	}
	for _, n := range nodes {
		body.AppendChild(n)
	}
	var b strings.Builder
	err = html.Render(&b, doc)
	return b.String(), err
}
