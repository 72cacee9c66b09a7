package main

import (
	"strings"
	"testing"

	"partnerapi/platform/site"
	"partnerapi/v1compat"
	"partnerapi/v2/op"
)

// TestAnchorsOfMigration: v1's answers lead to a heading of the operation, and so does
// the index of the migration guide, which has every operation under its old fragment.
// What leads to operations of v2 leads to those that are served.
func TestAnchorsOfMigration(t *testing.T) {
	t.Parallel()
	config, err := pagesOf(op.V2_0)
	if err != nil {
		t.Fatal(err)
	}
	pages := site.New(config)
	page := func(path string) string { return strings.ReplaceAll(readPage(t, pages, path), "<wbr>", "") }
	index := page("/docs/migrating")
	for meta := range v1compat.Declare(v1compat.Config{}).Routes() {
		path, fragment, _ := strings.Cut(meta.Guide, "#")
		heading := meta.Method + " /v1" + op.Braced(meta.Path)
		switch {
		case meta.Additive:
			page(path)
		case !strings.Contains(page(path), `<h2 id="`+fragment+`">`+heading+"</h"):
			t.Errorf("%s leads to no heading", meta.Guide)
		case !strings.Contains(index, `<h3 id="`+fragment+`">`+heading+"</h"), !strings.Contains(index, `<a href="`+meta.Guide+`">`):
			t.Errorf("the index does not lead to %s", meta.Guide)
		}
	}
	clients := page("/docs/migrating/clients")
	for link, served := range map[string]bool{"/docs/reference/v2#tag/clients/clients-list": true, "/docs/reference/v2#tag/users": false} {
		if strings.Contains(clients, `href="`+link) != served {
			t.Errorf("a link to %s is there: %v", link, !served)
		}
	}
}
