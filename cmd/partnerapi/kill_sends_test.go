//go:build slow

package main

import (
	"database/sql"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"partnerapi/cmd/internal/database"
	"partnerapi/db"
)

// fates are where a kill can find a mail: had the mail server accepted it, and
// was it marked as sent? What was accepted and not marked arrives twice; that is
// the one window for a repetition (docs/operate/emails.md). status is why the simulated one
// cannot be cancelled; empty where it can.
var fates = map[string]struct {
	accepted, marked bool
	status           string
}{
	"settled":   {true, true, "sent"},
	"answered":  {true, false, "scheduled"},  // the service knows, and waits to mark it
	"accepted":  {true, false, "scheduled"},  // the service does not know
	"arriving":  {false, false, "scheduled"}, // the mail server has all of it, and did not say a word
	"queued":    {false, false, ""},          // it was not claimed
	"cancelled": {false, false, ""},          // nor was this, and its simulation is cancelled
}

const (
	mailsOfFate = 2 * usersOfFate // a welcome mail and a simulation for each
	usersOfFate = 3
	// underWay is how many mails of the fates between "settled" and "queued"
	// there are: as many as there are workers.
	underWay = 3 * mailsOfFate
)

// TestSendsOutliveKill kills the service with mails of every fate. The next one
// sends what was not marked, once, and nothing else. Only simulations that were never
// claimed are cancelled, before the kill and after it.
func TestSendsOutliveKill(t *testing.T) {
	t.Parallel()
	s := newSends(t)
	release, gone := make(chan struct{}), make(chan struct{})
	office := openPostOffice(t, byFate(release, gone))
	leave := sync.OnceFunc(func() { close(gone) })
	t.Cleanup(leave)
	first := s.serve(office, fmt.Sprintf("--workers=%d", underWay))
	d := s.look()

	s.askFor(first, "settled")
	d.until(0, "SELECT count(*) FROM outbox")
	s.askFor(first, "answered", "accepted", "arriving")
	office.await(func() bool { return office.offered == mailsOfFate+underWay })
	s.askFor(first, "queued", "cancelled")
	n, others, _ := s.cancel(first, s.results("settled", "accepted", "arriving", "cancelled")...)
	for _, u := range s.users {
		if fate := fateOf(u.email); fate != "queued" && fate != "answered" && others[u.result] != fates[fate].status {
			t.Errorf("%s is not cancelled, but %q", u.email, others[u.result])
		}
	}
	if n != usersOfFate {
		t.Errorf("%d are cancelled", n)
	}
	d.exec("BEGIN")
	d.exec("SELECT FROM users WHERE email LIKE 'answered%' FOR UPDATE") // no mail to these is recorded
	close(release)
	office.await(func() bool { return len(office.taken) == 3*mailsOfFate })
	d.until(1, "SELECT count(DISTINCT pid) FROM pg_locks WHERE NOT granted AND locktype = 'transactionid'")
	first.kill()
	d.hangUp() // before the locks go: what waits for them is not done by the dead
	d.exec("ROLLBACK")
	leave()
	office.close()

	d.until(underWay, "SELECT count(*) FROM outbox WHERE lease IS NOT NULL")
	d.until(mailsOfFate+usersOfFate, "SELECT count(*) FROM outbox WHERE lease IS NULL")
	rows := d.mails()
	for _, row := range rows {
		want := fates[fateOf(row.email)]
		if n := office.count(row.id); row.marked != want.marked || n > 1 || (n == 1) != want.accepted {
			t.Errorf("the kill finds mail to %s accepted %d times, marked %t", row.email, n, row.marked)
		}
	}
	if len(rows) != len(fates)*mailsOfFate {
		t.Errorf("%d mails", len(rows))
	}
	s.goOn(d, office, s.results("answered", "accepted", "arriving")...)
}

// byFate handles each mail as its fate wants, until the service is gone.
func byFate(release, gone <-chan struct{}) func(letter, func()) bool {
	return func(l letter, take func()) bool {
		switch fateOf(l.to) {
		case "answered":
			select {
			case <-release:
			case <-gone:
				return false
			}
		case "accepted":
			take()
			<-gone
			return false
		case "arriving":
			<-gone
			return false
		}
		take()
		return true
	}
}

// fateOf reads an address: settled2@example.com is the third one's of a fate.
func fateOf(email string) string {
	return strings.TrimRight(strings.TrimSuffix(email, "@example.com"), "0123456789")
}

// TestSendsOutliveCrash kills the service and its database at full speed, right
// when a mail was accepted and while requests are in progress, of which some cancel
// simulations. Whatever that finds, the next one sends what was not marked, once, and
// nothing else: each simulation is sent or cancelled.
func TestSendsOutliveCrash(t *testing.T) {
	t.Parallel()
	const accepted, users = 40, 150
	s := newSends(t)
	var first *running
	started := make(chan struct{})
	var office *postOffice
	kill := sync.OnceFunc(func() { first.kill() })
	office = openPostOffice(t, func(_ letter, take func()) bool {
		take()
		<-started
		if len(office.all()) >= accepted {
			kill()
		}
		return true
	})
	first = s.serve(office)
	close(started)
	for i := range users {
		if !s.ask(first, fmt.Sprintf("user%d@example.com", i)) {
			break // it was killed
		}
		if _, _, alive := s.cancel(first, s.users[i-i%3].result); !alive {
			break
		}
	}
	select {
	case <-first.ended:
	case <-time.After(patience):
		t.Fatalf("%d mails were accepted", len(office.all()))
	}
	killServer(t, s.dir)
	office.close()
	s.goOn(s.look(), office)
}

// sends are mails that a service was asked for, two for each user.
type sends struct {
	t                *testing.T
	dir, key, client string
	users            []recipient
}

// recipient is a user, and the result of a simulation as the service answered; empty where it did not.
type recipient struct{ email, result string }

func newSends(t *testing.T) *sends {
	s := &sends{t: t, dir: dataDir(t)}
	must(t, "migrate", "--data-dir="+s.dir)
	must(t, "partners", "create", "Acme", "--data-dir="+s.dir)
	s.key = strings.TrimSpace(must(t, "keys", "create", "--data-dir="+s.dir, "--name=sends", "--clients=all", "--scopes=read,write"))
	return s
}

// newClient makes the client Acme, and returns its id.
func (s *sends) newClient(r *running) string {
	s.t.Helper()
	return into[identified](r.do("POST", "/v2/clients", s.key, fields{"name": "Acme"}).want(http.StatusCreated)).ID
}

// serve starts a service that sends to a mail server.
func (s *sends) serve(office *postOffice, args ...string) *running {
	s.t.Helper()
	return process(s.t, s.dir, append(args, "--release=latest",
		fmt.Sprintf("--smtp-url=smtp://%s?connections=%d", office.address, underWay))...)
}

// ask creates a user who is welcomed by mail, and has a simulated one sent to
// them. It is false where the service died.
func (s *sends) ask(r *running, email string) bool {
	s.t.Helper()
	if s.client == "" {
		s.client = s.newClient(r)
	}
	answer, err := r.client.try("POST", "/v2/clients/"+s.client+"/users", s.key, fields{"email": email, "send_welcome_email": true})
	if err != nil {
		return false
	}
	u, id := recipient{email: email}, into[identified](answer.want(http.StatusCreated)).ID
	answer, err = r.client.try("POST", "/v2/clients/"+s.client+"/phishing/sends", s.key, fields{"user_ids": []string{id}})
	if err == nil {
		u.result = into[struct {
			Sends []struct {
				ResultID string `json:"result_id"`
			}
		}](answer.want(http.StatusAccepted)).Sends[0].ResultID
	}
	s.users = append(s.users, u)
	return err == nil
}

// results are those of the simulations to users of fates.
func (s *sends) results(fates ...string) (ids []string) {
	for _, u := range s.users {
		if slices.Contains(fates, fateOf(u.email)) {
			ids = append(ids, u.result)
		}
	}
	return ids
}

// cancel cancels simulations, and returns how many are cancelled, and the statuses of the
// others. It is false where the service died.
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

// askFor asks for the mails of fates.
func (s *sends) askFor(r *running, fates ...string) {
	s.t.Helper()
	for _, fate := range fates {
		for i := range usersOfFate {
			if !s.ask(r, fmt.Sprintf("%s%d@example.com", fate, i)) {
				s.t.Fatalf("the service died:\n%s", r.logs)
			}
		}
	}
}

// goOn starts the service again after a kill, wants it to cancel none of the claimed
// simulations, and lets two minutes pass. Each mail that was neither marked nor cancelled
// arrives then, and no other.
func (s *sends) goOn(d *witness, before *postOffice, claimed ...string) {
	s.t.Helper()
	rows := d.mails()
	unmarked := 0
	for _, row := range rows {
		if !row.marked && !row.cancelled {
			unmarked++
		}
	}
	after := openPostOffice(s.t, takeAll)
	d.exec("CREATE TEMP TABLE dead AS SELECT lease FROM outbox WHERE lease IS NOT NULL")
	r := s.serve(after)
	if len(claimed) > 0 {
		if n, _, _ := s.cancel(r, claimed...); n > 0 {
			s.t.Errorf("%d of the claimed simulations are cancelled", n)
		}
	}
	d.exec("UPDATE outbox SET due_at = due_at - interval '2 minutes' WHERE lease IN (SELECT lease FROM dead)")
	after.await(func() bool { return len(after.taken) >= unmarked })
	d.until(0, "SELECT count(*) FROM outbox")
	repeated := 0
	for _, row := range rows {
		first, then, want := before.count(row.id), after.count(row.id), 1
		if row.marked || row.cancelled {
			want = 0
		}
		if first > 1 || row.marked && first != 1 || row.cancelled && first != 0 || then != want {
			s.t.Errorf("mail to %s, %+v, was accepted %d times and then %d times", row.email, row, first, then)
		}
		repeated += first * then
	}
	for _, l := range append(before.all(), after.all()...) {
		if !slices.ContainsFunc(rows, func(row mailRow) bool { return row.id == l.id && row.email == l.to }) {
			s.t.Errorf("nobody asked for %+v", l)
		}
	}
	s.t.Logf("%d mails, %d to be sent after the kill, %d repeated", len(rows), unmarked, repeated)
	for _, row := range d.mails() {
		if row.marked == row.cancelled {
			s.t.Errorf("mail to %s is %+v", row.email, row)
		}
	}
	r.finish()
}

// witness looks into the database of a service that may be dead, on a
// connection of its own.
type witness struct {
	t    *testing.T
	conn *sql.Conn
}

// look joins the database of the data directory, or starts it, until the test's end.
func (s *sends) look() *witness {
	s.t.Helper()
	d, leave := lookInto(s.t, s.dir)
	s.t.Cleanup(leave)
	return d
}

// lookInto looks into the database of a data directory until leave is called.
func lookInto(t *testing.T, dir string) (w *witness, leave func()) {
	t.Helper()
	d, shut := joined(t, dir)
	conn, err := d.SQL().Conn(t.Context()) // the one that the pool has
	if err != nil {
		t.Fatal(err)
	}
	return &witness{t, conn}, func() {
		_ = conn.Close()
		shut()
	}
}

// joined joins the database of a data directory, or starts it, until leave is called.
func joined(t *testing.T, dir string) (d *db.DB, leave func()) {
	t.Helper()
	d, shut, err := database.Flags{DataDir: dir}.Connect(t.Context(), io.Discard, nil)
	if err != nil {
		t.Fatal(err)
	}
	return d, func() {
		if err := shut(); err != nil {
			t.Error(err)
		}
	}
}

func (d *witness) exec(statement string) {
	d.t.Helper()
	if _, err := d.conn.ExecContext(d.t.Context(), statement); err != nil {
		d.t.Fatalf("%s: %v", statement, err)
	}
}

// until waits for a query to give a number.
func (d *witness) until(want int, query string, args ...any) {
	d.t.Helper()
	await(d.t, fmt.Sprint(want, " is ", query, args), func() bool { return d.number(query, args...) == want })
}

// number is what a query gives.
func (d *witness) number(query string, args ...any) (n int) {
	d.t.Helper()
	if err := d.conn.QueryRowContext(d.t.Context(), query, args...).Scan(&n); err != nil {
		d.t.Fatalf("%s: %v", query, err)
	}
	return n
}

// hangUp ends the connections of the dead, of which a server that waits for a
// lock takes no notice.
func (d *witness) hangUp() {
	d.t.Helper()
	const others = " FROM pg_stat_activity WHERE datname = current_database() AND backend_type = 'client backend' AND pid <> pg_backend_pid()"
	d.exec(fmt.Sprintf("SELECT pg_terminate_backend(pid, %d)", patience.Milliseconds()) + others)
	d.exec("SELECT pg_stat_clear_snapshot()")
	d.until(0, "SELECT count(*)"+others)
}

// mailRow is a mail that was asked for.
type mailRow struct {
	id, email         string
	marked, cancelled bool
}

func (d *witness) mails() (all []mailRow) {
	d.t.Helper()
	rows, err := d.conn.QueryContext(d.t.Context(), `
		SELECT m.id::text, u.email, m.sent_at IS NOT NULL, m.cancelled
		FROM (SELECT client_id, user_id, id, sent_at, false AS cancelled FROM mail_requests
			UNION ALL SELECT client_id, user_id, id, sent_at, coalesce(status = 'failed' AND failure = 'cancelled', false) FROM phishing_results) AS m
		JOIN users AS u ON u.client_id = m.client_id AND u.id = m.user_id`)
	if err != nil {
		d.t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var row mailRow
		if err := rows.Scan(&row.id, &row.email, &row.marked, &row.cancelled); err != nil {
			d.t.Fatal(err)
		}
		all = append(all, row)
	}
	if err := rows.Err(); err != nil {
		d.t.Fatal(err)
	}
	return all
}
