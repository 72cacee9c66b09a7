// Package sitetest holds pages to what a browser with a strict policy, and a reader without
// eyes or a mouse, needs of them.
package sitetest

import (
	"slices"
	"strings"
	"testing"

	"golang.org/x/net/html"
)

// Page is a page that was read.
type Page struct {
	Nodes []*html.Node // its elements, in order
	IDs   map[string]bool
}

// Read reads a page. Its tags match, its ids are there once, what names one finds it, and neither scripts nor styles
// stand in attributes or scripts in the page. where is named by failures.
func Read(t *testing.T, where, text string) Page {
	t.Helper()
	root, err := html.Parse(strings.NewReader(text))
	if err != nil {
		t.Fatalf("%s: %v", where, err)
	}
	if mismatch := unbalanced(text); mismatch != "" {
		t.Errorf("%s: %s", where, mismatch)
	}
	p := Page{IDs: map[string]bool{}}
	for n := range root.Descendants() {
		if n.Type != html.ElementNode {
			continue
		}
		p.Nodes = append(p.Nodes, n)
		if id := Attribute(n, "id"); id != "" {
			if p.IDs[id] {
				t.Errorf("%s: the id %s is there twice", where, id)
			}
			p.IDs[id] = true
		}
	}
	for _, n := range p.Nodes {
		p.checkAttributes(t, where, n)
	}
	return p
}

func (p Page) checkAttributes(t *testing.T, where string, n *html.Node) {
	t.Helper()
	if n.Data == "script" && (Attribute(n, "src") == "" || n.FirstChild != nil) {
		t.Errorf("%s has its own script", where)
	}
	for _, a := range n.Attr {
		switch {
		case a.Key == "style", strings.HasPrefix(a.Key, "on"):
			t.Errorf("%s: <%s %s>", where, n.Data, a.Key)
		case a.Key == "aria-labelledby", a.Key == "aria-describedby", a.Key == "for":
			for id := range strings.FieldsSeq(a.Val) {
				if !p.IDs[id] {
					t.Errorf("%s: %s=%s names nothing", where, a.Key, id)
				}
			}
		}
	}
}

// Attribute returns the value of an element's attribute, empty if it has none.
func Attribute(n *html.Node, name string) string {
	for _, a := range n.Attr {
		if a.Key == name {
			return a.Val
		}
	}
	return ""
}

// void are the elements without an end.
var void = []string{"meta", "link", "input", "br", "hr", "img", "wbr"}

// unbalanced says where tags do not match, which a parser would mend.
func unbalanced(text string) string {
	var open []string
	for z := html.NewTokenizer(strings.NewReader(text)); ; {
		switch z.Next() {
		case html.ErrorToken:
			if len(open) > 0 {
				return "<" + open[len(open)-1] + "> is not closed"
			}
			return ""
		case html.StartTagToken:
			if name, _ := z.TagName(); !slices.Contains(void, string(name)) {
				open = append(open, string(name))
			}
		case html.EndTagToken:
			name, _ := z.TagName()
			if len(open) == 0 || open[len(open)-1] != string(name) {
				return "</" + string(name) + "> closes nothing, or closes " + strings.Join(open, " ")
			}
			open = open[:len(open)-1]
		}
	}
}
