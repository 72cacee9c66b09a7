package mail

import (
	"cmp"
	"encoding/json"
	"fmt"
	htmltemplate "html/template"
	"strings"
	"text/template"

	"partnerapi/db/outbox"
	"partnerapi/domain"
)

// values are the variables of an email's texts. Title is the title of what the email is about, such as a course. Date
// is the date that emails of its type name: the expiry of an invite, a due date, the date of completion, sending or
// breach, or a month.
type values struct {
	Name, Address, Client, Partner, Role, Title, Date, From, Domain string
	// Severity is that of an exposure.
	Severity domain.Severity
	// Contact is where people ask for help; it may be empty.
	Contact string
	// Replies means that someone reads replies.
	Replies bool
}

// content is an email's content before rendering as text and HTML. Empty parts are omitted.
type content struct {
	Lang, Subject, Preheader, Greeting string
	Header                             header
	Facts                              []domain.NoticeFact
	Paragraphs                         []string
	Certificate                        *domain.Certificate
	PointsHeading                      string
	Points                             []string
	// Tables stand for Points in HTML.
	Tables       []table
	StepsHeading string
	Steps        []instruction
	After        []string // paragraphs
	Button       button
	NextHeading  string
	Next         []string // paragraphs
	Closing      string
	Footer       footer
}

// button is the one link that an email asks to follow. Fallback says how to follow it without the button; it is empty
// for one that leads to a contact, which the footer shows.
type button struct {
	Action, Fallback string
	Link             htmltemplate.URL
}

// instruction is a numbered step of what to do.
type instruction struct {
	Number int
	Text   string
}

// table is a table of a notice. Its links are URLs.
type table struct {
	Heading, Note string
	Columns       []string
	Rows          [][]tableCell
}

// tableCell is a cell of a table. URL may be empty.
type tableCell struct{ Text, URL string }

// Parts returns the text in parts between which a line may break: after each slash, as of a path.
func (c tableCell) Parts() []string {
	parts := strings.SplitAfter(c.Text, "/")
	if last := len(parts) - 1; last > 0 && parts[last] == "" {
		return parts[:last]
	}
	return parts
}

// mailContent returns the content of an email to a user. It returns an error if there are no texts in the email's
// language, or for its type.
func (c *Composer) mailContent(m domain.Mail) (content, error) {
	parts := content{Lang: m.Language.Tag()}
	write := m.Type.Kind().Text
	if write == nil {
		return parts, fmt.Errorf("emails of type %q have no texts", m.Type)
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
	parts.Greeting, parts.Closing = r.render("greeting"), r.render("closing")
	parts.Subject, parts.Preheader = r.render(kind+".subject"), r.render(kind+".preheader")
	parts.Paragraphs, parts.After = r.paragraphs(kind+".body"), r.paragraphs(kind+".after")
	parts.NextHeading, parts.Next = r.render("next"), r.paragraphs(kind+".next")
	parts.Button = button{Action: r.render(kind + ".action"), Fallback: r.render("fallback"), Link: htmltemplate.URL(c.LinkTo(text.Link))}
	if link := parts.Footer.Link; link != "" && r.has(kind+".ask") {
		parts.Button = button{Action: r.render(kind + ".ask"), Link: link}
	}
	if len(text.Points) > 0 {
		parts.PointsHeading, parts.Points = r.render(kind+".points"), pointTexts(m.Language, text.Points)
	}
	if r.has(kind + ".steps") {
		parts.StepsHeading = r.render("steps")
		for text := range strings.SplitSeq(r.render(kind+".steps"), "\n") {
			parts.Steps = append(parts.Steps, instruction{len(parts.Steps) + 1, text})
		}
	}
	if r.has(kind + ".note") {
		parts.Footer.Note = r.render(kind + ".note")
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

// noticeContent returns the content of an email to a partner, in English, with the service's brand. In its texts it
// replaces domain.PublicURL by the public URL.
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
		Facts: n.Facts, Paragraphs: expand(n.Paragraphs...), PointsHeading: n.PointsHeading, Points: expand(n.Points...),
		Tables: c.tables(n.Tables), After: expand(n.After...),
		Button:  button{Action: n.Action, Fallback: r.render("fallback"), Link: htmltemplate.URL(c.Link(n.Path))},
		Closing: r.render("notice.closing"),
	}
	if len(parts.Paragraphs) > 0 {
		parts.Preheader = parts.Paragraphs[0]
	}
	parts.setBrand(&r, m.Brand)
	return parts, r.err
}

// tables returns the tables of a notice with the URLs of their links.
func (c *Composer) tables(from []domain.NoticeTable) (tables []table) {
	for _, t := range from {
		to := table{Heading: OneLine(t.Heading), Note: OneLine(t.Note), Columns: t.Columns}
		for _, cells := range t.Rows {
			row := make([]tableCell, len(cells))
			for i, cell := range cells {
				row[i].Text = OneLine(cell.Text)
				if cell.Path != "" {
					row[i].URL = c.Link(cell.Path)
				}
			}
			to.Rows = append(to.Rows, row)
		}
		tables = append(tables, to)
	}
	return tables
}

// newValues returns the variables of an email's texts.
func newValues(m *domain.Mail, t domain.MailText) values {
	v := values{
		Name: Quote(m.Name), Address: m.To, Client: Quote(m.ClientName), Partner: Quote(m.PartnerName), Role: string(m.InviteRole),
		Title: Quote(t.Title), From: Quote(t.From), Domain: Quote(t.Domain), Severity: t.Severity, Contact: string(m.Brand.SupportContact),
		Replies: m.Brand.ReplyTo != "",
	}
	switch {
	case t.Monthly:
		v.Date = longMonth(m.Language, t.Date)
	case !t.Date.IsZero():
		v.Date = LongDate(m.Language, t.Date)
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

// Clues returns the descriptions of the indicators of a simulated email in a language.
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
			texts[i] += ", " + LongDate(language, p.On)
		case ok:
			texts[i] = label
		}
	}
	return texts
}
