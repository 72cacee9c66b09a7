package mail

import (
	"cmp"
	"embed"
	"errors"
	"fmt"
	htmltemplate "html/template"
	netmail "net/mail"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"text/template"
	"time"
	"unicode"

	"golang.org/x/text/unicode/bidi"

	"partnerapi/db/outbox"
	"partnerapi/domain"
)

//go:embed words
var textFiles embed.FS

// Composer writes the emails that operations request. It is safe for concurrent use.
type Composer struct {
	public string // the public URL without trailing slashes
	from   netmail.Address
	// Senders are the domains that the sender addresses of brands may have. An address of another domain, as after the
	// operator has removed one, is not used.
	Senders domain.MailDomains
	// Learning is the learning platform, to which the links of emails to users lead. Nil means the pages of this service
	// (LearningPages).
	Learning *url.URL

	words map[domain.Language]*template.Template // the texts of emails
	text  *template.Template
	html  *htmltemplate.Template
}

// PublicURL parses the public URL of a service, to which paths can be appended: http or https with a host, and without
// a user, a query or a fragment. Errors contain no password.
func PublicURL(text string) (*url.URL, error) {
	u, err := url.Parse(text)
	switch {
	case err == nil && u.User != nil:
		return nil, errors.New("the URL contains a user or a password, which everyone who receives a link could read; " +
			"remove them")
	case err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" || u.RawQuery != "" ||
		u.Fragment != "":
		name := "it"
		if !strings.Contains(text, "@") { // otherwise the text may contain a password
			name = strconv.Quote(text)
		}
		return nil, errors.New(name + " is not a URL such as https://training.example.com")
	}
	return u, nil
}

// NewComposer returns a composer whose links start with the public URL. from is the sender's address, optionally
// with a name; empty means no-reply at the public URL's host.
func NewComposer(publicURL, from string) (*Composer, error) {
	public, err := PublicURL(publicURL)
	if err != nil {
		return nil, fmt.Errorf("the public URL: %w", err)
	}
	if from == "" {
		from = "no-reply@" + senderHost(public.Hostname())
	}

	address, err := netmail.ParseAddress(from)
	if err == nil {
		err = encodeDomain(&netmail.Address{Address: address.Address}) // only a check: toWire encodes it
	}
	if err != nil {
		return nil, fmt.Errorf("the sender %q is not an address: %w", from, err)
	}
	c := &Composer{public: strings.TrimRight(publicURL, "/"), from: *address,
		words: words()}
	if c.text, err = template.ParseFS(textFiles, "words/layout.txt.tmpl"); err != nil {
		return nil, err
	}
	c.html, err = htmltemplate.ParseFS(textFiles, "words/layout.html.tmpl")
	return c, err
}

// words returns the texts of emails and pages by language.
var words = sync.OnceValue(func() map[domain.Language]*template.Template {
	all := map[domain.Language]*template.Template{}
	for _, language := range domain.Language("").Values() {
		all[domain.Language(language)] = template.Must(template.ParseFS(textFiles, "words/"+language+".tmpl"))
	}
	return all
})

// senderHost returns the email domain of the service's host: localhost for an IP address, which only trials use.
func senderHost(host string) string {
	if _, err := netip.ParseAddr(host); err == nil {
		return "localhost"
	}
	return host
}

// Link returns the public URL of a path, which starts with a slash.
func (c *Composer) Link(path string) string { return c.public + path }

// LinkTo returns the URL of a link: on the learning platform or, without one, on this service.
func (c *Composer) LinkTo(l domain.MailLink) string {
	if c.Learning == nil {
		return c.Link(l.Path())
	}
	return l.On(c.Learning)
}

// Compose writes an email to a user in the user's language. now is its date.
func (c *Composer) Compose(m domain.Mail, now time.Time) (Message, error) {
	parts, err := c.mailContent(m)
	if err != nil {
		return Message{}, fmt.Errorf("write an email of type %s: %w", m.Type, err)
	}
	return c.layOut(parts, m.Brand, Message{ID: m.ID.UUID(), To: m.To, Language: m.Language, At: now})
}

// ComposeNotice writes an email to an admin of a partner. now is its date. If the brand has no name, the email shows
// domain.ServiceName, also as the sender's name.
func (c *Composer) ComposeNotice(id domain.MessageID, m outbox.NoticeMail, now time.Time) (Message, error) {
	m.Brand.DisplayName = cmp.Or(m.Brand.DisplayName, domain.ServiceName)
	parts, err := c.noticeContent(m)
	if err != nil {
		return Message{}, fmt.Errorf("write an email to a partner: %w", err)
	}
	return c.layOut(parts, m.Brand, Message{ID: id.UUID(), To: m.Recipient, Language: domain.English, At: now})
}

// layOut completes a message with the sender and the logo of its brand, its subject and its texts, plain and HTML, and
// marks it as automatic.
func (c *Composer) layOut(parts content, brand domain.Brand, out Message) (Message, error) {
	out.From, out.ReplyTo, out.Subject, out.Automatic = c.sender(brand), brand.ReplyTo, parts.Subject, true
	if out.Certificate = parts.Certificate; out.Certificate != nil {
		out.Certificate.At = out.At
	}
	if parts.Header.HasLogo() {
		out.Files = append(out.Files, parts.Header.Logo)
	}
	var text, html strings.Builder
	if err := c.text.Execute(&text, parts); err != nil {
		return Message{}, fmt.Errorf("lay out an email: %w", err)
	}
	if err := c.html.Execute(&html, parts); err != nil {
		return Message{}, fmt.Errorf("lay out an email: %w", err)
	}
	out.Text, out.HTML = text.String(), html.String()
	return out, nil
}

// Quote returns a name or a title, which others wrote, for a sentence of an email: on one line, without the scheme of a
// link, which readers' programs would make clickable, and isolated if its characters could reverse the text around it
// (U+2068 and U+2069, Unicode Standard Annex 9).
func Quote(text string) string {
	text = strings.Map(func(r rune) rune {
		if unicode.In(r, isolates) {
			return -1 // one of them could end the isolation
		}
		return r
	}, OneLine(text))
	text = strings.ReplaceAll(text, "://", ": //")
	if strings.ContainsFunc(text, reverses) {
		return "\u2068" + text + "\u2069"
	}
	return text
}

// isolates are the characters that begin and end isolated text.
var isolates = &unicode.RangeTable{R16: []unicode.Range16{{Lo: 0x2066, Hi: 0x2069, Stride: 1}}}

// reverses reports whether a character may be shown from right to left, or makes others so.
func reverses(r rune) bool {
	properties, _ := bidi.LookupRune(r)
	switch properties.Class() {
	case bidi.R, bidi.AL, bidi.AN, bidi.RLE, bidi.RLO, bidi.LRE, bidi.LRO, bidi.PDF:
		return true
	}
	return r == '\u200f'
}

// OneLine returns a text on one line, so that it can end neither a header nor a paragraph.
func OneLine(text string) string {
	return strings.Join(strings.FieldsFunc(text,
		func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) }), " ")
}

var months = map[domain.Language][12]string{
	domain.Spanish: {"enero", "febrero", "marzo", "abril", "mayo", "junio", "julio", "agosto", "septiembre", "octubre",
		"noviembre", "diciembre"},
	domain.French: {"janvier", "février", "mars", "avril", "mai", "juin", "juillet", "août", "septembre", "octobre",
		"novembre", "décembre"},
}

// Month returns the name of a month as written within a sentence of the language.
func Month(language domain.Language, m time.Month) string {
	if names, ok := months[language]; ok {
		return names[m-1]
	}
	return m.String()
}

// LongDate formats a day with the month's name, as a sentence of the language contains it.
func LongDate(language domain.Language, day domain.Date) string {
	t := day.Time()
	name := Month(language, t.Month())
	switch language {
	case domain.Spanish:
		return fmt.Sprintf("%d de %s de %d", t.Day(), name, t.Year())
	case domain.French:
		if t.Day() == 1 {
			return fmt.Sprintf("1er %s %d", name, t.Year())
		}
	}
	return fmt.Sprintf("%d %s %d", t.Day(), name, t.Year())
}

// longMonth formats the month of a day, as a sentence of the language contains it.
func longMonth(language domain.Language, day domain.Date) string {
	t := day.Time()
	if language == domain.Spanish {
		return fmt.Sprintf("%s de %d", Month(language, t.Month()), t.Year())
	}
	return fmt.Sprintf("%s %d", Month(language, t.Month()), t.Year())
}
