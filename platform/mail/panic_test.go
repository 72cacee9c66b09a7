package mail_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"partnerapi/db"
	"partnerapi/db/outbox"
	"partnerapi/domain"
	"partnerapi/platform/mail"
)

// panicking panics for the mails to one address.
type panicking struct {
	mail.Sender
	to string
}

func (p panicking) Send(ctx context.Context, m mail.Message) error {
	if m.To == p.to {
		panic("planted in the sender")
	}
	return p.Sender.Send(ctx, m)
}

// unwritable is a writer that panics for one user.
type unwritable struct {
	mail.Writer
	db   *db.DB
	user domain.UserID
}

func (u unwritable) Write(ctx context.Context, l outbox.Lease) (mail.Draft, error) {
	m, err := outbox.Mail(ctx, u.db, l.Client, l.ID)
	if err == nil && m.User != nil && *m.User == u.user {
		panic("planted in the writer")
	}
	return u.Writer.Write(ctx, l)
}

// TestPanics: a mail whose writing or handing over panics is a failed try, stops no
// other mail, and is given up when its tries are over.
func TestPanics(t *testing.T) {
	t.Parallel()
	o, s := newOffice(t), startServer(t, "", nil)
	unwritten := o.welcome("unwritten@example.test", "en")
	o.welcome("unsent@example.test", "en")
	o.welcome("fine@example.test", "en")
	ids := o.requests()
	d := mail.NewDispatcher(o.DB, panicking{open(t, s.url()), "unsent@example.test"}, 2, map[db.OutboxKind]mail.Writer{
		db.RequestedMail: unwritable{mail.NewRequests(o.DB, composer(t, ""), nil), o.DB, unwritten},
	}, quiet, nil, nil)
	drain := func(want mail.Outcome, n int) {
		t.Helper()
		for _, l := range o.claim() {
			if outcome, _ := d.Send(t.Context(), t.Context(), l); outcome == want {
				n--
			}
		}
		if n != 0 {
			t.Errorf("%d more or less are %s", n, want)
		}
	}

	drain(mail.Retried, 2)
	if o.outcome(ids[2]) != "sent and recorded" || o.Number("SELECT sum(attempts) FROM outbox WHERE lease IS NULL") != 2 {
		t.Errorf("after a try: %s", o.outcome(ids[2]))
	}
	if n := o.Number("SELECT count(*) FROM outbox WHERE maybe_sent"); n != 1 { // the other one was not written
		t.Errorf("%d may have been sent", n)
	}
	o.Exec("UPDATE outbox SET attempts = 100")
	o.Clock.Advance(domain.MailLife + time.Hour)
	drain(mail.Failed, 2)
	for _, id := range ids[:2] {
		if !strings.Contains(o.outcome(id), "given up: "+domain.ErrPanicked.Error()) {
			t.Error(o.outcome(id))
		}
	}
}
