package mail

import (
	"encoding/json"
	"fmt"
	"strings"
	"text/template"

	"partnerapi/db/outbox"
	"partnerapi/domain"
)

// values are the variables of a mail's texts. Title is what the mail is about, such as a course. Date is the date of its
// type: the expiry of an invite, a due date, that of completion, sending or breach, or a month.
type values struct {
	Name, Address, Client, Partner, Role, Title, Date, From, Domain string
	// Passwords means that an exposure is critical: of passwords or equivalent data.
	Passwords bool
}

// content is a mail's content before rendering as text and HTML. Empty parts are omitted.
type content struct {
	Lang, Subject, Greeting string
	Paragraphs              []string
	Certificate             *certificate
	PointsHeading           string
	Points                  []string
	After                   []string // paragraphs
	Action, Link            string
	Fallback, Closing       string
}

// certificate is a completed course and who completed it.
type certificate struct {
	Heading, Presented, Name, Completed, Course, On string
	Client, Partner                                 string
}

// content returns the content of a mail. It returns an error if there are no words for the mail's language or type.
func (c *Composer) content(m domain.Mail) (content, error) {
	l := content{Lang: m.Language.Tag()}
	v, err := c.fillValues(m, &l)
	if err != nil {
		return l, err
	}
	t, ok := c.words[m.Language]
	if !ok {
		return l, fmt.Errorf("there are no words in %q", m.Language)
	}

	w := words{t: t, values: v}
	kind := string(m.Type)
	l.Greeting, l.Fallback, l.Closing = w.render("greeting"), w.render("fallback"), w.render("closing")
	l.Subject, l.Paragraphs, l.After = w.render(kind+".subject"), w.paragraphs(kind+".body"), w.paragraphs(kind+".after")
	if l.Link != "" {
		l.Action = w.render(kind + ".action")
	}
	if len(l.Points) > 0 {
		l.PointsHeading = w.render(kind + ".points")
	}
	if m.Type == domain.CertificateMail {
		l.Certificate = &certificate{
			Heading: w.render(kind + ".heading"), Presented: w.render(kind + ".presented"), Name: fullName(m),
			Completed: w.render(kind + ".completed"), Course: v.Title, On: w.render(kind + ".on"),
			Client: v.Client, Partner: v.Partner,
		}
	}
	return l, w.err
}

// notice returns the content of a mail to a partner, in English, with the public URL for domain.PublicURL.
func (c *Composer) notice(m outbox.NoticeMail) (content, error) {
	w := words{t: c.words[domain.English], values: values{Partner: OneLine(m.PartnerName)}}
	expand := func(texts ...string) []string {
		lines := make([]string, len(texts))
		for i, text := range texts {
			lines[i] = strings.ReplaceAll(OneLine(text), domain.PublicURL, c.public)
		}
		return lines
	}
	n := m.Notice
	l := content{
		Lang: domain.English.Tag(), Subject: OneLine(n.Subject), Greeting: w.render("greeting"),
		Paragraphs: expand(n.Paragraphs...), PointsHeading: n.PointsHeading, Points: expand(n.Points...),
		After:  expand(n.After...),
		Action: n.Action, Link: c.Link(n.Path), Fallback: w.render("fallback"), Closing: w.render("notice.closing"),
	}
	return l, w.err
}

// fillValues returns the variables of a mail's texts. It sets l.Link and l.Points for the types of mail that have them,
// and returns an error for an unknown type.
func (c *Composer) fillValues(m domain.Mail, l *content) (values, error) {
	v := values{Name: OneLine(m.Name), Address: m.To, Client: OneLine(m.ClientName), Partner: OneLine(m.PartnerName),
		Role: string(m.InviteRole)}
	switch m.Type {
	case domain.WelcomeMail:
		l.Link = c.Link("/training")
	case domain.AdminInviteMail:
		v.Date, l.Link = longDate(m.Language, domain.DateOf(m.ExpiresAt)), c.Link("/invites/"+m.Invite.String())
	case domain.TrainingInvite:
		v.Title, v.Date, l.Link = OneLine(m.CourseTitle), longDate(m.Language, m.DueOn),
			c.Link("/training/"+m.Course.String())
	case domain.TrainingReminder:
		l.Link = c.Link("/training")
		for _, o := range m.Overdue {
			l.Points = append(l.Points, OneLine(o.Title)+", "+longDate(m.Language, o.DueOn))
		}
	case domain.PolicyReminder:
		v.Title, l.Link = OneLine(m.PolicyTitle), c.Link("/policies/"+m.Policy.String())
	case domain.CertificateMail:
		v.Title, v.Date, l.Link = OneLine(m.CourseTitle), longDate(m.Language, m.CompletedOn), c.Link("/training")
	case domain.PhishReminder:
		s := m.Simulated
		v.Title, v.From, v.Date, l.Link = OneLine(s.Subject), OneLine(s.From), longDate(m.Language, s.SentOn),
			c.Link("/training")
		l.Points = Clues(m.Language, s.Clues)
	case domain.ExposureNotice:
		v.Title, v.Passwords = OneLine(m.Exposure.Title), m.Exposure.Severity == domain.SeverityCritical
		if m.Exposure.Domain != nil {
			v.Domain = OneLine(*m.Exposure.Domain)
		}
		if m.Exposure.BreachOn != nil {
			v.Date = longDate(m.Language, *m.Exposure.BreachOn)
		}
		l.Points = dataClasses(m.Language, m.Exposure.DataClasses)
	case domain.MonthlyReportMail:
		v.Date = longMonth(m.Language, m.MonthOf)
	default:
		return v, fmt.Errorf("mails of type %q have no texts", m.Type)
	}
	return v, nil
}

// fullName returns the user's name, or the address of a user without one.
func fullName(m domain.Mail) string {
	if name := OneLine(m.FullName); name != "" {
		return name
	}
	return m.To
}

// words renders the texts of one language with values. err is the first error.
type words struct {
	t      *template.Template
	values values
	err    error
}

// render returns the text of a template without white space around it.
func (w *words) render(name string) string {
	var text strings.Builder
	if err := w.t.ExecuteTemplate(&text, name, w.values); err != nil && w.err == nil {
		w.err = err
	}
	return strings.TrimSpace(text.String())
}

// paragraphs returns the paragraphs of a text; nil if there is no such text.
func (w *words) paragraphs(name string) []string {
	if w.t.Lookup(name) == nil {
		return nil
	}
	return strings.Split(w.render(name), "\n\n")
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

// dataClasses returns the labels of data classes in a language; a class without a label keeps its name.
func dataClasses(language domain.Language, classes []string) []string {
	texts := make([]string, len(classes))
	for i, class := range classes {
		texts[i] = OneLine(class)
		if text, ok := lists.DataClasses[language][strings.ToLower(texts[i])]; ok {
			texts[i] = text
		}
	}
	return texts
}
