// Package mail sends the service's mail: it writes what was asked for in the
// language of its reader, and hands it to a mail server, or to files where no
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
	// ID is the message's own, the same at each try: it becomes the Message-ID,
	// by which receivers know a repetition, and names the file. Letters, digits
	// and dashes.
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
	// Send hands over a message and returns once it was taken. The error is a
	// *RefusedError where another try is of no use, and ErrNotStarted where ctx ended,
	// or was about to, before anything was handed over; any other is temporary. It is a
	// *MaybeSentError where the message may have been taken.
	// A message that was begun is finished, whatever becomes of ctx, and before
	// the deadline that ctx had.
	Send(ctx context.Context, m Message) error
	// Close ends what is kept open for further messages.
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
