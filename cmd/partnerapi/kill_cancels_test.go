//go:build slow

package main

import (
	"fmt"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"
)

// results are those of the simulations that the service answered.
func (s *sends) results() (ids []string) {
	for _, u := range s.users {
		if u.result != "" {
			ids = append(ids, u.result)
		}
	}
	return ids
}

// cancel cancels simulations, and returns how many are cancelled, and the statuses of the others. It is false where the
// service died.
func (s *sends) cancel(r *running, results ...string) (cancelled int, others map[string]string, alive bool) {
	s.t.Helper()
	answer, err := r.client.try("POST", "/v2/clients/"+s.client+"/phishing/sends/cancel", s.key, fields{"result_ids": results})
	if err != nil {
		return 0, nil, false
	}
	out := into[struct {
		CancelledCount int `json:"cancelled_count"`
		NotCancelled   []struct {
			ResultID string `json:"result_id"`
			Status   string
		} `json:"not_cancelled"`
	}](answer.want(http.StatusOK))
	others = map[string]string{}
	for _, n := range out.NotCancelled {
		others[n.ResultID] = n.Status
	}
	return out.CancelledCount, others, true
}

// wantSentOrCancelled wants of each simulation that it is marked as sent and some mail server accepted it, or that it
// is cancelled and none did. It returns how many are cancelled.
func (d *witness) wantSentOrCancelled(offices ...*postOffice) (cancelled int) {
	d.t.Helper()
	rows, err := d.conn.QueryContext(d.t.Context(), "SELECT id::text, status, coalesce(failure, '') FROM phishing_results")
	if err != nil {
		d.t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var id, status, failure string
		if err := rows.Scan(&id, &status, &failure); err != nil {
			d.t.Fatal(err)
		}
		accepted := 0
		for _, o := range offices {
			accepted += o.count(id)
		}
		switch {
		case status == "sent" && accepted > 0:
		case status == "failed" && failure == "cancelled" && accepted == 0:
			cancelled++
		default:
			d.t.Errorf("the mail of a result that is %s (%q) was accepted %d times", status, failure, accepted)
		}
	}
	if err := rows.Err(); err != nil {
		d.t.Fatal(err)
	}
	return cancelled
}

// finishSends starts a service after a kill, which cancels results at once, and sends what is left when two minutes have
// passed. It returns its mail server, too.
func (s *sends) finishSends(d *witness, results ...string) (*running, *postOffice) {
	s.t.Helper()
	after := openPostOffice(s.t, func(_ letter, take func()) bool {
		take()
		return true
	})
	r := s.serve(after)
	if len(results) > 0 {
		s.cancel(r, results...)
	}
	d.exec("UPDATE outbox SET due_at = due_at - interval '2 minutes' WHERE lease IS NOT NULL")
	d.until(0, "SELECT count(*) FROM outbox")
	return r, after
}

// TestCancelsOutliveKill kills the service with mails of every fate. Only those that were never claimed are cancelled,
// before the kill and after it.
func TestCancelsOutliveKill(t *testing.T) {
	t.Parallel()
	s := newSends(t)
	gone := make(chan struct{})
	office := openPostOffice(t, byFate(nil, gone))
	leave := sync.OnceFunc(func() { close(gone) })
	t.Cleanup(leave)
	first := s.serve(office, fmt.Sprintf("--workers=%d", 2*mailsOfFate))
	d := s.look()

	s.askFor(first, "settled")
	d.until(0, "SELECT count(*) FROM outbox")
	s.askFor(first, "accepted", "arriving")
	office.await(func() bool { return office.offered == 3*mailsOfFate })
	s.askFor(first, "queued")
	n, others, _ := s.cancel(first, s.results()...)
	for _, u := range s.users {
		want := map[string]string{"settled": "sent", "accepted": "scheduled", "arriving": "scheduled"}[fateOf(u.email)]
		if others[u.result] != want {
			t.Errorf("%s is not cancelled, but %q", u.email, others[u.result])
		}
	}
	if n != usersOfFate {
		t.Errorf("%d are cancelled", n)
	}
	first.kill()
	leave()
	office.close()

	r, after := s.finishSends(d, s.results()...)
	if n := d.wantSentOrCancelled(office, after); n != usersOfFate {
		t.Errorf("after the kill %d are cancelled", n)
	}
	r.finish()
}

// TestCancelsOutliveCrash kills the service while it sends mails from the first on, and cancels them from the last on.
// Each is sent or cancelled.
func TestCancelsOutliveCrash(t *testing.T) {
	t.Parallel()
	const accepted, users = 30, 60
	s := newSends(t)
	var first *running
	started := make(chan struct{})
	var office *postOffice
	kill := sync.OnceFunc(func() { first.kill() })
	office = openPostOffice(t, func(_ letter, take func()) bool {
		<-started
		take()
		if len(office.all()) >= accepted {
			kill()
		}
		return true
	})
	first = s.serve(office, "--workers=4")
	for i := range users {
		if !s.ask(first, fmt.Sprintf("user%d@example.com", i)) {
			t.Fatalf("the service died:\n%s", first.logs)
		}
	}
	close(started)
	results := s.results()
	slices.Reverse(results)
	for some := range slices.Chunk(results, 3) {
		if _, _, alive := s.cancel(first, some...); !alive {
			break
		}
	}
	select {
	case <-first.ended:
	case <-time.After(patience):
		t.Fatalf("%d mails were accepted", len(office.all()))
	}
	office.close()

	d := s.look()
	r, after := s.finishSends(d)
	t.Logf("%d of %d simulations are cancelled", d.wantSentOrCancelled(office, after), users)
	r.finish()
}
