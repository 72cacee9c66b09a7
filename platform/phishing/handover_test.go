package phishing_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"partnerapi/db/pg"
	"partnerapi/domain"
	"partnerapi/platform/mail"
)

// slowServer is a mail server that does something with a mail before it takes
// it, or refuses it.
type slowServer struct {
	meanwhile func()
	err       error
}

func (s *slowServer) Send(context.Context, mail.Message) error { s.meanwhile(); return s.err }
func (s *slowServer) Close() error                             { return nil }

// followAll does with a mail all that its links offer, twice, and returns the
// pages that did not answer.
func (b *bait) followAll(id domain.ResultID) (failed []string) {
	for range 2 {
		for _, r := range [][2]string{{"GET", "/open.gif"}, {"GET", ""}, {"POST", ""}, {"GET", "/report"}, {"POST", "/report"}} {
			if page := b.request(r[0], "/t/"+b.tokens.Token(id)+r[1], home, ""); page.Code != 200 {
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
	t.Parallel()
	b := newBait(t)
	id := b.schedule(own(t, 5, domain.English).ID)
	server := &slowServer{meanwhile: func() {
		if failed := b.followAll(id); failed != nil {
			t.Errorf("not answered: %v", failed)
		}
		if status, reason, _ := b.state(id); status != "scheduled" || reason != "" {
			t.Errorf("before it is sent the mail is %s, %q", status, reason)
		}
		b.Clock.Advance(20 * time.Second)
	}}
	if outcome, err := b.deliver(server); err != nil || outcome != mail.Sent {
		t.Errorf("%s, %v", outcome, err)
	}
	if status, reason, reported := b.state(id); status != "sent" || reason != "fast" || reported {
		t.Errorf("the mail is %s, %q, reported %v", status, reason, reported)
	}
	for what, query := range map[string]string{
		"is counted":              "SELECT opened + clicked + credentials_submitted + reported FROM phishing_days",
		"has a time":              "SELECT count(*) FROM phishing_results WHERE coalesce(clicked_at, opened_at) IS NOT NULL",
		"is among the sent mails": "SELECT count(*) - 1 FROM sent_emails",
	} {
		if n := b.Number(query); n != 0 {
			t.Errorf("%s: %d too many", what, n)
		}
	}
	b.Clock.Advance(time.Minute)
	if page := b.request("GET", "/t/"+b.tokens.Token(id), home, ""); page.Code != 200 {
		t.Errorf("a person's click: %d", page.Code)
	}
	if status, reason, _ := b.state(id); status != "clicked" || reason != "fast" {
		t.Errorf("after a person's click: %s, %q", status, reason)
	}
}

// TestScannedButNotTaken: what was done with a mail that the server then did not
// take is not kept, nor is anything that is done while it is not handed over. What is
// refused for good, given up, or no longer wanted is recorded as failed, and shown.
func TestScannedButNotTaken(t *testing.T) {
	t.Parallel()
	b := newBait(t)
	id := b.schedule(own(t, 5, domain.English).ID)
	follow := func() {
		if failed := b.followAll(id); failed != nil {
			t.Errorf("not answered: %v", failed)
		}
	}
	unmoved := func(when, want string) {
		status, reason, reported := b.state(id)
		if n := b.Number("SELECT count(*) FROM outbox WHERE scanned IS NOT NULL"); n != 0 || status != want || reason != "" || reported {
			t.Errorf("%s: %s, %q, reported %v, %d scans noted", when, status, reason, reported, n)
		}
	}
	follow()
	unmoved("before a try", "scheduled")
	if _, err := b.deliver(&slowServer{follow, errors.New("421 come back later")}); err == nil {
		t.Error("the mail was sent")
	}
	follow()
	unmoved("after a try", "scheduled")
	b.Clock.Advance(time.Minute)
	if outcome, err := b.deliver(&slowServer{follow, &mail.RefusedError{Reason: "550 no"}}); err != nil || outcome != mail.Failed {
		t.Errorf("%s, %v", outcome, err)
	}
	follow()
	unmoved("after a refusal", "failed")

	late := b.schedule(own(t, 1, domain.English).ID)
	b.Clock.Advance(domain.MailLife + time.Minute)
	if outcome, err := b.deliver(&slowServer{func() {}, errors.New("421 come back later")}); err != nil || outcome != mail.Failed {
		t.Errorf("the last try: %s, %v", outcome, err)
	}
	unwanted := b.schedule(own(t, 1, domain.English).ID)
	b.Exec("UPDATE users SET status = 'inactive' WHERE id = $1", b.user.ID)
	if outcome, err := b.deliver(b.sender); err != nil || outcome != mail.Failed {
		t.Errorf("an inactive user: %s, %v", outcome, err)
	}
	for _, id := range []domain.ResultID{late, unwanted} {
		if status, _, _ := b.state(id); status != "failed" {
			t.Errorf("%s", status)
		}
	}
	shown := b.Get("/v2/clients/"+b.client.String()+"/phishing/results?status=failed,sent", b.tenant.Key).Want(200).Field("data").([]any)
	for i, want := range []string{"permanently refused", "given up", "the user is inactive"} {
		if row := shown[i].(map[string]any); len(shown) != 3 || row["failure"] != want || row["failed_at"] == nil {
			t.Errorf("got %v, want the failure %q", row, want)
		}
	}
	if n := b.Number("SELECT count(*) FROM phishing_results WHERE failure IN ('permanently refused: 550 no', 'given up: 421 come back later')"); n != 2 {
		t.Errorf("got %d causes for the operator, want 2", n)
	}
	if n := b.Number("SELECT count(*) FROM events WHERE type = 'phishing.result.updated'"); n != 0 {
		t.Errorf("%d events", n)
	}
}

// TestFloodOfLink verifies that requests for one link from one address, which all wait for a locked row, leave slots for
// other readers, and nothing is kept of them afterwards.
func TestFloodOfLink(t *testing.T) {
	t.Parallel()
	b := newBait(t)
	flooded, other := b.sent(1, domain.English), b.sent(1, domain.English)
	b.pages.AnswerWithin(time.Minute)
	var flood sync.WaitGroup
	b.must(b.DB.Tx(t.Context(), func(tx context.Context) error {
		if _, err := pg.Exec(tx, b.DB, "lock", pg.SQL("SELECT 1 FROM phishing_results WHERE id = ? FOR UPDATE", flooded)); err != nil {
			t.Error(err)
		}
		for range 24 {
			flood.Go(func() {
				if page := b.request("GET", "/t/"+b.tokens.Token(flooded), "192.0.2.7:1", ""); page.Code != 200 {
					t.Errorf("a request of the flood: %d", page.Code)
				}
			})
		}
		b.pages.AwaitTurns(24)
		if page := b.request("GET", "/t/"+b.tokens.Token(other), home, ""); page.Code != 200 {
			t.Errorf("another reader: %d", page.Code)
		}
		return nil
	}))
	flood.Wait()
	b.pages.AwaitTurns(0)
}

// TestPagesLeaveRoom: a page waits for its turn and for the database no longer
// than it may, and then says so.
func TestPagesLeaveRoom(t *testing.T) {
	t.Parallel()
	b := newBait(t)
	id := b.sent(1, domain.English)
	path := "/t/" + b.tokens.Token(id)
	b.pages.AnswerWithin(20 * time.Millisecond)
	give := b.pages.TakeTurns()
	if page := b.request("GET", path, home, ""); page.Code != 503 {
		t.Errorf("without a turn: %d", page.Code)
	}
	give()
	b.must(b.DB.Tx(t.Context(), func(tx context.Context) error {
		if _, err := pg.Exec(tx, b.DB, "lock", pg.SQL("SELECT 1 FROM phishing_results WHERE id = ? FOR UPDATE", id)); err != nil {
			t.Error(err)
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
