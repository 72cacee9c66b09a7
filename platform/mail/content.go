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

// mailContent returns the content of a mail to a user. It returns an error if there are no texts in the mail's
// language, or for its type.
func (c *Composer) mailContent(m domain.Mail) (content, error) {
	parts := content{Lang: m.Language.Tag()}
	v, err := c.fillValues(m, &parts)
	if err != nil {
		return parts, err
	}
	templates, ok := c.words[m.Language]
	if !ok {
		return parts, fmt.Errorf("there are no words in %q", m.Language)
	}

	r := renderer{templates: templates, values: v}
	kind := string(m.Type)
	parts.Greeting, parts.Fallback, parts.Closing = r.render("greeting"), r.render("fallback"), r.render("closing")
	parts.Subject = r.render(kind + ".subject")
	parts.Paragraphs, parts.After = r.paragraphs(kind+".body"), r.paragraphs(kind+".after")
	if parts.Link != "" {
		parts.Action = r.render(kind + ".action")
	}
	if len(parts.Points) > 0 {
		parts.PointsHeading = r.render(kind + ".points")
	}
	if m.Type == domain.CertificateMail {
		parts.Certificate = &certificate{
			Heading: r.render(kind + ".heading"), Presented: r.render(kind + ".presented"),
			Name:      cmp.Or(Quote(m.FullName), m.To), // a user may have no name
			Completed: r.render(kind + ".completed"), Course: v.Title, On: r.render(kind + ".on"),
			Client: v.Client, Partner: v.Partner,
		}
	}
	return parts, r.err
}

// noticeContent returns the content of a mail to a partner, in English. In its texts it replaces domain.PublicURL by
// the public URL.
func (c *Composer) noticeContent(m outbox.NoticeMail) (content, error) {
	r := renderer{templates: c.words[domain.English], values: values{Partner: Quote(m.PartnerName)}}
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
	return parts, r.err
}

// fillValues returns the variables of a mail's texts. It sets parts.Link and parts.Points for the types of mail that
// have them, and returns an error for an unknown type.
func (c *Composer) fillValues(m domain.Mail, parts *content) (values, error) {
	v := values{Name: Quote(m.Name), Address: m.To, Client: Quote(m.ClientName), Partner: Quote(m.PartnerName),
		Role: string(m.InviteRole)}
	switch m.Type {
	case domain.WelcomeMail:
		parts.Link = c.Link("/training")
	case domain.AdminInviteMail:
		v.Date, parts.Link = longDate(m.Language, domain.DateOf(m.ExpiresAt)), c.Link("/invites/"+m.Invite.String())
	case domain.TrainingInvite:
		v.Title, v.Date, parts.Link = Quote(m.CourseTitle), longDate(m.Language, m.DueOn),
			c.Link("/training/"+m.Course.String())
	case domain.TrainingReminder:
		parts.Link = c.Link("/training")
		for _, o := range m.Overdue {
			parts.Points = append(parts.Points, Quote(o.Title)+", "+longDate(m.Language, o.DueOn))
		}
	case domain.PolicyReminder:
		v.Title, parts.Link = Quote(m.PolicyTitle), c.Link("/policies/"+m.Policy.String())
	case domain.CertificateMail:
		v.Title, v.Date, parts.Link = Quote(m.CourseTitle), longDate(m.Language, m.CompletedOn), c.Link("/training")
	case domain.PhishReminder:
		s := m.Simulated
		v.Title, v.From, v.Date, parts.Link = Quote(s.Subject), Quote(s.From), longDate(m.Language, s.SentOn),
			c.Link("/training")
		parts.Points = Clues(m.Language, s.Clues)
	case domain.ExposureNotice: // a critical exposure is of passwords or the like
		v.Title, v.Passwords = Quote(m.Exposure.Title), m.Exposure.Severity == domain.SeverityCritical
		v.Domain = Quote(domain.OrZero(m.Exposure.Domain))
		if m.Exposure.BreachOn != nil {
			v.Date = longDate(m.Language, *m.Exposure.BreachOn)
		}
		parts.Points = dataClasses(m.Language, m.Exposure.DataClasses)
	case domain.MonthlyReportMail:
		v.Date = longMonth(m.Language, m.MonthOf)
	default:
		return v, fmt.Errorf("mails of type %q have no texts", m.Type)
	}
	return v, nil
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

// paragraphs returns the paragraphs of a text; nil if there is no such text.
func (r *renderer) paragraphs(name string) []string {
	if r.templates.Lookup(name) == nil {
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

// dataClasses returns the labels of data classes in a language; a class without a label keeps its name.
func dataClasses(language domain.Language, classes []string) []string {
	texts := make([]string, len(classes))
	for i, class := range classes {
		texts[i] = Quote(class)
		if text, ok := lists.DataClasses[language][strings.ToLower(texts[i])]; ok {
			texts[i] = text
		}
	}
	return texts
}
