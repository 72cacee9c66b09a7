package directory_test

import (
	"fmt"
	"strings"
	"testing"

	"partnerapi/domain"
	"partnerapi/platform/directory/directorytest"
)

// managers lists the managers' email addresses of the client's users, by their own.
func (w *world) managers() string {
	w.t.Helper()
	var list []string
	for _, line := range w.users() {
		parts := strings.Split(line, "|")
		name := func(email string) string { return strings.TrimSuffix(email, "@example.com") }
		list = append(list, name(parts[0])+"<"+name(parts[5]))
	}
	return strings.Join(list, " ")
}

// TestManagers verifies that users follow whatever happens to their managers, in the run that reads it: another manager,
// none, another email address, a manager who is deleted, restored or disabled, and people who manage each other.
func TestManagers(t *testing.T) {
	for provider := range list {
		w := newWorld(t)
		account := func(id, manager string) directorytest.Account {
			return directorytest.Account{ID: id, Email: id + "@example.com", First: id, Manager: manager}
		}
		s := serve(t, provider, account("a", ""), account("b", "a"), account("c", "a"), account("d", "b"), account("e", "x"))
		w.connect(w.client, s)
		want := func(what, managers string) {
			t.Helper()
			w.sync()
			if got := w.managers(); got != managers {
				t.Errorf("%s, %s: got %s, want %s", provider, what, got, managers)
			}
		}
		want("at first", "a<- b<a c<a d<b e<-")
		s.Put(account("d", "c"))
		want("another manager", "a<- b<a c<a d<c e<-")
		s.Put(account("c", ""))
		want("no manager", "a<- b<a c<- d<c e<-")
		s.Put(account("c", "a"))
		want("a manager again", "a<- b<a c<a d<c e<-")

		moved := account("a", "")
		moved.Email = "z@example.com"
		s.Put(moved)
		want("another email address", "b<z c<z d<c e<- z<-")
		s.Put(account("a", ""))
		want("the old email address", "a<- b<a c<a d<c e<-")
		invalid := account("a", "")
		invalid.Email = "nobody"
		s.Put(invalid)
		want("an invalid email address", "a<- b<- c<- d<c e<-")
		s.Put(account("a", ""))
		want("a valid one again", "a<- b<a c<a d<c e<-")

		s.Remove("a")
		want("a deleted manager", "a<- b<- c<- d<c e<-")
		retitled := account("b", "a") // which asks for the manager again
		retitled.Title = "Clerk"
		s.Put(retitled)
		want("a change below a deleted manager", "a<- b<- c<- d<c e<-")
		s.Put(account("a", ""))
		want("a restored manager", "a<- b<a c<a d<c e<-")
		off := account("a", "")
		off.Disabled = true
		s.Put(off)
		want("a disabled manager", "a<- b<a c<a d<c e<-")
		s.Purge("a")
		want("a manager deleted for good", "a<- b<- c<- d<c e<-")

		s.Put(account("c", "d"), account("d", "c"), account("e", "e"))
		want("people who manage each other", "a<- b<- c<d d<c e<e")
		w.check()
	}
}

// TestManagersAfterFailure verifies that users follow their manager in the next run if one fails after it has applied what
// happened to the manager: another email address, or the deletion of the account. The run between them fails too, while
// it reads.
func TestManagersAfterFailure(t *testing.T) {
	for provider := range list {
		for change, want := range map[string]string{"moved": "b<z c<z z<-", "deleted": "a<- b<- c<-"} {
			w := newWorld(t)
			account := func(id, manager string) directorytest.Account {
				return directorytest.Account{ID: id, Email: id + "@example.com", First: id, Manager: manager}
			}
			s := serve(t, provider, account("a", ""), account("b", "a"), account("c", "a"))
			s.SetPageSize(5)
			w.connect(w.client, s)
			w.sync()
			w.runner.SetBatchSize(1)
			moved := account("a", "")
			moved.Email = "z@example.com"
			if s.Put(moved); change == "deleted" {
				s.Remove("a")
			}

			w.syncFailed(t, 1) // the page, and a batch
			if got := w.managers(); !strings.Contains(got, "b<a c<a") {
				t.Errorf("%s, %s: the failed run made %s", provider, change, got)
			}
			w.syncFailed(t, 0)
			w.sync()
			if got := w.managers(); got != want {
				t.Errorf("%s, %s: got %s, want %s", provider, change, got, want)
			}
			w.check()
		}
	}
}

// TestManagerOfMany verifies that all users of a manager follow in the run that reads the manager's new email address, by
// the same number of statements whatever their number, and that the run counts them.
func TestManagerOfMany(t *testing.T) {
	statements := map[int]int{}
	for _, n := range []int{3, 400} {
		w, s := newWorld(t), serve(t, domain.Microsoft, people(n)...)
		s.SetPageSize(500)
		w.connect(w.client, s)
		w.sync()
		boss := people(1)[0]
		boss.Email = "boss@example.com"
		s.Put(boss)
		before := s.Requests("/manager")
		statements[n] = w.Statements.During(func() { wantCounts(t, w.sync(), domain.SyncCounts{Updated: n}) })
		if asked := s.Requests("/manager") - before; asked != 1 {
			t.Errorf("asks for %d managers", asked)
		}
		if got := strings.Count(w.managers(), "<boss"); got != n-1 {
			t.Errorf("got %d users with the new address, want %d", got, n-1)
		}
	}
	if statements[3] != statements[400] {
		t.Errorf("statements by accounts: %v", statements)
	}
}

// TestManagerOutsideGroup verifies that the members of a group keep a manager who is no member, or who leaves it.
func TestManagerOutsideGroup(t *testing.T) {
	w := newWorld(t)
	s := servePart(t, domain.Microsoft, "grp", people(5)...)
	w.connect(w.client, s)
	member := func(numbers ...int) {
		ids := make([]string, len(numbers))
		for i, n := range numbers {
			ids[i] = fmt.Sprintf("id-%03d", n)
		}
		s.PutGroup("grp", "Head office", ids...)
		w.sync()
	}
	for _, numbers := range [][]int{{0, 1, 2}, {1, 2}, {0, 1, 2}} {
		member(numbers...)
		if got := w.managers(); !strings.Contains(got, "user001<user000 user002<user000") {
			t.Errorf("%v: got %s", numbers, got)
		}
	}
}
