//go:build scale

package seed

import (
	"strings"
	"testing"

	"partnerapi/db"
	"partnerapi/db/dbtest/worldtest"
)

func TestLarge(t *testing.T) {
	t.Parallel()
	size := Size{Clients: 40, Users: 9000} // the largest client's users are written in several parts
	grow := func(d *db.DB, size Size) {
		t.Helper()
		var last, total int
		err := Large(t.Context(), d, size, func(done, of int) {
			if done <= last || done > of {
				t.Errorf("progress %d of %d after %d", done, of, last)
			}
			last, total = done, of
		})
		if err != nil {
			t.Fatal(err)
		}
		if last != total || total != size.Clients+size.Users {
			t.Errorf("progress ended at %d of %d", last, total)
		}
	}
	a, b := open(t, worldtest.Schema, noon), open(t, worldtest.Schema, noon)
	grow(a, size)
	size.Mails = true
	grow(b, size)
	without, with := contents(t, a), contents(t, b)
	delete(without, "sent_emails")
	delete(with, "sent_emails")
	wantSame(t, without, with)
	if n := value[int](t, b, "SELECT count(*) FROM sent_emails"); n < 10*size.Users {
		t.Errorf("%d mails were sent", n)
	}
	wantRecount(t, b)

	if n := value[int](t, a, "SELECT max(users_active + users_inactive) FROM clients"); n < size.Users/5 {
		t.Errorf("the largest client has %d users", n)
	}
	oldest := value[string](t, a, "SELECT name FROM clients ORDER BY created_at, id LIMIT 1")
	if !strings.HasSuffix(oldest, " 00001") {
		t.Errorf("the oldest client is %s", oldest)
	}
	idle := value[int](t, a, `SELECT count(*) FROM users AS u WHERE NOT EXISTS (
		SELECT FROM assignments AS a WHERE a.client_id = u.client_id AND a.user_id = u.id)`)
	if idle != 0 {
		t.Errorf("%d users have no training", idle)
	}
	for _, table := range []string{"phishing_results", "collection_members", "policy_signatures", "exposures"} {
		if value[int](t, a, "SELECT count(*) FROM "+table) < size.Users/50 {
			t.Errorf("few %s", table)
		}
	}

	grow(a, size)
	if n := value[int](t, a, "SELECT count(DISTINCT name_key) FROM clients"); n != 2*size.Clients {
		t.Errorf("%d clients after the second time", n)
	}
	if n := value[int](t, a, "SELECT count(*) FROM users"); n != 2*size.Users {
		t.Errorf("%d users after the second time", n)
	}
	if n := value[int](t, a, "SELECT count(*) FROM partners"); n != 1 {
		t.Errorf("%d partners", n)
	}
	wantRecount(t, a)
}
