package phishing_test

import (
	"errors"
	"regexp"
	"slices"
	"strings"
	"testing"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
	"pgregory.net/rapid"

	"partnerapi/domain"
	"partnerapi/platform/mail"
	"partnerapi/platform/phishing"
	"partnerapi/v2/v2test"
)

// composeOf composes an email of an HTML and a plain text, with PAGE for the URL of its page.
func composeOf(body, text string) (mail.Message, error) {
	s := domain.Simulation{
		Email:      "ada@example.test",
		ReportLink: true,
		FirstName:  `x" href="https://evil.example/name`,
		Template:   domain.Template{From: "a@b.example", Language: domain.English, TemplateContent: domain.TemplateContent{HTML: body, Text: text}},
	}
	m, err := phishing.NewComposer(public, phishing.NewTokens(nil)).Compose(s, v2test.Noon)
	page := public + "/t/" + phishing.NewTokens(nil).Token(s.Result)
	m.HTML, m.Text = strings.ReplaceAll(m.HTML, page, "PAGE"), strings.ReplaceAll(m.Text, page, "PAGE")
	return m, err
}

// TestLinks verifies that every link of a template leads to the page, and that the rest of the HTML stays as it is.
func TestLinks(t *testing.T) {
	t.Parallel()
	const bait, tracked = `<a href="https://evil.example/a">1</a>`, `<a href="PAGE">1</a>`
	for name, c := range map[string]struct{ html, text, wantHTML, wantText string }{
		"all links":            {bait + `<a href="https://evil.example/b">2</a>`, "", tracked + `<a href="PAGE">2</a>`, ""},
		"unquoted":             {`<a href=https://evil.example/a>1</a>`, "", tracked, ""},
		"single quotes":        {`<A HREF='https://evil.example/a'>1</A>`, "", `<a href="PAGE">1</A>`, ""},
		"other attributes":     {`<a class="x > y" data-href="z" href = "https://evil.example">1</a>`, "", `<a class="x &gt; y" data-href="z" href="PAGE">1</a>`, ""},
		"two of a name":        {`<a href="https://evil.example" href="https://evil.example/b">1</a>`, "", tracked, ""},
		"entities":             {`<a href="https&#58;//evil.example">1</a>`, "", tracked, ""},
		"an area of an image":  {`<map><area href="https://evil.example"></map>` + bait, "", `<map><area href="PAGE"></map>` + tracked, ""},
		"forms":                {`<form action="https://evil.example" method="get"><input name="password"><button formaction="https://evil.example" name="b">1</button></form><form></form>`, "", `<form action="PAGE" method="get"><input><button formaction="PAGE">1</button></form><form action="PAGE"></form>`, ""},
		"other schemes":        {`<a href="mailto:evil@evil.example">1</a><a href="tel:+15550142">2</a><a href="javascript:alert(1)">3</a><a href="data:text/html,x">4</a>`, "", `<a href="PAGE">1</a><a href="PAGE">2</a><a href="PAGE">3</a><a href="PAGE">4</a>`, ""},
		"relative":             {`<base href="https://evil.example/"><a href="a">1</a><a href="">2</a><a href="//evil.example">3</a>`, "", tracked + `<a href="PAGE">2</a><a href="PAGE">3</a>`, ""},
		"places":               {`<a name="top">0</a><a href="#top">1</a><a href="#none">2</a><a href="#">3</a>`, "", `<a name="top">0</a><a href="#top">1</a><a href="PAGE">2</a><a href="PAGE">3</a>`, ""},
		"the placeholder":      {`<a href="{{ link }}">1</a>`, "{{link}}", tracked, "PAGE"},
		"refresh":              {`<meta http-equiv=Refresh content="0; url=https://evil.example">` + bait, "", tracked, ""},
		"scripts":              {`<script>location="https://evil.example"</script><body onload="x()">` + bait, "", `<body>` + tracked, ""},
		"frames":               {`<iframe src="https://evil.example"></iframe><object data="https://evil.example"></object>` + bait, "", `<iframe></iframe><object></object>` + tracked, ""},
		"SVG":                  {`<svg><a xlink:href="https://evil.example"></a><image href="https://evil.example/i.png"></image></svg>` + bait, "", `<svg><a xlink:href="PAGE"></a><image href="https://evil.example/i.png"></image></svg>` + tracked, ""},
		"pings":                {`<a href="{{link}}" ping="https://evil.example">1</a>`, "", tracked, ""},
		"VML":                  {`<v:rect href="https://evil.example" o:href="https://evil.example"><v:fill src="i.png" o:href="https://evil.example/i.png"/></v:rect>` + bait, "", `<v:rect href="PAGE" o:href="PAGE"><v:fill src="i.png"/></v:rect>` + tracked, ""},
		"conditional comments": {`<!--[if mso]><v:rect href="https://evil.example"><![endif]--><!--[if !mso]><!-->` + bait + `<!--<![endif]--><![if !mso]>x<![endif]>`, "", `<!--[if mso]><v:rect href="PAGE"><![endif]--><!--[if !mso]><!-->` + tracked + `<!--<![endif]--><![if !mso]>x<![endif]>`, ""},
		"other comments":       {`<!-- <a href="https://evil.example"> -->` + bait, "", `<!-- <a href="https://evil.example"> -->` + tracked, ""},
		"in a style":           {`<style>/* <a href="x"> */</style>` + bait, "", `<style>/* <a href="PAGE"> */</style>` + tracked, ""},
		"addresses":            {bait + `<p>See https://evil.example/a?b=1&amp;c=2, or www.evil.example.</p><a href="x">https://bank.example</a>`, "", tracked + `<p>See <a href="PAGE">https://evil.example/a?b=1&amp;c=2</a>, or <a href="PAGE">www.evil.example</a>.</p><a href="PAGE">https://bank.example</a>`, ""},
		"a plain text":         {bait, "(see https://evil.example/a). Or https://evil.example/b/ <WWW.evil.example>, {{link}}.", tracked, "(see PAGE). Or PAGE <PAGE>, PAGE."},
		"references":           {bait + `<p>&#104;ttp://evil.example, www&#46;evil.example/&copy=1 or http:&#47;&#47;evil.example/a&nbsp;please &copyhttp &notit; &amp; x</p>`, "", tracked + `<p><a href="PAGE">&#104;ttp://evil.example</a>, <a href="PAGE">www&#46;evil.example/&copy=1</a> or <a href="PAGE">http:&#47;&#47;evil.example/a</a>&nbsp;please &copyhttp &notit; &amp; x</p>`, ""},
		"brackets":             {bait + `<p>(https://evil.example/a(b))/c [www.evil.example/]d (http://)e</p>`, "(https://evil.example/a(b))/c [www.evil.example/]d (http://)e http://evil.example/a\u00a0f", tracked + `<p>(<a href="PAGE">https://evil.example/a(b)</a>)/c [<a href="PAGE">www.evil.example</a>/]d (http://)e</p>`, "(PAGE)/c [PAGE]d (http://)e PAGE\u00a0f"},
		"a hidden end":         {`<!--[if gte mso 9]><v:shape href="https://evil.example"></v:shape><!-- x <![endif]--><p>` + bait, "", `<!--[if gte mso 9]><v:shape href="PAGE"></v:shape><![endif]--><p>` + tracked, ""},
		"a value":              {`<p title={{first_name}}>x</p><a title="{{first_name}}" href="https://evil.example">1</a>`, "{{first_name}}", `<p title="x&#34;" href="PAGE">x</p><a title="x&#34; href=&#34;https://evil.example/name" href="PAGE">1</a>`, `x" href="PAGE`},
		"pictures":             {`<img src="https://evil.example/i.png" background="x">` + bait, "", `<img src="https://evil.example/i.png" background="x">` + tracked, ""},
		"letters of two sizes": {`<body>İİİİİİ` + bait + `</body>`, "", `<body>İİİİİİ` + tracked, ""},
	} {
		m, err := composeOf(c.html, c.text)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		body, _, _ := strings.Cut(m.HTML, `<p style="font-size:11px">`)
		text, _, _ := strings.Cut(m.Text, "\n\n")
		if body != c.wantHTML || text != c.wantText {
			t.Errorf("%s:\n%s\n%s", name, body, text)
		}
	}
}

// openTails are ends of HTML that hide what comes after them.
var openTails = []string{
	`<style>a{`, `<!--`, `<!-- </body> -->`, `<!-- <p>`, `<textarea>`, `<title>`, `<script>`, `<select>`, `<select><option>`, `<template>`,
	`<iframe>`, `<xmp>`, `<noframes>`, `<noscript>`, `<noembed>`, `<plaintext>`, `</body> and more`, `</body></html><style>`,
	`<svg>`, `<object>`, `<div style="display: none">`, `<p hidden>`, `<a href="https://evil.example`, `<table><tr><td>`, `<svg><style>`,
	`<![if !mso`, `</body><select>`, `<video>`, `<details>`, `<math><mtext>`,
	`<div style='max-height:0;overflow:hidden;opacity:0;font-size:0'>`, `<div style="mso-hide: all">`, `<div style="color:red; opacity:0.0">`,
	`<div style="HEIGHT:0px !important;overflow-y:hidden">`, `<div style="overflow: hidden; max-height: 0">`, `<div style="overflow:hidden;width:0">`,
}

// checkTracked verifies that the HTML of a simulated email has no link to elsewhere, and shows the report link and the
// picture.
func checkTracked(t interface{ Errorf(string, ...any) }, from, text string) {
	doc, err := html.Parse(strings.NewReader(text))
	if err != nil {
		t.Errorf("%q: %v", from, err)
		return
	}
	var shown []string
	for n := range doc.Descendants() {
		if n.DataAtom == atom.Base || n.DataAtom == atom.Script {
			t.Errorf("%q has a %s:\n%s", from, n.Data, text)
		}
		hidden := false
		for p := n.Parent; p != nil; p = p.Parent {
			hidden = hidden || p.Namespace != "" || slices.ContainsFunc(p.Attr, func(a html.Attribute) bool {
				return a.Key == "hidden" || a.Key == "style" && hidingStyle.MatchString(a.Val)
			}) ||
				slices.Contains([]string{"head", "select", "template", "object", "video", "details"}, p.Data)
		}
		for _, a := range n.Attr {
			if !hidden && (a.Val == "PAGE/report" || a.Val == "PAGE/open.gif") {
				shown = append(shown, a.Val)
			}
		}
	}
	if !slices.Equal(shown, []string{"PAGE/report", "PAGE/open.gif"}) {
		t.Errorf("%q shows %q:\n%s", from, shown, text)
	}
	if live := liveLink.FindString(markup(text)); live != "" {
		t.Errorf("%q keeps %s:\n%s", from, live, text)
	}
}

// hidingStyle matches the styles of openTails that hide an element.
var hidingStyle = regexp.MustCompile(`(?i)none|mso-hide|opacity:0|(?:height|width): ?0`)

// markup returns the start tags and the conditional comments of an HTML text.
func markup(text string) string {
	var b strings.Builder
	z := html.NewTokenizer(strings.NewReader(text))
	for kind := z.Next(); kind != html.ErrorToken; kind = z.Next() {
		raw := string(z.Raw())
		if kind == html.StartTagToken || kind == html.SelfClosingTagToken || strings.HasPrefix(raw, "<!--[if") {
			b.WriteString(raw)
		}
	}
	return b.String()
}

// liveLink matches a link to elsewhere in a tag, also in a comment.
var liveLink = regexp.MustCompile(`(?i)<[^<>]*\b(?:href|action|formaction|ping|data|srcdoc)\s*=\s*["']?[^"'<>]*evil[^<>]*>`)

// TestOpenTails verifies that the report link and the picture are shown after markup that would hide them.
func TestOpenTails(t *testing.T) {
	t.Parallel()
	for _, tail := range openTails {
		text := `<html><head><title>x</title></head><body><p>Hello <a href="https://evil.example">x</a></p>` + tail
		if m, err := composeOf(text, ""); err != nil {
			t.Errorf("%q: %v", tail, err)
		} else {
			checkTracked(t, text, m.HTML)
		}
	}
}

// TestVisibleStyles verifies that a body whose style shows the report link is not refused.
func TestVisibleStyles(t *testing.T) {
	t.Parallel()
	for _, style := range []string{"opacity:0.9", "max-height:0", "min-height:0;line-height:0;overflow:hidden", "height:0.5em;overflow:hidden", "font-size:0"} {
		text := `<body style="` + style + `"><a href="{{link}}">1</a></body>`
		if m, err := composeOf(text, ""); err != nil || !strings.HasPrefix(m.HTML, `<body style="`+style+`"><a href="PAGE">1</a><p style="font-size:11px">`) {
			t.Errorf("%s: %v\n%s", style, err, m.HTML)
		}
	}
}

// TestHTMLToText verifies that no word of an HTML is lost in the plain text of its email.
func TestHTMLToText(t *testing.T) {
	t.Parallel()
	for from, want := range map[string][2]string{
		`<a href="https://x.example/a">Review now</a>/<a href="https://x.example/">Dismiss</a>.`: {"Review now (https://x.example/a) /Dismiss (https://x.example/).", "Review now (PAGE) /Dismiss (PAGE)."},
		`<a href="{{ link }}">Unsubscribe</a>|<a href="https://x.example">Privacy</a>|Contact`:   {"Unsubscribe ({{ link }}) |Privacy (https://x.example) |Contact", "Unsubscribe (PAGE) |Privacy (PAGE) |Contact"},
		`<p>(See <a href="https://x.example">this</a>), <b>or</b> call</p>`:                      {"(See this (https://x.example)), or call", "(See this (PAGE)), or call"},
	} {
		text := phishing.HTMLToText(from)
		m, err := composeOf(`<a href="{{link}}">1</a>`, text)
		if sent, _, _ := strings.Cut(m.Text, "\n\n"); err != nil || text != want[0] || sent != want[1] {
			t.Errorf("%s: %v\n%s\n%s", from, err, text, sent)
		}
	}
}

// TestManyAddresses verifies that the time of finding addresses grows with the length of a text, not with its square: this
// test would time out.
func TestManyAddresses(t *testing.T) {
	t.Parallel()
	m, err := composeOf(`<a href="{{link}}">1</a>`, strings.Repeat("http://)", 1<<19))
	if err != nil || !strings.HasPrefix(m.Text, "http://)http://)") {
		t.Error(err)
	}
}

// TestRandomHTML verifies that HTML of random parts, however they are nested, is tracked or refused.
func TestRandomHTML(t *testing.T) {
	t.Parallel()
	parts := append([]string{
		`<a href="https://evil.example">`, `</a>`, `<p>`, `</p>`, `text https://evil.example/x `, `<form action=//evil.example>`, `</form>`, `<table>`, `</table>`,
		`<tr>`, `<td>`, `<!--[if mso]><v:rect href='https://evil.example'><![endif]-->`, `</svg>`, `</style>`, `</title>`, `</textarea>`, `</template>`, `</select>`,
		`<body>`, `</body>`, `<head>`, `</head>`, `</html>`, `-->`, `<b>`, `<i>`, `</b>`, `<desc>`, `<foreignObject>`, `<base href=https://evil.example>`, `<frameset>`,
		`<input name=p formaction=https://evil.example>`, `<area href=https://evil.example>`, `"`, `'`, `>`, `<`, `{{first_name}}`, `</noscript>`, `</script>`, `<img src=x `,
	}, openTails...)
	rapid.Check(t, func(t *rapid.T) {
		text := strings.Join(rapid.SliceOfN(rapid.SampledFrom(parts), 1, 12).Draw(t, "parts"), "")
		m, err := composeOf(text, "")
		if refused := (*mail.RefusedError)(nil); errors.As(err, &refused) {
			return
		} else if err != nil {
			t.Fatal(err)
		}
		checkTracked(t, text, m.HTML)
		again, err := composeOf(m.HTML, "") // PAGE is not the page's URL now, so that its links are replaced
		if err != nil {
			t.Fatalf("%q: again: %v", text, err)
		}
		if live := liveLink.FindString(markup(again.HTML)); live != "" {
			t.Errorf("%q: again: keeps %s", text, live)
		}
	})
}

// TestInspect verifies which templates are refused, and what is found in the others.
func TestInspect(t *testing.T) {
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
		"in its html":  func(m *domain.Template) { m.HTML = `<textarea><a href="x">` },
		"link in its":  func(m *domain.Template) { m.HTML = `<!--[if mso]><a href="x"></a><![endif]-->` },
		"with frames":  func(m *domain.Template) { m.HTML = `<frameset><frame src="x"></frameset>` },
		"hides what":   func(m *domain.Template) { m.HTML = `<body style="display:none"><a href="x">1</a>` },
		"invalid html": func(m *domain.Template) { m.HTML = strings.Repeat("<div>", 600) + `<a href="x">1</a>` },
		"no indicator": func(m *domain.Template) { m.Indicators = nil },
	} {
		m := good
		change(&m)
		if err := phishing.Check(m); want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%q: %v", want, err)
		}
	}
	good.HTML = `<base href="https://evil.example/"><a href="{{link}}">1</a><a href=b>2</a><a href=b>3</a><img src="//evil.example/i.png"><img src="{{link}}/open.gif">
		<style>@import "https://evil.example/s.css"; p { background: url(https://evil.example/b.png) }</style> See www.evil.example, <a href="{{link}}/open.gif">{{link}}/open.gif</a> {{link}}/report.`
	good.Text = "{{link}} https://evil.example/t."
	found, err := phishing.Inspect(good)
	if err != nil || !slices.Equal(found.Replaced, []string{"b", "www.evil.example", "https://evil.example/t"}) || !slices.Equal(found.Removed, []string{"base"}) ||
		!slices.Equal(found.Remote, []string{"//evil.example/i.png", "https://evil.example/s.css", "https://evil.example/b.png"}) {
		t.Errorf("%+v, %v", found, err)
	}
}
