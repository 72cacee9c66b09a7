package mail_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/riverqueue/river"
	"github.com/riverqueue/river/rivertype"

	"partnerapi/db"
	"partnerapi/domain"
	"partnerapi/job"
	"partnerapi/platform/mail"
	"partnerapi/v2/v2test"
)

// office is a service with a client, whose mail a worker sends.
type office struct {
	*v2test.Harness
	t      *testing.T
	tenant v2test.Tenant
	client domain.ClientID
}

func newOffice(t *testing.T) *office {
	h := v2test.New(t, v2test.Options{})
	o := &office{Harness: h, t: t, tenant: h.Tenant("Überwald IT")}
	o.client = h.Client(o.tenant, "Hopper & Sons").ID
	return o
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

// jobs are those that wait in the queue, oldest first.
func (o *office) jobs() []*river.Job[job.SendMail] {
	o.t.Helper()
	rows, err := o.DB.SQL().QueryContext(o.t.Context(), "SELECT args->>'client_id', args->>'request_id' FROM river_job WHERE kind = 'mail' AND queue = 'mail' ORDER BY id")
	if err != nil {
		o.t.Fatal(err)
	}
	defer rows.Close()
	var all []*river.Job[job.SendMail]
	for rows.Next() {
		var client, request string
		if err := rows.Scan(&client, &request); err != nil {
			o.t.Fatal(err)
		}
		j := &river.Job[job.SendMail]{JobRow: &rivertype.JobRow{Attempt: 1, MaxAttempts: 80}}
		if err := errors.Join(j.Args.Client.UnmarshalText([]byte(client)), j.Args.Request.UnmarshalText([]byte(request))); err != nil {
			o.t.Fatal(err)
		}
		all = append(all, j)
	}
	if err := rows.Err(); err != nil {
		o.t.Fatal(err)
	}
	return all
}

func (o *office) worker(sender mail.Sender) *mail.Worker {
	return mail.NewWorker(o.DB, sender, composer(o.t, ""), slog.New(slog.DiscardHandler))
}

// outcome is what the database says of a mail: "waiting", "sent", "sent and
// recorded", or why it failed.
func (o *office) outcome(j *river.Job[job.SendMail]) (text string) {
	o.t.Helper()
	err := o.DB.SQL().QueryRowContext(o.t.Context(), `
		SELECT CASE WHEN r.sent_at IS NULL THEN coalesce(r.failure, 'waiting') WHEN e.id IS NULL THEN 'sent' ELSE 'sent and recorded' END
		FROM mail_requests AS r LEFT JOIN sent_emails AS e ON e.client_id = r.client_id AND e.id = r.id AND e.sent_at = r.sent_at
			AND e.message_type = r.type AND e.send_method = 'smtp' AND e.from_email = 'no-reply@train.example.test' AND e.subject <> ''
		WHERE r.client_id = $1 AND r.id = $2`, j.Args.Client, j.Args.Request).Scan(&text)
	if err != nil {
		o.t.Fatal(err)
	}
	return text
}

// TestFromRequestToMail: a welcome and invites arrive, each in its reader's
// language, and are recorded where they went to a user.
func TestFromRequestToMail(t *testing.T) {
	o, s := newOffice(t), startServer(t, "", nil)
	o.welcome("grace@example.test", "fr-ca")
	o.invite("new@example.test")
	o.invite("grace@example.test")
	w := o.worker(open(t, s.url()))
	var outcomes []string
	for _, j := range o.jobs() {
		for range 2 { // the second time there is nothing to do
			if err := w.Work(t.Context(), j); err != nil {
				t.Fatal(err)
			}
		}
		outcomes = append(outcomes, o.outcome(j))
	}
	if got := strings.Join(outcomes, ", "); got != "sent and recorded, sent, sent and recorded" {
		t.Error(got)
	}
	mails := s.all()
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

// TestNothingOfAFailedRequest: what is refused leaves no work behind.
func TestNothingOfAFailedRequest(t *testing.T) {
	o := newOffice(t)
	o.welcome("grace@example.test", "en")
	o.invite("new@example.test")
	if n := len(o.jobs()); n != 2 {
		t.Fatalf("%d jobs", n)
	}
	path := "/v2/clients/" + o.client.String()
	o.Do("POST", path+"/users", o.tenant.Key, map[string]any{"email": "grace@example.test", "send_welcome_email": true}).Want(409)
	o.Do("POST", path+"/admins/invites", o.tenant.Key, map[string]any{"email": "new@example.test"}).Want(409)
	failed := errors.New("after the work was asked for")
	err := o.DB.Tx(o.tenant.Ctx, func(ctx context.Context) error {
		if err := job.NewQueue(o.DB).Enqueue(ctx, job.Now(o.jobs()[0].Args)...); err != nil {
			t.Fatal(err)
		}
		return failed
	})
	if n := len(o.jobs()); n != 2 || !errors.Is(err, failed) {
		t.Errorf("%d jobs, %v", n, err)
	}
	if job.NewQueue(o.DB).Enqueue(o.tenant.Ctx, job.Now(o.jobs()[0].Args)...) == nil {
		t.Error("work is enqueued outside of a transaction")
	}
}

// TestOneRefusedAddress: it is recorded, and stops no other mail.
func TestOneRefusedAddress(t *testing.T) {
	o, s := newOffice(t), startServer(t, "", nil)
	s.refuse("gone@example.test", 550)
	for _, email := range []string{"a@example.test", "gone@example.test", "b@example.test"} {
		o.welcome(email, "es")
	}
	w, jobs := o.worker(open(t, s.url())), o.jobs()
	for range 2 {
		for _, j := range jobs {
			if err := w.Work(t.Context(), j); err != nil {
				t.Fatal(err)
			}
		}
	}
	if o.outcome(jobs[0]) != "sent and recorded" || !strings.Contains(o.outcome(jobs[1]), "550") || o.outcome(jobs[2]) != "sent and recorded" {
		t.Errorf("%s; %s; %s", o.outcome(jobs[0]), o.outcome(jobs[1]), o.outcome(jobs[2]))
	}
	if n := len(s.all()); n != 2 {
		t.Errorf("%d mails", n)
	}
}

// TestServerAway: while the server cannot be reached, or is busy, the mail
// waits; then it goes out, once. After three days it is given up.
func TestServerAway(t *testing.T) {
	o, address := newOffice(t), unused(t)
	o.welcome("a@example.test", "en")
	o.welcome("late@example.test", "en")
	w, jobs := o.worker(open(t, "smtp://"+address)), o.jobs()
	if err := w.Work(t.Context(), jobs[0]); err == nil || o.outcome(jobs[0]) != "waiting" {
		t.Fatalf("%v, %s", err, o.outcome(jobs[0]))
	}
	s := startServer(t, address, nil)
	s.refuse("a@example.test", 451)
	if err := w.Work(t.Context(), jobs[0]); err == nil || o.outcome(jobs[0]) != "waiting" {
		t.Fatalf("%v, %s", err, o.outcome(jobs[0]))
	}
	s.mu.Lock()
	clear(s.refusals)
	s.mu.Unlock()
	if err := w.Work(t.Context(), jobs[0]); err != nil || o.outcome(jobs[0]) != "sent and recorded" || len(s.all()) != 1 {
		t.Fatalf("%v, %s, %d mails", err, o.outcome(jobs[0]), len(s.all()))
	}
	_ = s.smtp.Close()
	o.Clock.Advance(domain.MailLife + time.Minute)
	if err := w.Work(t.Context(), jobs[1]); err != nil || !strings.HasPrefix(o.outcome(jobs[1]), "given up: ") {
		t.Errorf("%v, %s", err, o.outcome(jobs[1]))
	}
}

// TestTwoWorkers: of workers that are given the same mail at a time, one sends
// it, and another leaves it alone.
func TestTwoWorkers(t *testing.T) {
	o := newOffice(t)
	gate := make(chan struct{})
	s := startServer(t, "", func(s *server) { s.gate = gate })
	o.welcome("a@example.test", "en")
	w, j := o.worker(open(t, s.url())), o.jobs()[0]
	results := make(chan error, 5)
	var all sync.WaitGroup
	for range 5 {
		all.Go(func() { results <- w.Work(t.Context(), j) })
	}
	var snoozed *rivertype.JobSnoozeError
	for range 4 { // the fifth holds the mail until the gate opens
		if err := <-results; !errors.As(err, &snoozed) {
			t.Errorf("a worker without the mail: %v", err)
		}
	}
	close(gate)
	all.Wait()
	if err := <-results; err != nil || len(s.all()) != 1 || o.outcome(j) != "sent and recorded" {
		t.Errorf("%v, %d mails, %s", err, len(s.all()), o.outcome(j))
	}
}

// crashing is a sender whose process loses the database right after the server
// took the message.
type crashing struct {
	mail.Sender
	crash func()
}

func (c crashing) Send(ctx context.Context, m mail.Message) error {
	err := c.Sender.Send(ctx, m)
	c.crash()
	return err
}

// TestCrashAfterSending is the one window in which a mail goes out twice: the
// server has taken it, and nobody could write that down. The two are the same
// message.
func TestCrashAfterSending(t *testing.T) {
	o, s := newOffice(t), startServer(t, "", nil)
	o.welcome("a@example.test", "en")
	sender, j := open(t, s.url()), o.jobs()[0]
	lose := func() {
		o.Exec("SELECT pg_terminate_backend(pid, 60000) FROM pg_stat_activity WHERE datname = current_database() AND state = 'idle in transaction'")
	}
	if err := o.worker(crashing{sender, lose}).Work(t.Context(), j); err == nil || o.outcome(j) != "waiting" {
		t.Fatalf("%v, %s", err, o.outcome(j))
	}
	for range 2 {
		if err := o.worker(sender).Work(t.Context(), j); err != nil || o.outcome(j) != "sent and recorded" {
			t.Fatalf("%v, %s", err, o.outcome(j))
		}
	}
	mails := s.all()
	if len(mails) != 2 || parse(t, mails[0].data).Get("Message-ID") != parse(t, mails[1].data).Get("Message-ID") {
		t.Errorf("%d mails", len(mails))
	}
}

// TestCancelledAfterSending: the end of a job's time right after the server
// took the message does not undo that it is marked as sent.
func TestCancelledAfterSending(t *testing.T) {
	o, s := newOffice(t), startServer(t, "", nil)
	o.welcome("a@example.test", "en")
	ctx, cancel := context.WithCancel(t.Context())
	sender, j := open(t, s.url()), o.jobs()[0]
	if err := o.worker(crashing{sender, cancel}).Work(ctx, j); err != nil || o.outcome(j) != "sent and recorded" {
		t.Fatalf("%v, %s", err, o.outcome(j))
	}
}

// TestUnwanted: what became pointless meanwhile is not sent.
func TestUnwanted(t *testing.T) {
	o, s := newOffice(t), startServer(t, "", nil)
	left := o.welcome("left@example.test", "en")
	o.invite("late@example.test")
	o.Do("PATCH", "/v2/users/"+left.String(), o.tenant.Key, `{"status":"inactive"}`).Want(200)
	o.Clock.Advance(domain.InviteLife)
	jobs := o.jobs()
	for i, want := range []string{"the user is inactive", "the invite has expired"} {
		if err := o.worker(open(t, s.url())).Work(t.Context(), jobs[i]); err != nil || o.outcome(jobs[i]) != want {
			t.Errorf("%v, %s", err, o.outcome(jobs[i]))
		}
	}
	unknown := jobs[0]
	unknown.Args.Request = domain.MessageID{15: 1}
	var cancelled *rivertype.JobCancelError
	if err := o.worker(open(t, s.url())).Work(t.Context(), unknown); !errors.As(err, &cancelled) {
		t.Errorf("a mail that nobody asked for: %v", err)
	}
	if n := len(s.all()); n != 0 {
		t.Errorf("%d mails", n)
	}
}

// TestWhatMailsAreAbout: a reminder names its policy, an assignment its course
// and the day that it is due; neither is sent once its object is closed.
func TestWhatMailsAreAbout(t *testing.T) {
	o, s := newOffice(t), startServer(t, "", nil)
	user := o.User(o.tenant, o.client, "ada@example.test").ID
	policies := []domain.PolicyID{{15: 1}, {15: 2}}
	for i, archived := range []*time.Time{nil, &v2test.Noon} {
		o.Exec(`INSERT INTO policies (client_id, id, title, scope_type, scope_id, requires_acknowledgment, reviewed_at, archived_at, created_at, updated_at)
			VALUES ($1, $2, 'Clean desk', 'tenant', $1, true, $3, $4, $3, $3)`, o.client, policies[i], v2test.Noon, archived)
	}
	ask := func(kind domain.MessageType, policy *domain.PolicyID, course *string) *river.Job[job.SendMail] {
		j := &river.Job[job.SendMail]{JobRow: &rivertype.JobRow{Attempt: 1, MaxAttempts: 80}}
		j.Args = job.SendMail{Client: o.client, Request: db.NewID[domain.MessageKind]()}
		o.Exec("INSERT INTO mail_requests (client_id, id, type, user_id, policy_id, course_id, created_at) VALUES ($1, $2, $3, $4, $5, $6, $7)",
			o.client, j.Args.Request, kind, user, policy, course, v2test.Noon)
		return j
	}
	open1, foreign := "019b7740-0000-7000-8000-000000000001", "019b7740-0000-7000-8000-000000000007"
	w := o.worker(open(t, s.url()))
	for _, c := range []struct {
		job  *river.Job[job.SendMail]
		want string
	}{
		{ask(domain.PolicyReminder, &policies[0], nil), "sent and recorded"}, {ask(domain.PolicyReminder, &policies[1], nil), "the policy is archived"},
		{ask(domain.TrainingInvite, nil, &open1), "sent and recorded"}, {ask(domain.TrainingInvite, nil, &foreign), "the course is not open"},
	} {
		if err := w.Work(t.Context(), c.job); err != nil || o.outcome(c.job) != c.want {
			t.Errorf("%v, %s, not %s", err, o.outcome(c.job), c.want)
		}
	}
	o.Signal(domain.Signal{Type: domain.PolicySigned, User: user, Policy: policies[0], Version: 1, At: v2test.Noon})
	late := ask(domain.PolicyReminder, &policies[0], nil)
	if err := w.Work(t.Context(), late); err != nil || o.outcome(late) != "the policy is signed" {
		t.Errorf("a reminder to one who has signed: %v, %s", err, o.outcome(late))
	}
	mails := s.all()
	if len(mails) != 2 {
		t.Fatalf("%d mails", len(mails))
	}
	reminder, course := parse(t, mails[0].data), parse(t, mails[1].data)
	if !strings.Contains(reminder.text, "“Clean desk”") || !strings.Contains(reminder.text, policies[0].String()) ||
		!strings.Contains(course.text, "“Security awareness foundations”") || !strings.Contains(course.text, "29 June 2026") {
		t.Errorf("%s\n%s", reminder.text, course.text)
	}
}
