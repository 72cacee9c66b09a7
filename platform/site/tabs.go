package site

import (
	"fmt"
	"slices"

	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/util"
)

// programs maps the languages of code blocks that are programs to their names.
var programs = map[string]string{
	"sh": "curl", "python": "Python", "js": "JavaScript", "csharp": "C#", "powershell": "PowerShell", "go": "Go", "php": "PHP", "ts": "TypeScript",
}

var (
	kindTabs  = ast.NewNodeKind("Tabs")
	kindPanel = ast.NewNodeKind("Panel")
)

// tabs is a program in several languages, with a tab for each.
type tabs struct {
	ast.BaseBlock
	number int // on the page
	panels []*panel
}

// panel is the program in one language, and its output.
type panel struct {
	ast.BaseBlock
	id, language string
	blocks       []ast.Node
}

// Kind implements ast.Node.
func (*tabs) Kind() ast.NodeKind { return kindTabs }

// Kind implements ast.Node.
func (*panel) Kind() ast.NodeKind { return kindPanel }

// Dump implements ast.Node.
func (t *tabs) Dump(source []byte, level int) { ast.DumpHelper(t, source, level, nil, nil) }

// Dump implements ast.Node.
func (p *panel) Dump(source []byte, level int) { ast.DumpHelper(p, source, level, nil, nil) }

// groupTabs groups consecutive programs, one per language, into tabs. Commands begin a group. A code block that is not
// a program, such as output, goes into the tab of the program before it. If only the last program has one, it is the
// output of all and follows the tabs. Anything else ends the group.
func groupTabs(doc ast.Node, source []byte) {
	group := &tabs{number: 1}
	for n := doc.FirstChild(); n != nil; {
		next := n.NextSibling()
		language, isCode := languageOf(n, source)
		switch {
		case programs[language] != "":
			if language == "sh" || slices.ContainsFunc(group.panels, func(p *panel) bool { return p.language == language }) {
				group = group.insertInto(doc)
			}
			group.panels = append(group.panels, &panel{language: language, blocks: []ast.Node{n}})
		case isCode && len(group.panels) > 0 && group.panels[0].language == "sh" && len(group.panels) == 1:
			group = group.insertInto(doc) // commands with their own output
		case isCode && len(group.panels) > 0:
			last := group.panels[len(group.panels)-1]
			last.blocks = append(last.blocks, n)
		default:
			group = group.insertInto(doc)
		}
		n = next
	}
	group.insertInto(doc)
}

// languageOf returns the language of a code block.
func languageOf(n ast.Node, source []byte) (language string, isCode bool) {
	block, isCode := n.(*ast.FencedCodeBlock)
	if !isCode {
		return "", false
	}
	return string(block.Language(source)), true
}

// insertInto moves the panels' blocks into the tabs, and the tabs into the document, if there are two or more panels.
// It returns empty tabs for the next group.
func (t *tabs) insertInto(doc ast.Node) *tabs {
	if len(t.panels) < 2 {
		return &tabs{number: t.number}
	}
	last := len(t.panels) - 1
	if !slices.ContainsFunc(t.panels[:last], func(p *panel) bool { return len(p.blocks) > 1 }) {
		t.panels[last].blocks = t.panels[last].blocks[:1]
	}
	doc.InsertBefore(doc, t.panels[0].blocks[0], t)
	for _, p := range t.panels {
		p.id = fmt.Sprintf("tabs-%d-%s", t.number, p.choice())
		for _, block := range p.blocks {
			p.AppendChild(p, block)
		}
		t.AppendChild(t, p)
	}
	return &tabs{number: t.number + 1}
}

// choice returns the language as site.js remembers it.
func (p *panel) choice() string {
	if p.language == "sh" {
		return "curl"
	}
	return p.language
}

// renderTabs renders the buttons of tabs; their panels follow.
func (blocks) renderTabs(w util.BufWriter, _ []byte, n ast.Node, entering bool) (ast.WalkStatus, error) {
	if !entering {
		_, err := w.WriteString("</div>\n")
		return ast.WalkContinue, err
	}
	_, err := w.WriteString(`<div class="tabs"><div class="languages" role="tablist" aria-label="Language">`)
	for _, p := range n.(*tabs).panels {
		if err == nil {
			_, err = fmt.Fprintf(w, `<button type="button" role="tab" id="%s-tab" aria-controls="%[1]s" data-language="%s">%s</button>`,
				p.id, p.choice(), programs[p.language])
		}
	}
	if err == nil {
		_, err = w.WriteString("</div>\n")
	}
	return ast.WalkContinue, err
}

// renderPanel renders a panel with the name of its language, which browsers without JavaScript show.
func (blocks) renderPanel(w util.BufWriter, _ []byte, n ast.Node, entering bool) (ast.WalkStatus, error) {
	if !entering {
		_, err := w.WriteString("</div>\n")
		return ast.WalkContinue, err
	}
	p := n.(*panel)
	_, err := fmt.Fprintf(w, `<div class="panel" role="tabpanel" id="%s" aria-labelledby="%[1]s-tab" data-language="%s"><p class="language">%s</p>`+"\n",
		p.id, p.choice(), programs[p.language])
	return ast.WalkContinue, err
}
