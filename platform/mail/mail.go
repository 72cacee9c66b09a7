// Package mail sends the service's mail: it writes what was asked for in the
// language of its reader, and hands it to a mail server, or to files where no
// server is configured. The worker does so in the background, once for each
// request.
package mail

import (
	"context"
	"fmt"
	netmail "net/mail"
	"strings"
	"time"

	gomail "github.com/wneessen/go-mail"

	"partnerapi/domain"
)

// Message is a mail as it goes out: a text and the same as HTML.
type Message struct {
	// ID is the message's own, the same at each try: it becomes the Message-ID,
	// by which receivers know a repetition, and names the file. Letters, digits
	// and dashes.
	ID       string
	From, To netmail.Address
	Subject  string
	Text     string
	HTML     string
	Language domain.Language
	At       time.Time
	// Automatic marks mail that no one should answer automatically.
	Automatic bool
}

// Sender is a way out for mail. It is safe for concurrent use.
type Sender interface {
	// Send hands over a message and returns once it was taken. The error is a
	// *Refused where another try is of no use; any other is temporary. The end
	// of ctx keeps a message from being begun, not one from being finished.
	Send(ctx context.Context, m Message) error
	// Close ends what is kept open for further messages.
	Close() error
}

// Open opens the server at an SMTP URL (NewSMTP), or the folder of files where
// the URL is empty.
func Open(url, outbox string) (Sender, error) {
	if url == "" {
		return NewOutbox(outbox)
	}
	return NewSMTP(url)
}

// Refused says that a message will never be taken: its address does not exist,
// or what it holds is not wanted.
type Refused struct{ Reason string }

// Error says why.
func (r *Refused) Error() string { return "refused for good: " + r.Reason }

// languageTags are the languages as mail headers and HTML write them.
var languageTags = map[domain.Language]string{domain.English: "en", domain.Spanish: "es", domain.French: "fr-CA"}

// format makes the message ready for the wire. One that cannot be is refused.
func (m Message) format() (*gomail.Msg, error) {
	out := gomail.NewMsg(gomail.WithNoDefaultUserAgent())
	out.FromMailAddress(&m.From)
	out.ToMailAddress(&m.To)
	if _, err := netmail.ParseAddress(m.To.String()); err != nil {
		return nil, &Refused{Reason: fmt.Sprintf("the address cannot be written to: %v", err)}
	}
	out.Subject(m.Subject)
	out.SetDateWithValue(m.At)
	out.SetMessageIDWithValue(m.ID + "@" + domainOf(m.From.Address))
	out.SetGenHeader(gomail.HeaderContentLang, languageTags[m.Language])
	if m.Automatic {
		out.SetGenHeader("Auto-Submitted", "auto-generated")
	}
	out.SetBodyString(gomail.TypeTextPlain, m.Text)
	out.AddAlternativeString(gomail.TypeTextHTML, m.HTML)
	return out, nil
}

func domainOf(address string) string { return address[strings.LastIndexByte(address, '@')+1:] }
