package site

import (
	"fmt"
	"slices"

	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/util"
)

// programs maps the languages of code blocks that are programs to their names.
var programs = map[string]string{"go": "Go", "js": "JavaScript", "php": "PHP", "python": "Python", "ts": "TypeScript"}

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

// groupTabs groups consecutive programs, one per language, into tabs. A code block that is neither a program nor sh,
// such as output, goes into the tab of the program before it; anything else ends the group.
func groupTabs(doc ast.Node, source []byte) {
	group := &tabs{number: 1}
	for n := doc.FirstChild(); n != nil; {
		next := n.NextSibling()
		block, isCode := n.(*ast.FencedCodeBlock)
		language := ""
		if isCode {
			language = string(block.Language(source))
		}
		last := len(group.panels) - 1
		switch {
		case programs[language] != "":
			if slices.ContainsFunc(group.panels, func(p *panel) bool { return p.language == language }) {
				group = group.insertInto(doc)
			}
			id := fmt.Sprintf("tabs-%d-%s", group.number, language)
			group.panels = append(group.panels, &panel{id: id, language: language, blocks: []ast.Node{n}})
		case isCode && language != "sh" && last >= 0:
			group.panels[last].blocks = append(group.panels[last].blocks, n)
		default:
			group = group.insertInto(doc)
		}
		n = next
	}
	group.insertInto(doc)
}

// insertInto moves the panels' blocks into the tabs, and the tabs into the document, if there are two or more panels.
// It returns empty tabs for the next group.
func (t *tabs) insertInto(doc ast.Node) *tabs {
	if len(t.panels) < 2 {
		return &tabs{number: t.number}
	}
	doc.InsertBefore(doc, t.panels[0].blocks[0], t)
	for _, p := range t.panels {
		for _, block := range p.blocks {
			p.AppendChild(p, block)
		}
		t.AppendChild(t, p)
	}
	return &tabs{number: t.number + 1}
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
				p.id, p.language, programs[p.language])
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
		p.id, p.language, programs[p.language])
	return ast.WalkContinue, err
}
