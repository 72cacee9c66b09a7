package v1compat

import (
	"testing"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/parser"
	markdowntext "github.com/yuin/goldmark/text"
)

// TestAnchors: an operation's anchor is what the Markdown of the pages makes of
// its heading, and no two operations share one.
func TestAnchors(t *testing.T) {
	t.Parallel()
	if got := anchor("GET", "/v1/clients/{client_id}/users"); got != "get-v1clientsclient-idusers" {
		t.Errorf("the anchor is %q", got)
	}
	markdown := goldmark.New(goldmark.WithParserOptions(parser.WithAutoHeadingID())).Parser()
	of := map[string]string{}
	for m := range Declare(Config{}).Routes() {
		heading := m.Method + " /v1" + m.Path
		id, _ := markdown.Parse(markdowntext.NewReader([]byte("## " + heading))).FirstChild().AttributeString("id")
		anchor := anchor(m.Method, "/v1"+m.Path)
		if want, _ := id.([]byte); anchor != string(want) {
			t.Errorf("the anchor of %s is %s, not %s", heading, anchor, want)
		}
		if other := of[anchor]; other != "" {
			t.Errorf("%s and %s share the anchor %s", heading, other, anchor)
		}
		of[anchor] = heading
	}
}
