package site

import (
	"html/template"
	"strings"

	"github.com/alecthomas/chroma/v2"
	"github.com/alecthomas/chroma/v2/formatters/html"
	"github.com/alecthomas/chroma/v2/lexers"
	"github.com/alecthomas/chroma/v2/styles"
)

// formatter marks words with classes, whose colours are in site.css.
var formatter = html.New(html.WithClasses(true), html.PreventSurroundingPre(true))

// highlight returns a block of code in a language; an unknown one is plain text.
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
	// A block is reached with the keyboard too: it may be wider than the page.
	out.WriteString(`<pre class="code" tabindex="0"><code>`)
	if err := formatter.Format(&out, styles.Fallback, tokens); err != nil {
		return "", err
	}
	out.WriteString("</code></pre>\n")
	return template.HTML(out.String()), nil
}
