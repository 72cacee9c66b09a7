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

// Composer writes simulated emails. It is safe for concurrent use.
type Composer struct {
	public string // the public URL without trailing slashes
	tokens Tokens
}

// NewComposer returns a composer whose links start with the public URL.
func NewComposer(publicURL string, tokens Tokens) *Composer {
	return &Composer{public: strings.TrimRight(publicURL, "/"), tokens: tokens}
}

// Placeholders are the names that a template may have in double braces: link is the tracked URL, qr_code the URL of a
// picture of it for an img in the HTML, date, month and year are of the sending (UTC), and the others are data of the
// reader.
var Placeholders = []string{
	"first_name", "last_name", "email", "job_title", "company", "link", qrPlaceholder, "date", "month", "year",
}

// Check returns an error if no email can be written from a template and tracked, or its page could not explain it.
func Check(t domain.Template) error {
	_, err := Inspect(t)
	return err
}

// Inspect checks a template (see Check), and returns what Compose will replace and omit.
func Inspect(t domain.Template) (Findings, error) {
	if _, err := t.Sender(); err != nil {
		return Findings{}, err
	}
	if len(t.Indicators) == 0 {
		return Findings{}, errors.New("has no indicators, so its page could not tell what gave it away")
	}
	const page = "https://page.invalid/t/x"
	values := map[string]string{}
	for _, name := range Placeholders {
		values[name] = "{{" + name + "}}" // so that the findings have the placeholders
	}
	link := values["link"]
	values["link"] = page
	_, found, err := track(expand(t.HTML, values, html.EscapeString), page, footer(page, "x"))
	for _, a := range addresses(t.Text) {
		add(&found.Replaced, t.Text[a.start:a.end])
	}
	for i := range found.Replaced {
		found.Replaced[i] = strings.ReplaceAll(found.Replaced[i], page, link)
	}
	return found, err
}

// Compose writes a simulated email, dated now. Every link of the HTML and every web address of the text becomes the URL
// of the email's page. It adds a link that reports the email, if s.ReportLink is true, and, to the HTML, a picture that
// records its opening (see track). The error is a *mail.RefusedError if the sender is invalid or the HTML cannot be
// tracked.
func (c *Composer) Compose(s domain.Simulation, now time.Time) (mail.Message, error) {
	page := c.public + "/t/" + c.tokens.Token(s.Result)
	values := placeholders(s, page, now)
	from, err := sender(s.Template, values)
	if err != nil {
		return mail.Message{}, &mail.RefusedError{Reason: err.Error()}
	}
	words := ""
	if s.ReportLink {
		words = textsByLanguage[s.Template.Language].Report
	}
	body, _, err := track(expand(s.Template.HTML, values, html.EscapeString), page, footer(page, words))
	if err != nil {
		return mail.Message{}, &mail.RefusedError{Reason: "the template " + err.Error()}
	}
	files, err := pictures(s.Template.HTML, page)
	if err != nil {
		return mail.Message{}, err
	}
	text := rewriteText(expand(s.Template.Text, values, mail.OneLine), page)
	if words != "" {
		text += "\n\n" + words + ": " + reportURL(page) + "\n"
	}
	return mail.Message{
		ID: s.Result.UUID(), From: from, To: s.Email, Subject: expand(s.Template.Subject, values, mail.OneLine),
		Text: text, HTML: body, Files: files, Headers: map[string]string{HeaderName: c.tokens.Header(s.Client)},
		Language: s.Template.Language, At: now,
	}, nil
}

// reportURL and pictureURL return the URLs with which an email is reported and its opening is recorded.
func reportURL(page string) string  { return page + "/report" }
func pictureURL(page string) string { return page + "/open.gif" }

// footer returns the HTML that is added to an email: the link that reports it, unless words is empty, and the picture.
func footer(page, words string) string {
	link := ""
	if words != "" {
		link = fmt.Sprintf("<p style=\"font-size:11px\"><a href=\"%s\">%s</a></p>\n",
			html.EscapeString(reportURL(page)), html.EscapeString(words))
	}
	return link + fmt.Sprintf("<img src=\"%s\" width=\"1\" height=\"1\" alt=\"\">\n", html.EscapeString(pictureURL(page)))
}

// sender returns the sender of an email, with the placeholders in its name replaced.
func sender(t domain.Template, values map[string]string) (netmail.Address, error) {
	from, err := t.Sender()
	from.Name = expand(from.Name, values, mail.OneLine)
	return from, err
}

// placeholders returns the values of Placeholders for an email with the URL of its page, sent at now.
func placeholders(s domain.Simulation, page string, now time.Time) map[string]string {
	now = now.UTC()
	return map[string]string{
		"first_name": s.FirstName, "last_name": s.LastName, "email": s.Email, "job_title": s.JobTitle,
		"company": s.ClientName, "link": page, qrPlaceholder: mail.InlineURL(qrFile),
		"date": mail.LongDate(s.Template.Language, domain.DateOf(now)), "month": mail.Month(s.Template.Language, now.Month()),
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

// Simulations writes the simulated emails.
type Simulations struct {
	db       *db.DB
	composer *Composer
}

// NewSimulations returns a Simulations that reads from a database.
func NewSimulations(d *db.DB, composer *Composer) *Simulations { return &Simulations{d, composer} }

// Write returns the simulated email of a lease or, if it is not to be sent any more, a draft with only the reason.
func (w *Simulations) Write(ctx context.Context, l outbox.Lease) (mail.Draft, error) {
	s, err := w.db.Simulation(ctx, l.ResultID())
	if err != nil || s.Unwanted != "" {
		return mail.Draft{Unwanted: s.Unwanted}, err
	}
	message, err := w.composer.Compose(s, w.db.Now())
	return mail.Draft{Message: message, User: &s.User, Due: s.SendAt}, err
}
