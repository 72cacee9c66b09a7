package phishing_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/riverqueue/river"
	"github.com/riverqueue/river/rivertype"

	"partnerapi/domain"
	"partnerapi/job"
	"partnerapi/platform/mail"
	"partnerapi/platform/phishing"
)

// slowServer is a mail server that does something with a mail before it takes
// it, or refuses it.
type slowServer struct {
	meanwhile func()
	err       error
}

func (s *slowServer) Send(context.Context, mail.Message) error { s.meanwhile(); return s.err }
func (s *slowServer) Close() error                             { return nil }

func (b *bait) workerWith(sender mail.Sender) *phishing.Worker {
	return phishing.NewWorker(b.DB, sender, phishing.NewComposer(public, b.tokens), b.log)
}

// scans are the steps that wait to be noted.
func (b *bait) scans() (all []*river.Job[job.NoteScan]) {
	b.t.Helper()
	rows, err := b.DB.SQL().Query("SELECT args FROM river_job WHERE kind = 'scan' ORDER BY id")
	b.must(err)
	defer rows.Close()
	for rows.Next() {
		var text []byte
		b.must(rows.Scan(&text))
		j := &river.Job[job.NoteScan]{JobRow: &rivertype.JobRow{Attempt: 1}}
		b.must(json.Unmarshal(text, &j.Args))
		all = append(all, j)
	}
	b.must(rows.Err())
	return all
}

// followAll does with a mail all that its links offer, twice, and returns the
// pages that did not answer.
func (b *bait) followAll(id domain.ResultID) (failed []string) {
	for range 2 {
		for _, r := range [][2]string{{"GET", "/open.gif"}, {"GET", ""}, {"POST", ""}, {"GET", "/report"}} {
			if page := b.request(r[0], "/t/"+b.tokens.For(id)+r[1], home, ""); page.Code != 200 {
				failed = append(failed, r[0]+r[1])
			}
		}
	}
	return failed
}

// TestScannedWhileHandedOver: a server that follows the links and waits for the
// pages before it takes the mail gets them at once; what it opens and clicks is
// kept as a scanner's, what it reports and submits is not.
func TestScannedWhileHandedOver(t *testing.T) {
	b := newBait(t)
	worker := phishing.NewScans(b.DB)
	j := b.schedule(own(t, 5, domain.English).ID)
	id := j.Args.Result
	server := &slowServer{meanwhile: func() {
		if failed := b.followAll(id); failed != nil {
			t.Errorf("not answered: %v", failed)
		}
		var snooze *rivertype.JobSnoozeError
		for _, s := range b.scans() {
			if err := worker.Work(t.Context(), s); !errors.As(err, &snooze) {
				t.Errorf("a step was noted while the mail was held: %v", err)
			}
		}
		b.Clock.Advance(20 * time.Second)
	}}
	b.must(b.workerWith(server).Work(t.Context(), j))
	if status, _, reported := b.state(id); status != "sent" || reported {
		t.Errorf("the mail is %s, reported %v", status, reported)
	}
	steps := b.scans()
	if len(steps) != 2 || steps[0].Args.Step != domain.MailOpened || steps[1].Args.Step != domain.MailClicked {
		t.Fatalf("%d steps wait", len(steps))
	}
	for range 2 {
		for _, s := range steps {
			b.must(worker.Work(t.Context(), s))
		}
	}
	if status, reason, reported := b.state(id); status != "clicked" || reason != "too_soon" || reported {
		t.Errorf("the mail is %s, %q, reported %v", status, reason, reported)
	}
	for what, query := range map[string]string{
		"is counted":                  "SELECT opened + clicked + credentials_submitted + reported FROM phishing_days",
		"happened before it was sent": "SELECT count(*) FROM phishing_results WHERE clicked_at < sent_at OR opened_at < sent_at",
		"is among the sent mails":     "SELECT count(*) - 1 FROM sent_emails",
	} {
		if n := b.Number(query); n != 0 {
			t.Errorf("%s: %d too many", what, n)
		}
	}
	b.Clock.Advance(time.Minute)
	if page := b.request("GET", "/t/"+b.tokens.For(id), home, ""); page.Code != 200 {
		t.Errorf("a person's click: %d", page.Code)
	}
	if status, reason, _ := b.state(id); status != "clicked" || reason != "" {
		t.Errorf("after a person's click: %s, %q", status, reason)
	}
}

// TestScannedButNotTaken: what was done with a mail that the server then did not
// take changes nothing, and nothing is taken note of while it is not sent.
func TestScannedButNotTaken(t *testing.T) {
	b := newBait(t)
	j := b.schedule(own(t, 5, domain.English).ID)
	id := j.Args.Result
	follow := func() {
		if failed := b.followAll(id); failed != nil {
			t.Errorf("not answered: %v", failed)
		}
	}
	unmoved := func(when string) {
		if status, reason, reported := b.state(id); status != "scheduled" || reason != "" || reported {
			t.Errorf("%s: %s, %q, reported %v", when, status, reason, reported)
		}
	}
	follow()
	if n := len(b.scans()); n != 0 {
		t.Errorf("before the mail was sent %d steps wait", n)
	}
	busy := &slowServer{follow, errors.New("421 come back later")}
	if err := b.workerWith(busy).Work(t.Context(), j); err == nil {
		t.Error("the mail was sent")
	}
	steps := b.scans()
	if len(steps) != 2 {
		t.Errorf("%d steps wait", len(steps))
	}
	for _, s := range steps {
		b.must(phishing.NewScans(b.DB).Work(t.Context(), s))
	}
	unmoved("after a try")
	b.must(b.workerWith(&slowServer{follow, &mail.RefusedError{Reason: "550 no"}}).Work(t.Context(), j))
	follow()
	unmoved("after a refusal")
}

// TestPagesLeaveRoom: a page waits for its turn and for the database no longer
// than it may, and then says so.
func TestPagesLeaveRoom(t *testing.T) {
	b := newBait(t)
	id := b.sent(1, domain.English)
	path := "/t/" + b.tokens.For(id)
	b.pages.AnswerWithin(20 * time.Millisecond)
	give := b.pages.TakeTurns()
	if page := b.request("GET", path, home, ""); page.Code != 503 {
		t.Errorf("without a turn: %d", page.Code)
	}
	give()
	b.must(b.DB.Tx(t.Context(), func(tx context.Context) error {
		if _, held, err := b.DB.HoldSimulation(tx, id); err != nil || !held {
			t.Errorf("held %v: %v", held, err)
		}
		if page := b.request("GET", path, home, ""); page.Code != 503 {
			t.Errorf("with a locked row: %d", page.Code)
		}
		return nil
	}))
	b.pages.AnswerWithin(time.Minute)
	for range 5 { // more than there are turns
		if page := b.request("GET", path, home, ""); page.Code != 200 {
			t.Errorf("afterwards: %d", page.Code)
		}
	}
}

// TestPostWithoutAForm: where the page asks for nothing, nothing can be submitted.
func TestPostWithoutAForm(t *testing.T) {
	b := newBait(t)
	id := b.sent(2, domain.English) // whose page is no form
	if page := b.request("POST", "/t/"+b.tokens.For(id), home, "password=x"); page.Code != 200 {
		t.Errorf("%d", page.Code)
	}
	if status, _, _ := b.state(id); status != "clicked" {
		t.Errorf("the mail is %s", status)
	}
}
