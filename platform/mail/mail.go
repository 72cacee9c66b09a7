// Package mail sends the service's mail: it writes each requested mail in the
// language of its reader, and delivers it to a mail server, or to a file if no
// server is configured. The worker does so in the background, once for each
// request.
package mail

import (
	"context"
	"errors"
	netmail "net/mail"
	"time"

	"partnerapi/domain"
)

// Message is a mail to send, in text and HTML.
type Message struct {
	// ID identifies the message and is the same at each try: it becomes the
	// Message-ID, by which receivers recognise a repetition, and names the file.
	// It consists of letters, digits and dashes.
	ID   string
	From netmail.Address
	// To is the reader's address as callers write it: with the quotes of a
	// local part that needs them, and without a name.
	To       string
	Subject  string
	Text     string
	HTML     string
	Language domain.Language
	At       time.Time
	// Automatic marks mail that no one should answer automatically.
	Automatic bool
	Files     []File
}

// File is an attachment.
type File struct {
	Name string // in ASCII, without a slash
	Type string // such as application/pdf
	Data []byte
}

// Sender delivers mail. It is safe for concurrent use.
type Sender interface {
	// Send delivers a message and returns once it was accepted. The error is a
	// *RefusedError if another try is of no use, ErrNotStarted if ctx ended, or was
	// about to, before the delivery began, and a *MaybeSentError if the message may
	// have been accepted; any other is temporary. A delivery that has begun ends
	// before ctx's deadline, and does not stop when ctx is cancelled.
	Send(ctx context.Context, m Message) error
	// Close closes what is kept open for further messages.
	Close() error
}

// Open returns the sender for an SMTP URL (see NewSMTP), or an Outbox if the URL is empty.
func Open(url, outbox string) (Sender, error) {
	if url == "" {
		return NewOutbox(outbox)
	}
	return NewSMTP(url)
}

// RefusedError means that a message will never be accepted: its address does not exist, or its content is refused.
type RefusedError struct{ Reason string }

func (e *RefusedError) Error() string { return "refused for good: " + e.Reason }

// MaybeSentError means that a message may have been taken although its delivery failed: the server had all of it and
// did not answer.
type MaybeSentError struct{ Err error }

func (e *MaybeSentError) Error() string { return e.Err.Error() }

func (e *MaybeSentError) Unwrap() error { return e.Err }

// ErrNotStarted means that there was no time left to deliver a message; it counts as no attempt.
var ErrNotStarted = errors.New("the message was not begun in the time that there was")
