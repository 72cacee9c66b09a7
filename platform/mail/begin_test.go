package mail_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"partnerapi/db"
	"partnerapi/domain"
	"partnerapi/platform/mail"
	"partnerapi/v2/v2test"
)

// TestTimes: a try has time for more than one message, a stop waits for one that
// was begun, and a try and its mark are over before another process may take the
// mail over.
func TestTimes(t *testing.T) {
	t.Parallel()
	if ends := mail.SendWithin + mail.MarkWithin; mail.TryWithin < 2*mail.SendWithin || mail.StopWithin < ends ||
		mail.LeaseFor <= mail.TryWithin+mail.MarkWithin {
		t.Errorf("a message takes %s with its mark: a try has %s, a stop waits for %s, a lease lasts %s",
			ends, mail.TryWithin, mail.StopWithin, mail.LeaseFor)
	}
}

// TestNoTimeLeft: a message is begun only if there is time to finish it. One
// that is not is no failure: it is put back, even when it is to be given up.
func TestNoTimeLeft(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	o.welcome("a@example.test", "en")
	o.Clock.Advance(domain.MailLife + time.Hour)
	d, id := o.dispatcher(o.sender), o.requests()[0]
	ctx, cancel := context.WithTimeout(t.Context(), mail.SendWithin)
	defer cancel()
	if outcome, err := d.Send(ctx, t.Context(), o.claim()[0]); err != nil || outcome != "" || o.outcome(id) != "waiting" {
		t.Errorf("%s, %v, %s", outcome, err, o.outcome(id))
	}
	if err := open(t, "").Send(ended(t), message("a@example.test")); !errors.Is(err, mail.ErrNotStarted) {
		t.Errorf("into a file: %v", err)
	}
	if o.server.sessions != 0 || o.Number("SELECT attempts FROM outbox") != 0 {
		t.Error("it was tried all the same")
	}
	o.Clock.Advance(time.Minute)
	ctx, cancel = context.WithTimeout(t.Context(), mail.SendWithin+time.Hour)
	defer cancel()
	if outcome, err := d.Send(ctx, t.Context(), o.claim()[0]); err != nil || outcome != mail.Sent || o.outcome(id) != "sent and recorded" {
		t.Errorf("%s, %v, %s", outcome, err, o.outcome(id))
	}
}

// ended is a context that has ended.
func ended(t *testing.T) context.Context {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	return ctx
}

// TestConnectingEnds: connecting, and asking whether a connection is still
// there, end with the context.
func TestConnectingEnds(t *testing.T) {
	t.Parallel()
	for _, silent := range []string{"", "EHLO", "NOOP"} {
		t.Run("silent at "+silent, func(t *testing.T) {
			reached := make(chan struct{})
			s := script(t, func(_ int, command string) string {
				if command == silent {
					close(reached)
					return silence
				}
				return usual(command)
			})
			sender, clock := open(t, s.url()), domain.NewManualClock(v2test.Noon)
			mail.UseClock(sender, clock)
			if silent == "NOOP" {
				if err := sender.Send(t.Context(), message("a@example.test")); err != nil {
					t.Fatal(err)
				}
				clock.Advance(time.Minute)
			}
			ctx, cancel := context.WithCancel(t.Context())
			sent := make(chan error)
			go func() { sent <- sender.Send(ctx, message("a@example.test")) }()
			<-reached
			cancel()
			if err := <-sent; !errors.Is(err, mail.ErrNotStarted) {
				t.Error(err)
			}
			<-s.ended // the connection is not left open
		})
	}
}

// TestOneConversation: nothing comes between messages that follow each other at
// once, and after one that the server took nothing can go wrong. An idle
// connection is asked first.
func TestOneConversation(t *testing.T) {
	t.Parallel()
	s := answering(t, "", usual(""))
	sender, clock := open(t, s.url()), domain.NewManualClock(v2test.Noon)
	mail.UseClock(sender, clock)
	for _, pause := range []time.Duration{0, time.Second - time.Millisecond, time.Second} {
		clock.Advance(pause)
		if got := send(t, sender, "a@example.test"); got != "sent" {
			t.Fatal(got)
		}
	}
	if got := strings.Join(s.commands(), " "); got != "EHLO MAIL RCPT DATA . MAIL RCPT DATA . NOOP MAIL RCPT DATA ." {
		t.Error(got)
	}
}

// TestKeptConnectionEnded: that a server ended a connection meanwhile is no
// failure, whichever way it does.
func TestKeptConnectionEnded(t *testing.T) {
	t.Parallel()
	for _, end := range []string{hangUp, "421 4.7.0 enough for today"} {
		mails := 0
		s := script(t, func(connection int, command string) string {
			if command == "MAIL" && connection == 1 {
				if mails++; mails == 2 {
					return end
				}
			}
			return usual(command)
		})
		sender := open(t, s.url())
		mail.UseClock(sender, domain.NewManualClock(v2test.Noon)) // so that it is not asked
		for range 2 {
			if got := send(t, sender, "a@example.test"); got != "sent" {
				t.Errorf("after %q: %s", end, got)
			}
		}
		if got := strings.Join(s.commands(), " "); got != "EHLO MAIL RCPT DATA . MAIL EHLO MAIL RCPT DATA ." {
			t.Errorf("after %q: %s", end, got)
		}
	}
}

// TestStop: a process that is stopped finishes the mail in progress, marks
// it, and puts back the one that waits for the connection, which is no try. That one
// goes out later, and nothing twice.
func TestStop(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	held, gate := make(chan struct{}, 2), make(chan struct{})
	s := startServer(t, "", func(s *server) { s.gate, s.held = gate, held })
	o.welcome("a@example.test", "en")
	o.welcome("b@example.test", "en")
	ids, sender := o.requests(), open(t, s.url()+"?connections=1")
	stop := o.process(sender)
	<-held
	const leased = "SELECT count(*) FROM outbox WHERE lease IS NOT NULL"
	o.until(2, leased)
	stopped := make(chan error)
	go func() { stopped <- stop() }()
	o.until(1, leased) // the other is put back
	close(gate)
	o.must(<-stopped)
	if got := fmt.Sprint([]string{o.outcome(ids[0]), o.outcome(ids[1])}); got != "[sent and recorded waiting]" && got != "[waiting sent and recorded]" {
		t.Error(got)
	}
	if n := len(s.all()); n != 1 {
		t.Errorf("%d mails", n)
	}
	if n := o.Number("SELECT count(*) FROM outbox WHERE lease IS NULL AND attempts = 0"); n != 1 {
		t.Errorf("%d put back", n)
	}
	stop = o.process(sender)
	o.until(0, "SELECT count(*) FROM outbox")
	if err := stop(); err != nil || len(s.all()) != 2 {
		t.Errorf("%v, %d mails", err, len(s.all()))
	}
}

// TestToldOfNewMail: a process that waits is notified of a mail when that is put into
// the outbox.
func TestToldOfNewMail(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	told := make(chan struct{}, 10)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- o.DB.ListenFor(ctx, db.OutboxChannel, func() { told <- struct{}{} }) }()
	<-told // it listens
	o.welcome("a@example.test", "en")
	<-told
	cancel()
	<-ended
	if got := o.drain(o.sender); len(got) != 1 {
		t.Errorf("%v", got)
	}
}

var quiet = slog.New(slog.DiscardHandler)

// process sends in the background until stop, which returns once nothing of it
// is going on.
func (o *office) process(sender mail.Sender) (stop func() error) {
	o.t.Helper()
	ctx, cancel := context.WithCancel(o.t.Context())
	done := make(chan error, 1)
	d := o.dispatcher(sender)
	go func() { done <- d.Run(ctx) }()
	o.t.Cleanup(cancel)
	return func() error {
		cancel()
		return <-done
	}
}

// until waits for a query to give a number.
func (o *office) until(want int, query string) {
	o.t.Helper()
	for n := -1; n != want; {
		o.must(o.DB.SQL().QueryRowContext(o.t.Context(), query).Scan(&n))
	}
}
