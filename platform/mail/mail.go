// Package mail sends the service's email: a Dispatcher claims each requested email from the outbox, writes it in the
// language of its recipient, and delivers it to a mail server, or to a file if no server is configured.
package mail

import (
	"context"
	"errors"
	netmail "net/mail"
	"time"

	"partnerapi/domain"
)

// Message is an email to send, in text and HTML.
type Message struct {
	// ID identifies the message, and is the same at each attempt. The Message-ID, by which receivers detect duplicates,
	// and the name of the file contain it. It consists of letters, digits and dashes.
	ID   string
	From netmail.Address
	// ReplyTo is the address that receives replies, without a name; empty means From.
	ReplyTo string
	// To is the recipient's address without a name, and with quotes around a local part that needs them.
	To       string
	Subject  string
	Text     string
	HTML     string
	Language domain.Language
	At       time.Time
	// Automatic sets the header Auto-Submitted, so that the data has no automatic replies.
	Automatic bool
	// Headers are further header fields. Names and values are in ASCII and of one line.
	Headers map[string]string
	Files   []File
	// Certificate is the certificate that the message shows; nil for none. Requests attaches it as a file.
	Certificate *domain.Certificate
}

// File is an attachment, or an image of the HTML.
type File struct {
	Name string // in ASCII, without a slash
	Type string // such as application/pdf
	Data []byte
	// Inline means that the HTML shows the file, as cid:, its name and @inline. Without it, the file is an attachment.
	Inline bool
}

// Sender delivers email. It is safe for concurrent use.
type Sender interface {
	// Send delivers a message and returns when it was accepted. The error is a *RefusedError if the message will never
	// be accepted, ErrNotStarted if the delivery did not begin because ctx ended or left too little time, and a
	// *MaybeSentError if the message may have been accepted; any other error is temporary. A delivery that has begun
	// ends before ctx's deadline, and does not stop when ctx is cancelled.
	Send(ctx context.Context, m Message) error
	// Close closes idle connections.
	Close() error
}

// Open returns the sender for an SMTP URL (see NewSMTP) or, if the URL is empty, an Outbox in the folder outbox.
func Open(url, outbox string) (Sender, error) {
	if url == "" {
		return NewOutbox(outbox)
	}
	return NewSMTP(url)
}

// RefusedError means that a message will never be accepted: its address does not exist, or its content is refused.
type RefusedError struct{ Reason string }

func (e *RefusedError) Error() string { return "refused for good: " + e.Reason }

// MaybeSentError means that a message may have been accepted although its delivery failed, for example because the
// server received all of it and did not answer.
type MaybeSentError struct{ Err error }

func (e *MaybeSentError) Error() string { return e.Err.Error() }

func (e *MaybeSentError) Unwrap() error { return e.Err }

// ErrNotStarted means that a delivery did not begin, because too little time was left; it is not an attempt.
var ErrNotStarted = errors.New("too little time was left to begin sending the message")
