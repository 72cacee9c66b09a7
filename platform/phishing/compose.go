package phishing

import (
	"errors"
	"fmt"
	"html"
	netmail "net/mail"
	"regexp"
	"strconv"
	"strings"
	"time"

	"partnerapi/domain"
	"partnerapi/platform/mail"
)

// Composer writes simulated mails. It is safe for concurrent use.
type Composer struct {
	public string // without a slash at its end
	tokens Tokens
}

// NewComposer returns a composer whose links begin with the public URL.
func NewComposer(publicURL string, tokens Tokens) *Composer {
	return &Composer{public: strings.TrimRight(publicURL, "/"), tokens: tokens}
}

// Placeholders are what a template may hold in double braces: link is the
// address of the tracked link, the day is that of the sending (UTC), and the
// rest is the reader's.
var Placeholders = []string{"first_name", "last_name", "email", "company", "link", "date", "month", "year"}

// reportWords are the words of the link by which a mail is reported.
var reportWords = map[domain.Language]string{
	domain.English: "Report this message", domain.Spanish: "Denunciar este mensaje", domain.French: "Signaler ce message",
}

var bodyEnd = regexp.MustCompile(`(?i)</body\s*>`)

// Check says why no mail can be written from a template, or why its page could
// not explain what gave the mail away; nil where there is no reason.
func Check(t domain.Template) error {
	if _, err := t.Sender(); err != nil {
		return err
	}
	if _, ok := firstLink(t.HTML); !ok {
		return errors.New("has no link in its html")
	}
	if len(t.Indicators) == 0 {
		return errors.New("has no indicators, so its page could not tell what gave it away")
	}
	return nil
}

// Compose writes a simulated mail as of now. The first link of its HTML leads
// to the mail's page, and so does whatever names the same address in the text;
// a link for reporting the mail and a picture that reports its opening follow.
func (c *Composer) Compose(s domain.Simulation, now time.Time) (mail.Message, error) {
	page := c.public + "/t/" + c.tokens.For(s.Result)
	values := placeholders(s, page, now)
	from, err := sender(s.Template, values)
	if err != nil {
		return mail.Message{}, &mail.RefusedError{Reason: err.Error()}
	}
	body, text := rewriteLinks(s.Template.HTML, s.Template.Text, page)
	report := page + "/report"
	words := reportWords[s.Template.Language]
	footer := fmt.Sprintf("<p style=\"font-size:11px\"><a href=\"%s\">%s</a></p>\n<img src=\"%s\" width=\"1\" "+
		"height=\"1\" alt=\"\">\n",
		html.EscapeString(report), html.EscapeString(words), html.EscapeString(page+"/open.gif"))
	body = expand(body, values, html.EscapeString)
	end := len(body)
	if ends := bodyEnd.FindAllStringIndex(body, -1); ends != nil {
		end = ends[len(ends)-1][0]
	}
	body = body[:end] + footer + body[end:]
	return mail.Message{
		ID: s.Result.UUID(), From: from, To: s.Email, Subject: expand(s.Template.Subject, values, mail.OneLine),
		Text: expand(text, values, mail.OneLine) + "\n\n" + words + ": " + report + "\n", HTML: body,
		Language: s.Template.Language, At: now,
	}, nil
}

// sender is whom a mail comes from, with the values in the name.
func sender(t domain.Template, values map[string]string) (netmail.Address, error) {
	from, err := t.Sender()
	from.Name = expand(from.Name, values, mail.OneLine)
	return from, err
}

func placeholders(s domain.Simulation, page string, now time.Time) map[string]string {
	now = now.UTC()
	return map[string]string{
		"first_name": s.FirstName, "last_name": s.LastName, "email": s.Email, "company": s.ClientName, "link": page,
		"date": now.Format(time.DateOnly), "month": mail.Month(s.Template.Language, now.Month()),
		"year": strconv.Itoa(now.Year()),
	}
}

var placeholder = regexp.MustCompile(`\{\{\s*([a-z_]+)\s*\}\}`)

// expand puts values in the place of a text's placeholders, each made safe for
// where it goes. What is no placeholder stays.
func expand(text string, values map[string]string, safe func(string) string) string {
	return placeholder.ReplaceAllStringFunc(text, func(found string) string {
		value, ok := values[placeholder.FindStringSubmatch(found)[1]]
		if !ok {
			return found
		}
		return safe(value)
	})
}
