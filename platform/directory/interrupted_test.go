package directory_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"partnerapi/db/dirsync"
	"partnerapi/db/pg"
	"partnerapi/domain"
	"partnerapi/platform/directory/directorytest"
)

// atPage calls do when the nth page is handed over, once. It returns the number of pages.
func (s *served) atPage(n int, do func()) (pages *int) {
	pages = new(0)
	s.before = func(context.Context, string) error {
		if *pages++; *pages == n {
			do()
		}
		return nil
	}
	return pages
}

// otherClient makes a client of its own the world's client.
func (w *world) otherClient(s *served) {
	w.t.Helper()
	w.client = w.AddClient(w.tenant, fmt.Sprint("Client ", w.Number("SELECT count(*) FROM clients"))).ID
	w.connect(w.client, s)
}

// TestRepeatedAfterRestart verifies that an account that Graph returns again on a later page, with only what has changed,
// keeps the properties of the page before a restart: on a first read, and on one after an expired position.
func TestRepeatedAfterRestart(t *testing.T) {
	amy := directorytest.Account{ID: "amy", Email: "amy@example.com", First: "Amy", Last: "Ames", Department: "Sales", Title: "Clerk"}
	ben := directorytest.Account{ID: "ben", Email: "ben@example.com", First: "Ben"}
	w := newWorld(t)
	s := serve(t, domain.Microsoft, amy, ben)
	s.SetPageSize(1)
	s.graph().Behave(directorytest.Behavior{Repeat: true, Minimal: true})
	w.connect(w.client, s)
	for _, title := range []string{"Moved", "Moved again"} {
		amy.Title = title
		s.atPage(1, func() { s.Put(amy) })
		run := w.syncKilled(t, 0)
		w.wantUsers("amy@example.com|Amy|Ames|Sales|"+title+"|-|active|standard|en|microsoft|Microsoft 365",
			"ben@example.com|Ben||-|-|-|active|standard|en|microsoft|Microsoft 365")
		if run.Error != nil || len(run.Skipped) > 0 {
			t.Errorf("the run is %+v", run)
		}
		s.graph().ForgetPositions()
	}
	if n := s.Requests("/users/delta"); n != 7 { // three pages, a refused position, three pages
		t.Errorf("got %d requests, want 7", n)
	}
	w.check()
}

// state lists the client's users and accounts.
func (w *world) state() []string {
	w.t.Helper()
	lines, err := pg.All[string](context.Background(), w.DB, "list accounts", pg.SQL(`
		SELECT concat_ws('|', d.object_id, u.email, d.account, d.unsettled)
		FROM directory_accounts AS d LEFT JOIN users AS u ON u.client_id = d.client_id AND u.id = d.user_id
		WHERE d.client_id = ? ORDER BY d.object_id`, w.client))
	w.must(err)
	return append(w.users(), lines...)
}

// TestPositionsOfRelease1_0 verifies that a connection whose position 1.0 stored is read from the start once, and so is a
// run that 1.0 left unfinished: 1.0 read other properties.
func TestPositionsOfRelease1_0(t *testing.T) {
	w := newWorld(t)
	for provider, position := range map[domain.Directory]string{
		domain.Microsoft: "changes %s/v1.0/users/delta?$deltatoken=x", domain.Google: "x",
	} {
		boss, bob := ada, bob
		s := serve(t, provider, boss, bob, directorytest.Account{ID: "c", Email: "c@example.com", NoMailbox: true})
		w.otherClient(s)
		w.sync()
		if provider == domain.Microsoft {
			position = fmt.Sprintf(position, s.Endpoints().Graph)
		}
		before := s.Requests(list[provider])
		w.Exec("UPDATE directory_connections SET position = $2 WHERE client_id = $1", w.client, position)
		bob.Title = "Moved"
		s.Put(bob)
		w.sync()
		if n := s.Requests(list[provider]) - before; n != 2 {
			t.Errorf("%s: got %d requests for a whole read, want 2", provider, n)
		}

		// A run that 1.0 began to read: it goes on with the second page, and has staged the first.
		lease, err := dirsync.Start(t.Context(), w.DB, w.client, false, time.Minute)
		w.must(err)
		w.Exec(`UPDATE sync_runs SET position = $2, from_start = true WHERE client_id = $1 AND status = 'running'`, w.client, strings.Replace(position, "changes", "all", 1))
		w.Exec(`INSERT INTO sync_accounts (client_id, object_id, account, phase)
			SELECT client_id, object_id, account || '{"first": "", "last": ""}', 2 FROM directory_accounts WHERE client_id = $1`, w.client)
		lease.Position, lease.StartedOver = strings.Replace(position, "changes", "all", 1), true // a 410 has happened too
		run, err := w.runner.Work(t.Context(), lease, nil)
		w.must(err)
		if run.Status != domain.SyncCompleted {
			t.Errorf("%s: the run is %+v", provider, run)
		}
		moved := strings.Replace(bobLine, "|-|ada@", "|Moved|ada@", 1)
		if got := w.users(); len(got) < 2 || got[0] != adaLine(provider) || got[1] != moved {
			t.Errorf("%s: got\n%s", provider, strings.Join(got, "\n"))
		}
	}
	w.check()
}
