package mail

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"
	"text/template"

	"partnerapi/db/outbox"
	"partnerapi/domain"
)

// values are the variables of a mail's texts. Title is the title of what the mail is about, such as a course. Date is
// the date that mails of its type name: the expiry of an invite, a due date, the date of completion, sending or breach,
// or a month.
type values struct {
	Name, Address, Client, Partner, Role, Title, Date, From, Domain string
	// Passwords means that an exposure is critical: of passwords or equivalent data.
	Passwords bool
	// Replies means that somebody receives replies.
	Replies bool
}

// content is a mail's content before rendering as text and HTML. Empty parts are omitted.
type content struct {
	Lang, Subject, Greeting string
	Header                  header
	Paragraphs              []string
	Certificate             *domain.Certificate
	PointsHeading           string
	Points                  []string
	After                   []string // paragraphs
	Action, Link            string
	Fallback, Closing       string
	Footer                  footer
}

// mailContent returns the content of a mail to a user. It returns an error if there are no texts in the mail's
// language, or for its type.
func (c *Composer) mailContent(m domain.Mail) (content, error) {
	parts := content{Lang: m.Language.Tag()}
	write := m.Type.Kind().Text
	if write == nil {
		return parts, fmt.Errorf("mails of type %q have no texts", m.Type)
	}
	templates, ok := c.words[m.Language]
	if !ok {
		return parts, fmt.Errorf("there are no words in %q", m.Language)
	}

	text := write(&m)
	v := newValues(&m, text)
	r := renderer{templates: templates, values: v}
	parts.setBrand(&r, m.Brand)
	kind := string(m.Type)
	parts.Greeting, parts.Fallback, parts.Closing = r.render("greeting"), r.render("fallback"), r.render("closing")
	parts.Subject = r.render(kind + ".subject")
	parts.Paragraphs, parts.After = r.paragraphs(kind+".body"), r.paragraphs(kind+".after")
	if text.Path != "" {
		parts.Action, parts.Link = r.render(kind+".action"), c.Link(text.Path)
	}
	if len(text.Points) > 0 {
		parts.PointsHeading, parts.Points = r.render(kind+".points"), pointTexts(m.Language, text.Points)
	}
	if r.has(kind + ".heading") {
		parts.Certificate = &domain.Certificate{
			Language: m.Language, Heading: r.render(kind + ".heading"), Presented: r.render(kind + ".presented"),
			Name:      cmp.Or(Quote(m.FullName), m.To), // a user may have no name
			Completed: r.render(kind + ".completed"), Course: v.Title, On: r.render(kind + ".on"),
			Client: v.Client, Partner: v.Partner, Email: m.To, Brand: m.Brand,
		}
	}
	return parts, r.err
}

// noticeContent returns the content of a mail to a partner, in English. In its texts it replaces domain.PublicURL by
// the public URL.
func (c *Composer) noticeContent(m outbox.NoticeMail) (content, error) {
	r := renderer{templates: c.words[domain.English], values: values{Partner: Quote(m.PartnerName), Replies: m.Brand.ReplyTo != ""}}
	expand := func(texts ...string) []string {
		lines := make([]string, len(texts))
		for i, text := range texts {
			lines[i] = strings.ReplaceAll(OneLine(text), domain.PublicURL, c.public)
		}
		return lines
	}
	n := m.Notice
	parts := content{
		Lang: domain.English.Tag(), Subject: OneLine(n.Subject), Greeting: r.render("greeting"),
		Paragraphs: expand(n.Paragraphs...), PointsHeading: n.PointsHeading, Points: expand(n.Points...),
		After:  expand(n.After...),
		Action: n.Action, Link: c.Link(n.Path), Fallback: r.render("fallback"), Closing: r.render("notice.closing"),
	}
	parts.setBrand(&r, m.Brand)
	return parts, r.err
}

// newValues returns the variables of a mail's texts.
func newValues(m *domain.Mail, t domain.MailText) values {
	v := values{
		Name: Quote(m.Name), Address: m.To, Client: Quote(m.ClientName), Partner: Quote(m.PartnerName), Role: string(m.InviteRole),
		Title: Quote(t.Title), From: Quote(t.From), Domain: Quote(t.Domain), Passwords: t.Passwords, Replies: m.Brand.ReplyTo != "",
	}
	switch {
	case t.Monthly:
		v.Date = longMonth(m.Language, t.Date)
	case !t.Date.IsZero():
		v.Date = longDate(m.Language, t.Date)
	}
	return v
}

// renderer renders the texts of one language with values. err is the first error of any text.
type renderer struct {
	templates *template.Template
	values    values
	err       error
}

// render returns the text of a template without white space around it. It sets r.err to the first error.
func (r *renderer) render(name string) string {
	var text strings.Builder
	if err := r.templates.ExecuteTemplate(&text, name, r.values); err != nil && r.err == nil {
		r.err = err
	}
	return strings.TrimSpace(text.String())
}

// has reports whether there is a text.
func (r *renderer) has(name string) bool { return r.templates.Lookup(name) != nil }

// paragraphs returns the paragraphs of a text; nil if there is no such text.
func (r *renderer) paragraphs(name string) []string {
	if !r.has(name) {
		return nil
	}
	return strings.Split(r.render(name), "\n\n")
}

// lists are the labels of listed items, by language.
var lists = readLists()

// listWords are the labels of clues and of data classes.
type listWords struct {
	Clues map[domain.Language]map[domain.Indicator]string
	// DataClasses maps names of the catalogue of breaches, in lower case, to labels. Names
	// without a label, and all in English, are shown as in the catalogue.
	DataClasses map[domain.Language]map[string]string `json:"data_classes"`
}

// readLists parses the embedded labels. It panics on an error, as template.Must does.
func readLists() (all listWords) {
	text, err := textFiles.ReadFile("words/lists.json")
	if err == nil {
		err = json.Unmarshal(text, &all)
	}
	if err != nil {
		panic(err)
	}
	return all
}

// Clues returns the descriptions of the indicators of a simulated mail in a language.
func Clues(language domain.Language, indicators []domain.Indicator) []string {
	texts := make([]string, len(indicators))
	for i, indicator := range indicators {
		texts[i] = lists.Clues[language][indicator]
	}
	return texts
}

// pointTexts returns the items of a list in a language. A class of data without a label keeps its name.
func pointTexts(language domain.Language, points []domain.MailPoint) []string {
	texts := make([]string, len(points))
	for i, p := range points {
		texts[i] = Quote(p.Text)
		switch label, ok := lists.DataClasses[language][strings.ToLower(texts[i])]; {
		case p.Clue != "":
			texts[i] = lists.Clues[language][p.Clue]
		case !p.On.IsZero():
			texts[i] += ", " + longDate(language, p.On)
		case ok:
			texts[i] = label
		}
	}
	return texts
}
