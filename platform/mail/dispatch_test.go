package mail_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"partnerapi/db"
	"partnerapi/db/dbtest"
	"partnerapi/db/outbox"
	"partnerapi/db/pg"
	"partnerapi/domain"
	"partnerapi/platform/mail"
	"partnerapi/v2/v2test"
)

// office is a service with a client, whose mail is sent to a server.
type office struct {
	*v2test.Harness
	t      *testing.T
	tenant v2test.Partner
	client domain.ClientID
	server *server
	sender mail.Sender
	// attachments are the files of emails: certificates, but no reports.
	attachments mail.Attachments
}

func newOffice(t *testing.T) *office {
	h := v2test.New(t, v2test.Options{})
	o := &office{Harness: h, t: t, tenant: h.AddPartner("Überwald IT"), server: startServer(t, "", nil), attachments: reportFiles{}}
	o.client = h.AddClient(o.tenant, "Hopper & Sons").ID
	o.sender = open(t, o.server.url())
	domainName, on := "forum.example", domain.DateOf(v2test.Noon.AddDate(-1, 0, 0))
	_, _, err := o.DB.ImportBreaches(t.Context(), []domain.Breach{
		{Name: "Forum", Title: "Forum & Co", Domain: &domainName, On: &on, Severity: domain.SeverityCritical, DataClasses: []string{"Passwords", "Tea preferences"}},
		{Name: "List", Title: "List", Severity: domain.SeverityLow, DataClasses: []string{"Email addresses"}, SpamList: true},
	})
	o.must(err)
	return o
}

func (o *office) must(err error) {
	o.t.Helper()
	if err != nil {
		o.t.Fatal(err)
	}
}

// welcome creates a user who is to be welcomed, through the API.
func (o *office) welcome(email, language string) domain.UserID {
	o.t.Helper()
	var u struct{ ID domain.UserID }
	o.Do("POST", "/v2/clients/"+o.client.String()+"/users", o.tenant.Key, map[string]any{
		"email": email, "first_name": "Grace", "preferred_language": language, "send_welcome_email": true,
	}).Want(201).Into(&u)
	return u.ID
}

func (o *office) invite(email string) {
	o.t.Helper()
	o.Do("POST", "/v2/clients/"+o.client.String()+"/admins/invites", o.tenant.Key, map[string]any{"email": email, "role": "viewer"}).Want(202)
}

// requests are the mails that were asked for, oldest first.
func (o *office) requests() []domain.MessageID {
	o.t.Helper()
	return must(pg.All[domain.MessageID](o.t.Context(), o.DB, "list mails", pg.SQL("SELECT id FROM mail_requests ORDER BY id")))
}

// text is the one value of a query's row.
func (o *office) text(query string, args ...any) string {
	o.t.Helper()
	return must(pg.One[string](o.t.Context(), o.DB, "look", pg.SQL(query, args...)))
}

// claim leases all mails that are due for a minute.
func (o *office) claim() []outbox.Lease {
	o.t.Helper()
	return must(outbox.ClaimMails(o.t.Context(), o.DB, new(outbox.MailTurns), 100, time.Minute))
}

func (o *office) dispatcher(sender mail.Sender) *mail.Dispatcher {
	return mail.NewDispatcher(o.DB, sender, 2, o.writers(), quiet, nil, nil)
}

func (o *office) writers() map[db.OutboxKind]mail.Writer {
	return map[db.OutboxKind]mail.Writer{
		db.RequestedMail: mail.Requests{DB: o.DB, Composer: composer(o.t, ""), Attachments: o.attachments},
		db.PartnerMail:   mail.Notices{DB: o.DB, Composer: composer(o.t, "")},
	}
}

// drain sends all that is due, and returns what came of each.
func (o *office) drain(sender mail.Sender) (all []mail.Outcome) {
	o.t.Helper()
	d := o.dispatcher(sender)
	for _, l := range o.claim() {
		outcome, err := d.Send(o.t.Context(), o.t.Context(), l)
		if (err != nil) != (outcome == mail.Retried) {
			o.t.Fatalf("%s: %v", outcome, err)
		}
		all = append(all, outcome)
	}
	return all
}

// outcome is what the database says of a mail: "waiting", "sent", "sent and
// recorded", or why it failed.
func (o *office) outcome(id domain.MessageID) string {
	o.t.Helper()
	return o.text(`
		SELECT CASE WHEN r.sent_at IS NULL THEN coalesce(r.failure, 'waiting') WHEN e.id IS NULL THEN 'sent' ELSE 'sent and recorded' END
		FROM mail_requests AS r LEFT JOIN sent_emails AS e ON e.client_id = r.client_id AND e.id = r.id AND e.sent_at = r.sent_at
			AND e.message_type = r.type AND e.send_method = 'smtp' AND e.from_email = 'no-reply@train.example.test' AND e.subject <> ''
		WHERE r.id = ?`, id)
}

// TestFromRequestToMail: a welcome and invites arrive, each in its reader's
// language, and are recorded where they went to a user. An address that is refused is
// recorded, and stops no other mail.
func TestFromRequestToMail(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	o.welcome("grace@example.test", "fr-ca")
	o.server.refuse("gone@example.test", 550)
	for _, name := range []string{"new", "gone", "grace"} {
		o.invite(name + "@example.test")
	}
	path := "/v2/clients/" + o.client.String() // what is refused leaves nothing in the outbox
	o.Do("POST", path+"/users", o.tenant.Key, map[string]any{"email": "grace@example.test", "send_welcome_email": true}).Want(409)
	o.Do("POST", path+"/admins/invites", o.tenant.Key, map[string]any{"email": "new@example.test"}).Want(409)
	if n := o.Number("SELECT count(*) FROM outbox"); n != 4 {
		t.Errorf("%d mails wait", n)
	}
	o.drain(o.sender)
	if again := o.drain(o.sender); len(again) != 0 {
		t.Errorf("%d are due again", len(again))
	}
	var outcomes []string
	for _, id := range o.requests() {
		outcomes = append(outcomes, o.outcome(id))
	}
	refusal := outcomes[2]
	if got := strings.Join(outcomes, ", "); got != "sent and recorded, sent, "+refusal+", sent and recorded" || !strings.Contains(refusal, "550") {
		t.Error(got)
	}
	mails := o.server.all()
	if len(mails) != 3 {
		t.Fatalf("%d mails", len(mails))
	}
	welcome, stranger, colleague := parse(t, mails[0].data), parse(t, mails[1].data), parse(t, mails[2].data)
	for _, ok := range []bool{
		mails[0].to == "grace@example.test", mails[0].from == "no-reply@train.example.test", mails[1].to == "new@example.test",
		welcome.Get("Content-Language") == "fr-CA", strings.HasPrefix(welcome.text, "Bonjour Grace,"), strings.Contains(welcome.text, "https://train.example.test/training"),
		strings.HasPrefix(stranger.text, "Hello,"), strings.Contains(stranger.text, "22 June 2026"), strings.Contains(stranger.text, "https://train.example.test/invites/inv_"),
		strings.HasPrefix(colleague.text, "Bonjour Grace,"), strings.Contains(colleague.text, "22 juin 2026"),
	} {
		if !ok {
			t.Fatalf("%s\n%s\n%s", mails[0].data, mails[1].data, mails[2].data)
		}
	}
}

// TestServerAway: while the server cannot be reached, or is busy, the mail
// waits, longer after each try; then it goes out, once. After three days it is
// given up.
func TestServerAway(t *testing.T) {
	t.Parallel()
	o, address := newOffice(t), unused(t)
	o.welcome("a@example.test", "en")
	id, sender := o.requests()[0], open(t, "smtp://"+address)
	try := func(wait time.Duration, want mail.Outcome) {
		t.Helper()
		if early := o.drain(sender); len(early) != 0 {
			t.Fatalf("%v before its pause was over", early)
		}
		o.Clock.Advance(wait)
		if got := o.drain(sender); len(got) != 1 || got[0] != want {
			t.Fatalf("%v, not %s", got, want)
		}
	}
	if got := o.drain(sender); len(got) != 1 || got[0] != mail.Retried || o.outcome(id) != "waiting" {
		t.Fatalf("%v, %s", got, o.outcome(id))
	}
	s := startServer(t, address, nil)
	s.refuse("a@example.test", 451)
	try(6*time.Second, mail.Retried)
	try(17*time.Second, mail.Retried)
	s.mu.Lock()
	clear(s.refusals)
	s.mu.Unlock()
	try(50*time.Second, mail.Sent)
	if o.outcome(id) != "sent and recorded" || len(s.all()) != 1 {
		t.Fatalf("%s, %d mails", o.outcome(id), len(s.all()))
	}
	_ = s.smtp.Close()
	o.welcome("late@example.test", "en")
	o.drain(sender)
	try(domain.MailLife+time.Minute, mail.Failed)
	if late := o.outcome(o.requests()[1]); !strings.HasPrefix(late, "given up: ") {
		t.Error(late)
	}
}

// TestStepGivesNoMailUp verifies that a step of the clock gives no mail up: it is given up once the clock has run.
func TestStepGivesNoMailUp(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	o.welcome("a@example.test", "en")
	sender := open(t, "smtp://"+unused(t))
	o.drain(sender)
	o.Clock.Step(domain.MailLife + time.Hour)
	o.Clock.Advance(80 * time.Second) // until processes claim again
	if got := o.drain(sender); len(got) != 1 || got[0] != mail.Retried {
		t.Errorf("after a step of more than three days: %v, want one retried", got)
	}
	o.Clock.Advance(2 * time.Minute)
	if got := o.drain(sender); len(got) != 1 || got[0] != mail.Failed {
		t.Errorf("two minutes later: %v, want one failed", got)
	}
}

// TestTwoProcesses: of processes that look for mails at a time, one sends each,
// and nothing is locked while a server takes its time.
func TestTwoProcesses(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	gate, held := make(chan struct{}), make(chan struct{}, 5)
	s := startServer(t, "", func(s *server) { s.gate, s.held = gate, held })
	o.welcome("a@example.test", "en")
	var stops []func() error
	for range 3 {
		stops = append(stops, o.process(open(t, s.url())))
	}
	<-held
	o.until(0, "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND state LIKE 'idle in%'") // claims end
	o.Exec("UPDATE mail_requests SET created_at = created_at")                                                       // waits for no lock
	close(gate)
	o.until(0, "SELECT count(*) FROM outbox")
	for _, stop := range stops {
		if err := stop(); err != nil {
			t.Error(err)
		}
	}
	if len(s.all()) != 1 || o.outcome(o.requests()[0]) != "sent and recorded" {
		t.Errorf("%d mails, %s", len(s.all()), o.outcome(o.requests()[0]))
	}
}

// sends is a sender.
type sends func(context.Context, mail.Message) error

func (fn sends) Send(ctx context.Context, m mail.Message) error { return fn(ctx, m) }
func (sends) Close() error                                      { return nil }

// then does something right after the server took the message: its process may lose the
// database.
func then(s mail.Sender, do func()) sends {
	return func(ctx context.Context, m mail.Message) error {
		err := s.Send(ctx, m)
		do()
		return err
	}
}

// TestLeaseLost: who comes to mark a mail after the lease ended, and another took
// it over, changes nothing.
func TestLeaseLost(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	o.welcome("a@example.test", "en")
	id := o.requests()[0]
	slow := o.claim()[0]
	o.Clock.Advance(time.Minute)
	late := then(o.sender, func() { o.drain(o.sender) })
	if _, err := o.dispatcher(late).Send(t.Context(), t.Context(), slow); !errors.Is(err, db.ErrLeaseLost) {
		t.Error(err)
	}
	for name, err := range map[string]error{
		"failed":   outbox.MarkFailed(t.Context(), o.DB, slow, "x"),
		"put back": outbox.RequeueMail(t.Context(), o.DB, slow, outbox.Requeue{At: o.Clock.Now(), Failed: true}),
	} {
		if !errors.Is(err, db.ErrLeaseLost) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if n := o.Number("SELECT count(*) FROM sent_emails"); n != 1 || o.outcome(id) != "sent and recorded" {
		t.Errorf("%d records, %s", n, o.outcome(id))
	}
}

// TestUnsentIsTold: the log tells a mail that was sent and could not be marked from one
// that was not sent.
func TestUnsentIsTold(t *testing.T) {
	t.Parallel()
	for want, through := range map[string]func(*office) mail.Sender{
		"an email was sent but not marked; it will be sent again unless another process has marked it": func(o *office) mail.Sender {
			return then(o.sender, func() {
				o.Clock.Advance(time.Hour) // the lease ends, and another process sends it
				o.drain(o.sender)
			})
		},
		"an email was not sent; it will be retried": func(*office) mail.Sender {
			return sends(func(context.Context, mail.Message) error { return errors.New("no answer") })
		},
	} {
		o := newOffice(t)
		o.welcome("a@example.test", "en")
		ctx, cancel := context.WithCancel(t.Context())
		var log bytes.Buffer
		d := mail.NewDispatcher(o.DB, through(o), 1, o.writers(), slog.New(slog.NewTextHandler(&log, nil)),
			func(db.OutboxKind, mail.Outcome) { cancel() }, nil)
		if err := d.Run(ctx); err != nil {
			t.Error(err)
		}
		if strings.Count(log.String(), "an email was ") != 1 || !strings.Contains(log.String(), want) {
			t.Errorf("the log has\n%s\nin place of %q", log.String(), want)
		}
	}
}

// TestWhatMailsAreAbout: a reminder names its policy, an assignment its course
// and the day that it is due; neither is sent once its object is closed, nor is an invite
// that has expired.
func TestWhatMailsAreAbout(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	user := o.AddUser(o.tenant, o.client, "ada@example.test").ID
	policies := []domain.PolicyID{{15: 1}, {15: 2}}
	for i, archived := range []*time.Time{nil, &v2test.Noon} {
		o.Exec(`INSERT INTO policies (client_id, id, title, scope_type, scope_id, requires_acknowledgment, reviewed_at, archived_at, created_at, updated_at)
			VALUES ($1, $2, 'Clean desk', 'tenant', $1, true, $3, $4, $3, $3)`, o.client, policies[i], v2test.Noon, archived)
	}
	ask := func(kind domain.MessageType, policy *domain.PolicyID, course *string) domain.MessageID {
		id := db.NewID[domain.MessageKind]()
		o.Exec("INSERT INTO mail_requests (client_id, id, type, user_id, policy_id, course_id, created_at) VALUES ($1, $2, $3, $4, $5, $6, $7)",
			o.client, id, kind, user, policy, course, v2test.Noon)
		err := o.DB.Change(t.Context(), func(_ context.Context, c *db.Change) error {
			c.SendMails(o.client, id)
			return nil
		})
		o.must(err)
		return id
	}
	open1, foreign := "019b7740-0000-7000-8000-000000000001", "019b7740-0000-7000-8000-000000000007"
	for _, c := range []struct {
		id   domain.MessageID
		want string
	}{
		{ask(domain.PolicyReminder, &policies[0], nil), "sent and recorded"}, {ask(domain.PolicyReminder, &policies[1], nil), "the policy is archived"},
		{ask(domain.TrainingInvite, nil, &open1), "sent and recorded"}, {ask(domain.TrainingInvite, nil, &foreign), "the course is not open"},
	} {
		if o.drain(o.sender); o.outcome(c.id) != c.want {
			t.Errorf("%s, not %s", o.outcome(c.id), c.want)
		}
	}
	o.Signal(domain.Signal{Type: domain.PolicySigned, User: user, Policy: policies[0], Version: 1, At: v2test.Noon})
	late := ask(domain.PolicyReminder, &policies[0], nil)
	if o.drain(o.sender); o.outcome(late) != "the policy is signed" {
		t.Errorf("a reminder to one who has signed: %s", o.outcome(late))
	}
	o.invite("late@example.test")
	o.Clock.Advance(domain.InviteLife)
	if o.drain(o.sender); o.Number("SELECT count(*) FROM mail_requests WHERE failure = 'the invite has expired'") != 1 {
		t.Error("an expired invite is sent")
	}
	mails := o.server.all()
	if len(mails) != 2 || o.Number("SELECT count(*) FROM outbox") != 0 {
		t.Fatalf("%d mails", len(mails))
	}
	reminder, course := parse(t, mails[0].data), parse(t, mails[1].data)
	if !strings.Contains(reminder.text, "“Clean desk”") || !strings.Contains(reminder.text, policies[0].String()) ||
		!strings.Contains(course.text, "“Security awareness foundations”") || !strings.Contains(course.text, "29 June 2026") {
		t.Errorf("%s\n%s", reminder.text, course.text)
	}
}

func TestMain(m *testing.M) { dbtest.Main(m) }
