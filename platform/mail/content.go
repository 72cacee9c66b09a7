package mail

import (
	"errors"
	"fmt"
	"strings"
	"text/template"

	"partnerapi/domain"
)

// values are what the words speak of.
type values struct {
	Name, Address, Client, Partner, Role, Title, Until, From, Domain string
	// Passwords says that an exposure is of passwords, or of what serves as one.
	Passwords bool
}

// content is a mail before it is text or HTML. What it lacks is left out.
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

// certificate says who completed which course.
type certificate struct {
	Heading, Presented, Name, Completed, Course, On string
	Client, Partner                                 string
}

// content writes what a mail says.
func (c *Composer) content(m domain.Mail) (content, error) {
	l := content{Lang: m.Language.Tag()}
	v, err := c.about(m, &l)
	if err != nil {
		return l, err
	}
	t, known := c.words[m.Language]
	if !known {
		return l, fmt.Errorf("there are no words in %q", m.Language)
	}

	w := words{t: t, values: v}
	kind := string(m.Type)
	l.Greeting, l.Fallback, l.Closing = w.say("greeting"), w.say("fallback"), w.say("closing")
	l.Subject, l.Paragraphs, l.After = w.say(kind+".subject"), w.paragraphs(kind+".body"), w.paragraphs(kind+".after")
	if l.Link != "" {
		l.Action = w.say(kind + ".action")
	}
	if len(l.Points) > 0 {
		l.PointsHeading = w.say(kind + ".points")
	}
	if m.Type == domain.CertificateMail {
		l.Certificate = &certificate{
			Heading: w.say(kind + ".heading"), Presented: w.say(kind + ".presented"), Name: fullName(m),
			Completed: w.say(kind + ".completed"), Course: v.Title, On: w.say(kind + ".on"),
			Client: v.Client, Partner: v.Partner,
		}
	}
	return l, w.err
}

// about says what a mail is about: the values of its words, and its link and its
// list, where it has them.
func (c *Composer) about(m domain.Mail, l *content) (values, error) {
	v := values{Name: OneLine(m.Name), Address: m.To, Client: OneLine(m.ClientName), Partner: OneLine(m.PartnerName),
		Role: string(m.InviteRole)}
	switch m.Type {
	case domain.WelcomeMail:
		l.Link = c.Link("/training")
	case domain.AdminInviteMail:
		v.Until, l.Link = longDate(m.Language, domain.DateOf(m.ExpiresAt)), c.Link("/invites/"+m.Invite.String())
	case domain.TrainingInvite:
		v.Title, v.Until, l.Link = OneLine(m.CourseTitle), longDate(m.Language, m.DueOn),
			c.Link("/training/"+m.Course.String())
	case domain.TrainingReminder:
		l.Link = c.Link("/training")
		for _, o := range m.Overdue {
			l.Points = append(l.Points, OneLine(o.Title)+", "+longDate(m.Language, o.DueOn))
		}
	case domain.PolicyReminder:
		v.Title, l.Link = OneLine(m.PolicyTitle), c.Link("/policies/"+m.Policy.String())
	case domain.CertificateMail:
		v.Title, v.Until, l.Link = OneLine(m.CourseTitle), longDate(m.Language, m.CompletedOn), c.Link("/training")
	case domain.PhishReminder:
		s := m.Simulated
		v.Title, v.From, v.Until, l.Link = OneLine(s.Subject), OneLine(s.From), longDate(m.Language, s.SentOn),
			c.Link("/training")
		l.Points = Clues(m.Language, s.Clues)
	case domain.ExposureNotice:
		v.Title, v.Passwords = OneLine(m.Exposure.Title), m.Exposure.Severity == domain.SeverityCritical
		if m.Exposure.Domain != nil {
			v.Domain = OneLine(*m.Exposure.Domain)
		}
		if m.Exposure.BreachOn != nil {
			v.Until = longDate(m.Language, *m.Exposure.BreachOn)
		}
		l.Points = dataClasses(m.Language, m.Exposure.DataClasses)
	case domain.MonthlyReportMail:
		v.Until = longMonth(m.Language, m.MonthOf)
	default:
		return v, errors.New("there are no words for it")
	}
	return v, nil
}

// fullName is the user's name, or the address of a user without one.
func fullName(m domain.Mail) string {
	if name := OneLine(m.FullName); name != "" {
		return name
	}
	return m.To
}

// words are those of one language, about some values. The first error is kept.
type words struct {
	t      *template.Template
	values values
	err    error
}

// say is a text of the language.
func (w *words) say(name string) string {
	var text strings.Builder
	if err := w.t.ExecuteTemplate(&text, name, w.values); err != nil && w.err == nil {
		w.err = err
	}
	return strings.TrimSpace(text.String())
}

// paragraphs are those of a text; none of one that the language lacks.
func (w *words) paragraphs(name string) []string {
	if w.t.Lookup(name) == nil {
		return nil
	}
	return strings.Split(w.say(name), "\n\n")
}
