package mail_test

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"partnerapi/db"
	"partnerapi/db/ingest"
	"partnerapi/db/outbox"
	"partnerapi/domain"
	"partnerapi/platform/mail"
	"partnerapi/v2/v2test"
)

// TestServiceMailOnce: repeated and concurrent signals bring one mail, and each
// round of a course its own.
func TestServiceMailOnce(t *testing.T) {
	t.Parallel()
	p, now := newOffice(t), v2test.Noon
	u := p.user(p.client, "ada@example.test", domain.English)
	result := p.simulation(u, now.Add(-time.Hour))
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for n := range 3 {
				at := now.Add(time.Duration(n-3) * time.Minute)
				batch := []domain.Signal{
					{ID: db.NewID[domain.EventKind]().String(), Type: domain.CourseCompleted, User: u.User, Course: foundations, At: at},
					{ID: db.NewID[domain.EventKind]().String(), Type: domain.ExposureFound, User: u.User, Breach: "Forum", At: at},
					{ID: db.NewID[domain.EventKind]().String(), Type: domain.PhishingClicked, Result: result, At: at},
				}
				if _, err := ingest.Apply(t.Context(), p.DB, batch); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	p.Clock.Advance(2 * day)
	if got := p.sent(); got != "certificate exposure-notice phish-reminder" {
		t.Errorf("sent %q", got)
	}

	p.Exec("UPDATE assignments SET completed_at = $1 WHERE user_id = $2 AND course_id = $3", now.AddDate(-1, 0, -1), u.User, foundations)
	p.Exec(`INSERT INTO assignments (client_id, user_id, course_id, round, position, assigned_at, due_on)
		VALUES ($1, $2, $3, 2, 1, $4, '2026-07-15')`, u.Client, u.User, foundations, now)
	p.completed(u, p.Clock.Now())
	p.completed(u, p.Clock.Now().Add(time.Second))
	if got := p.sent(); got != "certificate" {
		t.Errorf("sent %q for the second round", got)
	}
}

// TestCrashAfterNotice is the one window in which a mail goes out twice: the server has
// taken it, and that could not be marked. The next process sends the same message, and
// notes it once.
func TestCrashAfterNotice(t *testing.T) {
	t.Parallel()
	p, now := newOffice(t), v2test.Noon
	u := p.user(p.client, "ada@example.test", domain.English)
	p.exposed(u, "Forum", now)
	ctx, crash := context.WithCancel(t.Context())
	if _, err := p.dispatcher(then(p.sender, crash)).Send(ctx, ctx, p.claim()[0]); err == nil {
		t.Fatal("it is marked")
	}
	if p.Number("SELECT count(*) FROM exposures WHERE notified_at IS NOT NULL")+p.Number("SELECT count(*) FROM sent_emails") != 0 {
		t.Error("it is noted without the mark")
	}
	if early := p.drain(p.sender); len(early) != 0 {
		t.Errorf("%v while the lease lasts", early)
	}
	p.Clock.Advance(time.Minute)
	if got := p.sent(); got != "exposure-notice" || p.outcome(p.requests()[0]) != "sent and recorded" {
		t.Fatalf("sent %q, %s", got, p.outcome(p.requests()[0]))
	}
	mails := p.server.all()
	if len(mails) != 2 || parse(t, mails[0].data).Get("Message-ID") != parse(t, mails[1].data).Get("Message-ID") {
		t.Errorf("%d mails", len(mails))
	}
	list := "/v2/clients/" + p.client.String() + "/dark-web/exposures?updated_since="
	want := now.Add(time.Minute).Format("2006-01-02T15:04:05.000000Z")
	shown := p.Get(list+now.Add(time.Minute).Format(time.RFC3339), p.tenant.Key).Want(200).Field("data").([]any)
	if len(shown) != 1 || shown[0].(map[string]any)["notified_at"] != want {
		t.Errorf("%v", shown)
	}
	if later := p.Get(list+now.Add(2*time.Minute).Format(time.RFC3339), p.tenant.Key).Want(200).Field("data").([]any); len(later) != 0 {
		t.Errorf("%v", later)
	}
	emails := p.Get("/v2/users/"+u.User.String()+"/emails?message_types=exposure-notice", p.tenant.Key).Want(200).Field("data").([]any)
	if len(emails) != 1 || emails[0].(map[string]any)["message_type"] != "exposure-notice" {
		t.Errorf("%v", emails)
	}
}

// TestMarkNoticesAndSimulations: both are marked in one transaction, in the lock
// order.
func TestMarkNoticesAndSimulations(t *testing.T) {
	t.Parallel()
	p, now := newOffice(t), v2test.Noon
	var mails []outbox.SentMail
	for _, email := range []string{"a@example.test", "b@example.test"} {
		u := p.user(p.client, email, domain.English)
		p.exposed(u, "Forum", now)
		p.exposed(u, "List", now)
		result := p.simulation(u, now)
		p.Exec("UPDATE phishing_results SET status = 'scheduled', sent_at = NULL WHERE id = $1", result)
		p.Exec("DELETE FROM sent_emails")
		p.Exec("INSERT INTO outbox (client_id, id, kind, urgency, due_at) VALUES ($1, $2, 'simulation', 2, $3)", p.client, result, now)
		for _, l := range p.claim() {
			mails = append(mails, outbox.SentMail{Lease: l, User: &u.User, From: "a@example.test", Subject: "S"})
		}
	}
	done, err := outbox.MarkSent(t.Context(), p.DB, mails)
	if err != nil || len(done) != 6 || p.Number("SELECT count(*) FROM exposures WHERE notified_at = $1", now) != 4 ||
		p.Number("SELECT count(*) FROM phishing_results WHERE sent_at = $1", now) != 2 {
		t.Errorf("%v: %v", done, err)
	}
}

// unwritable is a writer that has no words for one mail, and panics for another.
type unwritable struct {
	mail.Writer
	wordless      mail.Writer
	fails, panics domain.MessageID
}

func (u unwritable) Write(ctx context.Context, l outbox.Lease) (mail.Draft, error) {
	switch l.ID {
	case u.fails:
		return u.wordless.Write(ctx, l)
	case u.panics:
		panic("planted in the writer")
	}
	return u.Writer.Write(ctx, l)
}

// TestFailedTries: a mail whose writing fails, or whose writing or handing over panics, is a failed
// try, stops no other mail, and is given up when its tries are over.
func TestFailedTries(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	for _, name := range []string{"wordless", "unwritten", "unsent", "fine"} {
		o.welcome(name+"@example.test", "en")
	}
	ids := o.requests()
	panics := sends(func(ctx context.Context, m mail.Message) error {
		if m.To == "unsent@example.test" {
			panic("planted in the sender")
		}
		return o.sender.Send(ctx, m)
	})
	d := mail.NewDispatcher(o.DB, panics, 2, map[db.OutboxKind]mail.Writer{
		db.RequestedMail: unwritable{
			mail.Requests{DB: o.DB, Composer: composer(t, "")}, mail.Requests{DB: o.DB, Composer: &mail.Composer{}}, ids[0], ids[1],
		},
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

	drain(mail.Retried, 3)
	if o.outcome(ids[3]) != "sent and recorded" || o.Number("SELECT sum(attempts) FROM outbox WHERE lease IS NULL") != 3 {
		t.Errorf("after a try: %s", o.outcome(ids[3]))
	}
	if n := o.Number("SELECT count(*) FROM outbox WHERE maybe_sent"); n != 1 { // the others were not written
		t.Errorf("%d may have been sent", n)
	}
	o.Exec("UPDATE outbox SET attempts = 100")
	o.Clock.Advance(domain.MailLife + time.Hour)
	drain(mail.Failed, 3)
	for i, want := range []string{"write an email", domain.ErrPanicked.Error(), domain.ErrPanicked.Error()} {
		if !strings.HasPrefix(o.outcome(ids[i]), "given up: "+want) {
			t.Error(o.outcome(ids[i]))
		}
	}
}

// TestStepForward: emails that are being sent when the clock is set forward by more than their leases last are sent once:
// their process renews the leases, and no process claims any for the duration of one.
func TestStepForward(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	gate, held := make(chan struct{}), make(chan struct{}, 5)
	s := startServer(t, "", func(s *server) { s.gate, s.held = gate, held })
	o.welcome("a@example.test", "en")
	o.welcome("b@example.test", "en")
	stop := o.process(open(t, s.url()))
	<-held
	<-held
	o.Clock.Advance(25 * time.Second)
	o.Clock.Step(80 * time.Second)
	if taken := o.claim(); len(taken) != 0 {
		t.Fatalf("%d of the emails in progress are taken over", len(taken))
	}
	o.until(2, "SELECT count(*) FROM outbox WHERE due_at = '"+o.Clock.Now().Add(75*time.Second).Format(time.RFC3339Nano)+"'")
	o.Clock.Advance(time.Minute) // as long as a lease of claim
	if taken := o.claim(); len(taken) != 0 {
		t.Fatalf("%d of the emails in progress are taken over, a minute later", len(taken))
	}
	close(gate)
	o.until(0, "SELECT count(*) FROM outbox")
	if err := stop(); err != nil {
		t.Error(err)
	}
	if n := len(s.all()); n != 2 {
		t.Errorf("%d emails arrived", n)
	}
	o.welcome("c@example.test", "en")
	if n := len(o.claim()); n != 1 {
		t.Errorf("%d emails are claimed after that", n)
	}
}
