package transfer_test

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"partnerapi/domain"
	"partnerapi/platform/transfer"
)

// never is a patience that does not end.
func never() <-chan time.Time { return nil }

// pipe is an input that a test holds open, and the ingestion of it.
type pipe struct {
	*io.PipeWriter
	began   chan struct{}  // a batch has its first line
	late    chan time.Time // ends the patience with the batch
	applied chan int       // the last line of each batch
	ended   chan error
	report  transfer.Ingested
}

func (p *signalWorld) pipe(ctx context.Context) *pipe {
	r, w := io.Pipe()
	live := &pipe{w, make(chan struct{}), make(chan time.Time), make(chan int), make(chan error, 1), transfer.Ingested{}}
	go func() {
		var err error
		live.report, err = transfer.IngestImpatiently(ctx, p.DB, r, transfer.Watcher{
			Read: func(lines int, _ int64) { live.applied <- lines },
		}, func() <-chan time.Time {
			live.began <- struct{}{}
			return live.late
		})
		live.ended <- err
	}()
	return live
}

// TestLivePipe: what came is applied when nothing more comes for a while, and a
// line is as far ahead as it is when it comes.
func TestLivePipe(t *testing.T) {
	t.Parallel()
	p := newSignalWorld(t)
	o := p.office(0)
	live := p.pipe(t.Context())
	for i, id := range []string{"a", "b"} {
		p.Clock.Set(noon.Add(time.Duration(i) * time.Hour))
		if _, err := io.WriteString(live, signalLine(id, domain.PolicyPublished, p.Clock.Now(), "policy_id", o.policies[0])+"\n"); err != nil {
			t.Fatal(err)
		}
		<-live.began
		live.late <- p.Clock.Now()
		if n := <-live.applied; n != i+1 {
			t.Errorf("%d lines are applied after %d", n, i+1)
		}
	}
	p.Must(live.Close())
	<-live.applied
	if err := <-live.ended; err != nil || live.report.Taken != 2 {
		t.Errorf("%+v, %v", live.report, err)
	}
}

// TestStopped: the end of its context ends an ingestion that waits for input;
// what is not applied by then is not taken.
func TestStopped(t *testing.T) {
	t.Parallel()
	p := newSignalWorld(t)
	o := p.office(0)
	ctx, stop := context.WithCancel(t.Context())
	live := p.pipe(ctx)
	defer live.Close()
	if _, err := io.WriteString(live, signalLine("a", domain.PolicyPublished, noon, "policy_id", o.policies[0])+"\n"); err != nil {
		t.Fatal(err)
	}
	<-live.began
	stop()
	if err := <-live.ended; !errors.Is(err, context.Canceled) || live.report != (transfer.Ingested{}) {
		t.Errorf("%+v, %v", live.report, err)
	}
}

// TestGivenUp: a batch that the database gives up for the sake of another
// transaction is tried again, five times in all.
func TestGivenUp(t *testing.T) {
	t.Parallel()
	p := newSignalWorld(t)
	o := p.office(0)
	p.Exec("CREATE SEQUENCE tries") // which a rollback does not set back
	p.Exec(`CREATE FUNCTION give_up() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
		IF nextval('tries') % 5 <> 0 THEN RAISE 'given up' USING ERRCODE = (ARRAY['40P01', '40001'])[1 + currval('tries') % 2]; END IF;
		RETURN NULL; END $$`)
	p.Exec("CREATE TRIGGER give_up AFTER INSERT ON signals FOR EACH STATEMENT EXECUTE FUNCTION give_up()")
	if got := p.ingest(publications(o, 1500)...); got.Taken != 1500 {
		t.Errorf("%+v", got)
	}
	p.Exec("SELECT setval('tries', 15)") // five tries fail from here
	p.Exec(`CREATE OR REPLACE FUNCTION give_up() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
		PERFORM nextval('tries'); RAISE 'given up' USING ERRCODE = '40P01'; END $$`)
	_, err := transfer.Ingest(t.Context(), p.DB, strings.NewReader(signalLine("x", domain.PolicyPublished, noon, "policy_id", o.policies[0])), transfer.Watcher{})
	if tries := p.text("SELECT last_value FROM tries"); !domain.IsCode(err, domain.Unavailable) || tries != "20" {
		t.Errorf("at %s tries: %v", tries, err)
	}
}

// reported is what is stored of the mails that an office's users reported.
const reported = `SELECT string_agg(concat_ws(' ', u.email, e.message_id, e.subject, e.classification, e.mailbox_action,
	e.reported_at::time, e.classified_at::time), E'\n' ORDER BY email, message_id)
	FROM reported_emails AS e JOIN users AS u ON u.id = e.user_id WHERE e.client_id = $1`

// TestReportedMail: one row for each user and message, the earliest report; the
// latest classification, which may come first, and may name a client.
func TestReportedMail(t *testing.T) {
	t.Parallel()
	p := newSignalWorld(t)
	o, other := p.office(2), p.office(1)
	at := noon.Add(-time.Hour)
	report := func(id string, user domain.UserID, message, subject string, at time.Time) string {
		return signalLine(id, domain.EmailReported, at, "user_id", user, "message_id", message, "subject", subject, "sender", "Who <who@example.com>")
	}
	classify := func(id, message, class string, at time.Time, more ...any) string {
		return signalLine(id, domain.EmailClassified, at, append(more, "message_id", message, "classification", class)...)
	}
	score := func() string { return p.text("SELECT score FROM users WHERE id = $1", o.users[0]) }
	before := score()

	got := p.ingest(
		report("1", o.users[0], "<a@x>", "first", at),
		report("2", o.users[0], "a@x", "later", at.Add(time.Minute)), // the same message
		report("3", o.users[1], " <a@x> ", "", at),
		report("4", other.users[0], "a@x", "elsewhere", at),
		classify("5", "<b@x>", "spam", at, "mailbox_action", "deleted"), // before it is reported
		classify("6", "b@x", "safe", at.Add(-time.Minute)),              // which is older
	)
	if got.Taken != 6 {
		t.Fatalf("%+v", got)
	}
	if pending := score(); pending <= before {
		t.Errorf("a pending report moved the score from %s to %s", before, pending)
	}

	p.ingest(
		report("7", o.users[0], "b@x", "b", at),
		classify("8", "a@x", "phishing", at.Add(2*time.Minute), "client_id", o.client),
		classify("9", "a@x", "spam", at.Add(time.Minute)),
	)
	if a, want := p.text(reported, o.client), strings.TrimSpace(`
0000@example.com a@x first phishing 11:00:00 11:02:00
0000@example.com b@x b spam deleted 11:00:00 11:00:00
0001@example.com a@x phishing 11:00:00 11:02:00`); strings.ReplaceAll(a, "  ", " ") != want {
		t.Errorf("stored\n%s\nnot\n%s", a, want)
	}
	if a, want := p.text(reported, other.client), "0000@example.com a@x elsewhere spam 11:00:00 11:01:00"; a != want {
		t.Errorf("of the other client %s, not %s", a, want)
	}
	if n := p.text("SELECT count(*) FROM events WHERE type = 'phishing.email.reported' AND object_id IN (SELECT id FROM reported_emails)"); n != "4" {
		t.Errorf("%s events", n)
	}
}

// TestReportedSimulation: the report of a simulated mail by the user who was sent
// it is one of that mail; by another it is of a real one.
func TestReportedSimulation(t *testing.T) {
	t.Parallel()
	p := newSignalWorld(t)
	o := p.office(2)
	at := noon.Add(-time.Hour)
	message := "<" + o.results[0].UUID() + "@partner.example>"
	for i, user := range o.users {
		got := p.ingest(signalLine(user.String(), domain.EmailReported, at, "user_id", user, "message_id", message, "subject", "S", "sender", "s"))
		if got.Taken != 1 {
			t.Fatalf("user %d: %+v", i, got)
		}
	}
	if got := p.text("SELECT string_agg(reported::text, ' ' ORDER BY reported) FROM phishing_results"); got != "false false false true" {
		t.Errorf("reported: %s", got)
	}
	if got := p.text(reported, o.client); !strings.HasPrefix(got, "0001@") || strings.Contains(got, "\n") {
		t.Errorf("stored %s", got)
	}
	early := signalLine("early", domain.EmailReported, noon.AddDate(0, 0, -4), "user_id", o.users[0], "message_id", message, "subject", "S", "sender", "s")
	if got := p.ingest(early); len(got.refused) != 1 || !strings.Contains(got.refused[0], "before the email was sent") {
		t.Errorf("a report before the sending: %+v", got)
	}
}
