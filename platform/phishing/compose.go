package phishing

import (
	"context"
	"errors"
	"fmt"
	"html"
	netmail "net/mail"
	"regexp"
	"strconv"
	"strings"
	"time"

	"partnerapi/db"
	"partnerapi/db/outbox"
	"partnerapi/domain"
	"partnerapi/platform/mail"
)

// Composer writes simulated mails. It is safe for concurrent use.
type Composer struct {
	public string // the public URL without trailing slashes
	tokens Tokens
}

// NewComposer returns a composer whose links start with the public URL.
func NewComposer(publicURL string, tokens Tokens) *Composer {
	return &Composer{public: strings.TrimRight(publicURL, "/"), tokens: tokens}
}

// Placeholders are the names that a template may have in double braces: link is the URL of the tracked link, date,
// month and year are of the sending (UTC), and the others are data of the reader.
var Placeholders = []string{"first_name", "last_name", "email", "company", "link", "date", "month", "year"}

// bodyEnd matches the end tag before which Compose inserts the footer.
var bodyEnd = regexp.MustCompile(`(?i)</body\s*>`)

// Check returns an error if a template has an invalid sender, no link in its HTML, or no indicators for its page.
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

// Compose writes a simulated mail, dated now. It replaces the address of the first link of the HTML, also in the text,
// with that of the mail's page. It adds a link that reports the mail and, to the HTML, a picture that records its
// opening: before the last </body>, or at the end. The error is a *mail.RefusedError if the sender is invalid.
func (c *Composer) Compose(s domain.Simulation, now time.Time) (mail.Message, error) {
	page := c.public + "/t/" + c.tokens.Token(s.Result)
	values := placeholders(s, page, now)
	from, err := sender(s.Template, values)
	if err != nil {
		return mail.Message{}, &mail.RefusedError{Reason: err.Error()}
	}
	body, text := rewriteLinks(s.Template.HTML, s.Template.Text, page)
	report := page + "/report"
	words := textsByLanguage[s.Template.Language].Report
	footer := fmt.Sprintf("<p style=\"font-size:11px\"><a href=\"%s\">%s</a></p>\n<img src=\"%s\" width=\"1\" "+
		"height=\"1\" alt=\"\">\n",
		html.EscapeString(report), html.EscapeString(words), html.EscapeString(page+"/open.gif"))
	body = expand(body, values, html.EscapeString)
	end := len(body)
	if matches := bodyEnd.FindAllStringIndex(body, -1); matches != nil {
		end = matches[len(matches)-1][0]
	}
	body = body[:end] + footer + body[end:]
	return mail.Message{
		ID: s.Result.UUID(), From: from, To: s.Email, Subject: expand(s.Template.Subject, values, mail.OneLine),
		Text: expand(text, values, mail.OneLine) + "\n\n" + words + ": " + report + "\n", HTML: body,
		Language: s.Template.Language, At: now,
	}, nil
}

// sender returns the sender of a mail, with the placeholders in its name replaced.
func sender(t domain.Template, values map[string]string) (netmail.Address, error) {
	from, err := t.Sender()
	from.Name = expand(from.Name, values, mail.OneLine)
	return from, err
}

// placeholders returns the values of Placeholders for a mail with the URL of its page, sent at now.
func placeholders(s domain.Simulation, page string, now time.Time) map[string]string {
	now = now.UTC()
	return map[string]string{
		"first_name": s.FirstName, "last_name": s.LastName, "email": s.Email, "company": s.ClientName, "link": page,
		"date": now.Format(time.DateOnly), "month": mail.Month(s.Template.Language, now.Month()),
		"year": strconv.Itoa(now.Year()),
	}
}

var placeholder = regexp.MustCompile(`\{\{\s*([a-z_]+)\s*\}\}`)

// expand replaces the placeholders of a text with values, each escaped by escape. Unknown placeholders stay.
func expand(text string, values map[string]string, escape func(string) string) string {
	return placeholder.ReplaceAllStringFunc(text, func(found string) string {
		value, ok := values[placeholder.FindStringSubmatch(found)[1]]
		if !ok {
			return found
		}
		return escape(value)
	})
}

// Simulations writes the simulated mails.
type Simulations struct {
	db       *db.DB
	composer *Composer
}

// NewSimulations returns a Simulations that reads from a database.
func NewSimulations(d *db.DB, composer *Composer) *Simulations { return &Simulations{d, composer} }

// Write returns the simulated mail of a lease or, if it is not to be sent any more, a draft with only the reason.
func (w *Simulations) Write(ctx context.Context, l outbox.Lease) (mail.Draft, error) {
	s, err := w.db.Simulation(ctx, l.ResultID())
	if err != nil || s.Unwanted != "" {
		return mail.Draft{Unwanted: s.Unwanted}, err
	}
	message, err := w.composer.Compose(s, w.db.Now())
	return mail.Draft{Message: message, User: &s.User, Due: s.SendAt}, err
}
