package site

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"html/template"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/yuin/goldmark/text"
)

// Change is an entry of the changelog of the API.
type Change struct {
	// ID is its fragment in links: release-2.4. Text is Markdown, whose links begin with a slash.
	ID, Title, Text string
	// On is the day of the change.
	On time.Time
	// Operations are the operations that it added, Additions what it added to other operations.
	Operations []Operation
	Additions  []Addition
}

// Addition is a field or a parameter that a release added to operations of itself and of earlier releases.
type Addition struct {
	Name string
	// Parameter is true for a parameter, InEvents for a field of events and of the bodies of webhooks.
	Parameter, InEvents bool
	// About is its description.
	About string
	// Operations are the operations that have it.
	Operations []Operation
}

const changelogPath = "/docs/changelog"

// linkedChange is a Change with its text as HTML, and with the links of its operations.
type linkedChange struct {
	Change
	About     template.HTML
	Links     []linkedOperation
	Additions []linkedAddition
}

// linkedOperation is an operation with its link; empty if the operation is not in a reference.
type linkedOperation struct {
	Operation
	Link string
}

// linkedAddition is an Addition with its first operations; More is the number of the others.
type linkedAddition struct {
	Addition
	Links []linkedOperation
	More  int
}

// shownOperations is how many operations an entry names for a field or parameter.
const shownOperations = 3

// Text returns the addition as a sentence without markup.
func (a linkedAddition) Text() string {
	var places []string
	for _, o := range a.Links {
		places = append(places, o.Summary)
	}
	if a.More > 0 {
		places = append(places, fmt.Sprintf("%d more operations", a.More))
	}
	if a.InEvents {
		places = append(places, "events")
	}
	kind := "Field"
	if a.Parameter {
		kind = "Parameter"
	}
	return strings.TrimSpace(kind + " " + a.Name + " (" + strings.Join(places, "; ") + "): " + strings.ReplaceAll(a.About, "`", ""))
}

// marked matches what a description shows as code: text between backticks, and names with an underscore, alone or in a
// path such as page.as_of.
var marked = regexp.MustCompile("`[^`]+`|" + `\b[a-z][a-z0-9]*(?:\.[a-z0-9]+)*(?:_[a-z0-9]+)+(?:[._][a-z0-9]+)*\b`)

// AboutHTML returns the description with names of fields and values as code.
func (a Addition) AboutHTML() template.HTML {
	return template.HTML(marked.ReplaceAllStringFunc(template.HTMLEscapeString(a.About), func(name string) string {
		return "<code>" + strings.Trim(name, "`") + "</code>"
	}))
}

// feedID identifies the feed, and with an entry's ID the entry, whatever address a reader calls the service by.
const feedID = "tag:partnerapi,2026:changelog"

// linkedOf returns operations with their links.
func (b *builder) linkedOf(list []Operation) (linked []linkedOperation) {
	for _, o := range list {
		linked = append(linked, linkedOperation{o, b.operations[o.Method+" "+o.Path]})
	}
	return linked
}

// linkedChange returns a change with its text as HTML, and with links.
func (b *builder) linkedChange(c Change) (linkedChange, error) {
	var about bytes.Buffer
	if err := b.markdown.goldmark.Convert([]byte(c.Text), &about); err != nil {
		return linkedChange{}, err
	}
	linked := linkedChange{Change: c, About: template.HTML(about.String()), Links: b.linkedOf(c.Operations)}
	for _, a := range c.Additions {
		shown := min(len(a.Operations), shownOperations)
		linked.Additions = append(linked.Additions, linkedAddition{a, b.linkedOf(a.Operations[:shown]), len(a.Operations) - shown})
	}
	return linked, nil
}

// feedEntry returns the entry of the feed for a change.
func (b *builder) feedEntry(c linkedChange) atomEntry {
	source := []byte(c.Text)
	content := []string{plainText(b.markdown.goldmark.Parser().Parse(text.NewReader(source)), source)}
	for _, o := range c.Operations {
		content = append(content, o.Method+" "+o.Path+": "+o.Summary)
	}
	for _, a := range c.Additions {
		content = append(content, a.Text())
	}
	return atomEntry{
		Title: c.Title, ID: feedID + "/" + c.ID, Updated: c.On.Format(time.RFC3339),
		Links: []atomLink{{Href: SampleBase + changelogPath + "#" + c.ID}}, Content: strings.Join(content, "\n"),
	}
}

// changelog returns the page of changes, the newest first, and its Atom feed, by path.
func (b *builder) changelog(changes []Change) (map[string]*content, error) {
	feed := atomFeed{
		Title: "Partner API changelog", ID: feedID, Author: "The operator of this service",
		Updated: changes[0].On.Format(time.RFC3339),
		Links:   []atomLink{{Href: SampleBase + changelogPath}, {Rel: "self", Href: SampleBase + changelogPath + ".atom"}},
	}
	var list []linkedChange
	for _, c := range changes {
		linked, err := b.linkedChange(c)
		if err != nil {
			return nil, err
		}
		list, feed.Entries = append(list, linked), append(feed.Entries, b.feedEntry(linked))
	}
	encoded, err := xml.MarshalIndent(feed, "", "  ")
	if err != nil {
		return nil, err
	}
	page, err := b.render("changelog", changelogPage, list)
	return map[string]*content{
		changelogPath:           page,
		changelogPath + ".atom": newContent("application/atom+xml; charset=utf-8", revalidated, append([]byte(xml.Header), encoded...)),
	}, err
}

var changelogPage = page{
	Path: changelogPath, Title: "Changelog", Section: "guides", About: "Changes of the API, newest first.",
}

// addChangelog adds the changelog and its feed; nothing if there are no changes.
func (b *builder) addChangelog() error {
	if len(b.Config.Changes) == 0 {
		return nil
	}
	made, err := b.changelog(b.Config.Changes)
	if err != nil {
		return err
	}
	maps.Copy(b.pages, made)
	b.listed = append(b.listed, changelogPage)
	return nil
}

// currentChangelog is the changelog with changes that the service told at a request.
type currentChangelog struct {
	told  []Change
	pages map[string]*content
}

// changelogPage returns the page or the feed at a path of the changelog, with the changes that Notice tells now; nil at
// another path, or if it tells none.
func (s *Site) changelogPage(path string) (*content, error) {
	if s.config.Notice.Changes == nil || path != changelogPath && path != changelogPath+".atom" {
		return nil, nil
	}
	told := s.config.Notice.Changes()
	if len(told) == 0 {
		return nil, nil
	}
	if last := s.changelog.Load(); last != nil && reflect.DeepEqual(last.told, told) {
		return last.pages[path], nil
	}
	all := slices.Concat(told, s.config.Changes)
	slices.SortStableFunc(all, func(a, b Change) int { return b.On.Compare(a.On) })
	pages, err := s.builder.changelog(all)
	if err != nil {
		return nil, err
	}
	s.changelog.Store(&currentChangelog{told, pages})
	return pages[path], nil
}

// atomFeed is an Atom feed (RFC 4287).
type atomFeed struct {
	XMLName xml.Name    `xml:"http://www.w3.org/2005/Atom feed"`
	Title   string      `xml:"title"`
	ID      string      `xml:"id"`
	Updated string      `xml:"updated"`
	Author  string      `xml:"author>name"`
	Links   []atomLink  `xml:"link"`
	Entries []atomEntry `xml:"entry"`
}

type atomLink struct {
	Rel  string `xml:"rel,attr,omitempty"`
	Href string `xml:"href,attr"`
}

type atomEntry struct {
	Title   string     `xml:"title"`
	ID      string     `xml:"id"`
	Updated string     `xml:"updated"`
	Links   []atomLink `xml:"link"`
	Content string     `xml:"content"`
}
