package phishing_test

import (
	"strings"
	"testing"

	"partnerapi/domain"
	"partnerapi/platform/phishing"
	"partnerapi/v2/v2test"
)

// TestFirstLink: which link of a template is the tracked one, and what of the
// text leads there with it.
func TestFirstLink(t *testing.T) {
	t.Parallel()
	const bait, other = `<a href="https://bait.example/a">1</a>`, `<a href="https://other.example">2</a>`
	const tracked, rest = `<a href="PAGE">1</a>`, other
	for name, c := range map[string]struct{ html, text, wantHTML, wantText string }{
		"unquoted":              {`<a href=https://bait.example/a>1</a>` + other, "", tracked + rest, ""},
		"single quotes":         {`<A HREF='https://bait.example/a'>1</A>` + other, "", `<a href="PAGE">1</A>` + rest, ""},
		"other attributes":      {`<a class="x > y" data-href="z" href = "{{link}}">1</a>` + other, "{{link}}", `<a class="x &gt; y" data-href="z" href="PAGE">1</a>` + rest, "PAGE"},
		"an area of an image":   {`<map><area href="https://bait.example/a"></map>` + other, "", `<map><area href="PAGE"></map>` + rest, ""},
		"an anchor comes first": {`<a name="top">0</a>` + bait + other, "", `<a name="top">0</a>` + tracked + rest, ""},
		"a comment":             {`<!--[if mso]><a href="https://mso.example">0</a><![endif]-->` + bait + other, "", `<!--[if mso]><a href="https://mso.example">0</a><![endif]-->` + tracked + rest, ""},
		"in a style":            {`<style>/* <a href="x"> */</style>` + bait + other, "", `<style>/* <a href="x"> */</style>` + tracked + rest, ""},
		"a fragment":            {`<a href="#">1</a>`, "# 1 of #2", tracked, "# 1 of #2"},
		"a relative address":    {`<a href="a">1</a>`, "a banana", tracked, "a banana"},
		"in a sentence":         {bait, "(see https://bait.example/a). Or https://bait.example/a/", tracked, "(see PAGE). Or PAGE"},
		"a longer address":      {bait, "https://bait.example/abc https://bait.example/a?b=1", tracked, "https://bait.example/abc https://bait.example/a?b=1"},
		"with a placeholder":    {`<a href="https://bait.example/?u={{email}}&amp;v=1">1</a>`, "https://bait.example/?u={{email}}&v=1", tracked, "PAGE"},
		"letters of two sizes":  {`<body>İİİİİİ` + bait + `</body>`, "", `<body>İİİİİİ` + tracked, ""},
	} {
		s := domain.Simulation{Email: "ada@example.test", Template: domain.Template{From: "a@b.example", TemplateContent: domain.TemplateContent{HTML: c.html, Text: c.text}}}
		m, err := phishing.NewComposer(public, phishing.NewTokens(nil)).Compose(s, v2test.Noon)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		page := public + "/t/" + phishing.NewTokens(nil).Token(s.Result)
		html, _, _ := strings.Cut(strings.ReplaceAll(m.HTML, page, "PAGE"), `<p style="font-size:11px">`)
		text, _, _ := strings.Cut(strings.ReplaceAll(m.Text, page, "PAGE"), "\n\n")
		if html != c.wantHTML || text != c.wantText {
			t.Errorf("%s:\n%s\n%s", name, html, text)
		}
	}
}

// TestCheck: what no mail could be written from is refused before it is stored.
func TestCheck(t *testing.T) {
	t.Parallel()
	good := domain.Template{From: "{{company}} <it@bait.example>", TemplateContent: domain.TemplateContent{
		HTML: `<a href={{link}}>1</a>`, Indicators: []domain.Indicator{domain.Fear},
	}}
	for want, change := range map[string]func(*domain.Template){
		"":             func(*domain.Template) {},
		"placeholder":  func(m *domain.Template) { m.From = "IT <{{first_name}}@bait.example>" },
		"not an addr":  func(m *domain.Template) { m.From = "nobody" },
		"no link":      func(m *domain.Template) { m.HTML = `<!-- <a href="x"> --><a name="x">` },
		"has no link":  func(m *domain.Template) { m.HTML = `<a href="x` },
		"no indicator": func(m *domain.Template) { m.Indicators = nil },
	} {
		m := good
		change(&m)
		if err := phishing.Check(m); want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%q: %v", want, err)
		}
	}
}
