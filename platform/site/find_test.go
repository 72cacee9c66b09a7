package site_test

import (
	"strings"
	"testing"
	"testing/fstest"
	"unicode/utf8"

	"partnerapi/platform/site"
)

// searched are two guides, one of them long.
var searched = fstest.MapFS{
	"one.md": {Data: []byte("# Webhooks\n\nReceive events.\n\n<!-- search: callback -->\n\n## Rotate the secret\n\nRotate it with `POST /v9/things`.\n\n" +
		"```sh\ncurl -H \"X-API-Key: pk_demo_all\" \"http://127.0.0.1:8080/v9/things\"\n```\n\n## Fields\n\n`updated_since` selects changes.\n")},
	"two.md": {Data: []byte("# Paging\n\n" + strings.Repeat("Pages have cursors, and nothing else.\n\n", 100) + "Only here is a webhook's horizon explained.\n\n" +
		strings.Repeat("More ünïcode text.\n\n", 200) + "\n## More secrets\n\nNone.\n")},
}

// TestFind verifies which passages a search of the guides finds and in which order, and that they fit the service and a limit.
func TestFind(t *testing.T) {
	t.Parallel()
	s := site.New(config(t, searched))
	const address = "https://partner.example/api"
	find := func(query string, limit int) []site.Passage {
		t.Helper()
		found, err := s.Search(query, limit, address)
		if err != nil {
			t.Fatal(err)
		}
		return found
	}
	for query, want := range map[string]string{
		"How do I rotate secrets?": "Webhooks: Rotate the secret /docs/guide/one#rotate-the-secret, Paging: More secrets /docs/guide/two#more-secrets",
		"callbacks":                "Webhooks /docs/guide/one",
		"updated_since":            "Webhooks: Fields /docs/guide/one#fields",
		"HORIZON":                  "Paging /docs/guide/two",
		"the":                      "Webhooks: Rotate the secret /docs/guide/one#rotate-the-secret",
		"nothing-of-it zzz":        "Paging /docs/guide/two",
		"zzz":                      "", "": "", "?!": "",
	} {
		var got []string
		for _, p := range find(query, 10) {
			got = append(got, p.Title+" "+p.Path)
		}
		if text := strings.Join(got, ", "); text != want {
			t.Errorf("%q finds %s, not %s", query, text, want)
		}
	}
	if found := find("rotate", 1); len(found) != 1 || !strings.Contains(found[0].Text, `curl -H "X-API-Key: YOUR_API_KEY" "`+address+"/v9/things\"") {
		t.Errorf("got %q", found)
	}
	for query, begin := range map[string]string{"horizon": "… Only here", "cursor": "Pages have"} {
		text := find(query, 1)[0].Text
		if n := utf8.RuneCountInString(text); n > 1502 || !strings.HasPrefix(text, begin) || !strings.Contains(text, query) || !utf8.ValidString(text) {
			t.Errorf("%s: %d characters: %.300s", query, n, text)
		}
	}
}
