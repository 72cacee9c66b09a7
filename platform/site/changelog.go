package site

import (
	"bytes"
	"encoding/xml"
	"html/template"
	"strings"
	"time"
)

// Change is an entry of the changelog of the API.
type Change struct {
	// ID is its fragment in links: release-2.4. Text is Markdown.
	ID, Title, Text string
	// On is the day of the change.
	On time.Time
	// Operations are the operations that it added. Members are the members of objects (User.phishing) and the
	// parameters (GET /v2/clients?external_id) that it added to all releases.
	Operations []Operation
	Members    []string
}

const changelogPath = "/docs/changelog"

// linkedChange is a Change with its text as HTML, and with the links of its operations.
type linkedChange struct {
	Change
	About template.HTML
	Links []linkedOperation
}

// linkedOperation is an operation with its link; empty if the operation is not in a reference.
type linkedOperation struct {
	Operation
	Link string
}

// feedID identifies the feed, and with an entry's ID the entry, whatever address a reader calls the service by.
const feedID = "tag:partnerapi,2026:changelog"

// addChangelog adds the page of changes, the newest first, and its Atom feed; nothing if there are no changes.
func (b *builder) addChangelog() error {
	if len(b.Config.Changes) == 0 {
		return nil
	}
	var list []linkedChange
	feed := atomFeed{
		Title: "Changes of the partner API", ID: feedID, Author: "The operator of this service",
		Updated: b.Config.Changes[0].On.Format(time.RFC3339),
		Links:   []atomLink{{Href: SampleBase + changelogPath}, {Rel: "self", Href: SampleBase + changelogPath + ".atom"}},
	}
	for _, c := range b.Config.Changes {
		var about bytes.Buffer
		if err := b.markdown.goldmark.Convert([]byte(c.Text), &about); err != nil {
			return err
		}
		linked, text := linkedChange{Change: c, About: template.HTML(about.String())}, []string{c.Text}
		for _, o := range c.Operations {
			linked.Links = append(linked.Links, linkedOperation{o, b.operations[o.Method+" "+o.Path]})
			text = append(text, o.Method+" "+o.Path+": "+o.Summary)
		}
		if len(c.Members) > 0 {
			text = append(text, "Fields and parameters of earlier operations: "+strings.Join(c.Members, ", "))
		}
		list = append(list, linked)
		link := SampleBase + changelogPath + "#" + c.ID
		feed.Entries = append(feed.Entries, atomEntry{
			Title: c.Title, ID: feedID + "/" + c.ID, Updated: c.On.Format(time.RFC3339), Links: []atomLink{{Href: link}}, Content: strings.Join(text, "\n"),
		})
	}

	encoded, err := xml.MarshalIndent(feed, "", "  ")
	if err != nil {
		return err
	}
	b.addText(changelogPath+".atom", "application/atom+xml; charset=utf-8", append([]byte(xml.Header), encoded...))
	return b.add("changelog", page{
		Path: changelogPath, Title: "Changelog", Section: "guides", About: "What each release of version 2 added, the newest first.",
	}, list)
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
