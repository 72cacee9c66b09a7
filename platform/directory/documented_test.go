package directory_test

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"partnerapi/domain"
	"partnerapi/platform/directory"
	"partnerapi/platform/directory/directorytest"
)

// behaviors has a test for each of directorytest.Behaviors, by name: that the server shows the behavior where another
// test depends on it, and that the sync copes.
var behaviors = map[string]func(*testing.T){
	"select": func(t *testing.T) {
		g := newGraph(t, directorytest.Behavior{Minimal: true}, people(2)...)
		from := next(mustRead(t, g.source, ""))
		g.Put(directorytest.Account{ID: "id-000", Email: "user000@example.com", First: "User", Last: "0", OrgUnit: "/not in Graph"})
		if got := accounts(mustRead(t, g.source, from)); len(got) != 0 {
			t.Errorf("got %+v, want nothing: nothing selected changed", got)
		}
	},
	"manager": func(t *testing.T) {
		g := newGraph(t, directorytest.Behavior{Minimal: true}, people(3)...)
		from := next(mustRead(t, g.source, ""))
		managed := people(3)[2]
		managed.Manager = "id-001"
		g.Put(managed)
		want := domain.DirectoryAccount{
			ObjectID: "id-002", Manager: domain.Give("id-001"), ManagerEmail: domain.Give("user001@example.com"), Group: domain.Give(""),
		}
		pages := mustRead(t, g.source, from)
		wantAccounts(t, accounts(pages), want)
		managed.Manager = ""
		g.Put(managed)
		want.Manager, want.ManagerEmail = domain.Give(""), domain.Give("")
		wantAccounts(t, accounts(mustRead(t, g.source, next(pages))), want)
	},
	"manager deleted": func(t *testing.T) {
		g := newGraph(t, directorytest.Behavior{}, people(3)...)
		from := next(mustRead(t, g.source, ""))
		g.Remove("id-000")
		wantAccounts(t, accounts(mustRead(t, g.source, from)), domain.DirectoryAccount{ObjectID: "id-000", Removed: true})
	},
	"manager apart": func(t *testing.T) {
		g := newGraph(t, directorytest.Behavior{Apart: true}, people(3)...)
		got := objects(accounts(mustRead(t, g.source, "")))
		if !slices.Equal(got, []string{"id-000", "id-001", "id-002", "id-001", "id-002"}) {
			t.Errorf("got %v", got)
		}
		synced(t, domain.Microsoft, directorytest.Behavior{Apart: true})
	},
	"manager by request": func(t *testing.T) {
		g := newGraph(t, directorytest.Behavior{}, people(3)...)
		mustRead(t, g.source, "")
		if n := g.Requests("/manager"); n != 3 {
			t.Errorf("got %d requests, want 3", n)
		}
	},
	"repeated whole": func(t *testing.T) {
		synced(t, domain.Microsoft, directorytest.Behavior{Repeat: true})
	},
	"repeated in part": func(t *testing.T) {
		g := newGraph(t, directorytest.Behavior{Repeat: true, Minimal: true}, people(3)...)
		g.SetPageSize(1)
		var got []domain.DirectoryAccount
		for page, err := range g.source.Read(t.Context(), "") {
			if err != nil {
				t.Fatal(err)
			}
			if got = append(got, page.Accounts...); len(got) == 1 {
				changed := people(1)[0]
				changed.Title = "Moved"
				g.Put(changed)
			}
		}
		wantAccounts(t, got[3:], domain.DirectoryAccount{
			ObjectID: "id-000", JobTitle: domain.Give("Moved"), ManagerEmail: domain.Give(""), Group: domain.Give(""),
		})
		synced(t, domain.Microsoft, directorytest.Behavior{Repeat: true, Minimal: true})
	},
	"replays": func(t *testing.T) {
		w, s := newWorld(t), serve(t, domain.Microsoft, people(5)...)
		w.connect(w.client, s)
		s.atPage(1, func() { // the account is on the third page, and in the next round again
			changed := people(5)[4]
			changed.Title = "Moved"
			s.Put(changed)
		})
		wantCounts(t, w.sync(), domain.SyncCounts{Created: 5})
		wantCounts(t, w.sync(), domain.SyncCounts{Unchanged: 5})
	},
	"order": func(t *testing.T) { synced(t, domain.Microsoft, directorytest.Behavior{Reverse: true}) },
	"absent": func(t *testing.T) {
		g := newGraph(t, directorytest.Behavior{Absent: true}, directorytest.Account{ID: "a", First: "A"})
		got := accounts(mustRead(t, g.source, ""))
		if len(got) != 1 || got[0].Email.Given || got[0].Last.Given || got[0].First != domain.Give("A") {
			t.Errorf("got %+v", got)
		}
		synced(t, domain.Microsoft, directorytest.Behavior{Absent: true})
	},
	"null": func(t *testing.T) {
		g := newGraph(t, directorytest.Behavior{}, directorytest.Account{ID: "a"})
		got := accounts(mustRead(t, g.source, ""))
		if len(got) != 1 || got[0].Email != domain.Give("") || got[0].Department != domain.Give("") || got[0].Language != domain.Give(domain.English) {
			t.Errorf("got %+v", got)
		}
	},
	"empty pages": func(t *testing.T) {
		g := newGraph(t, directorytest.Behavior{EmptyPages: true}, people(3)...)
		if pages := mustRead(t, g.source, ""); len(pages) != 2 || len(pages[0].Accounts) != 0 || len(pages[1].Accounts) != 3 {
			t.Errorf("got %+v", pages)
		}
		synced(t, domain.Microsoft, directorytest.Behavior{EmptyPages: true})
	},
	"removed": func(t *testing.T) {
		w, s := newWorld(t), serve(t, domain.Microsoft, people(3)...)
		w.connect(w.client, s)
		w.sync()
		before := w.users()
		s.Remove("id-002")
		wantCounts(t, w.sync(), domain.SyncCounts{Deactivated: 1, Unchanged: 2})
		s.Put(people(3)...)
		wantCounts(t, w.sync(), domain.SyncCounts{Updated: 1, Unchanged: 2})
		w.wantUsers(before...)
	},
	"purged": func(t *testing.T) {
		w, s := newWorld(t), serve(t, domain.Microsoft, people(3)...)
		w.connect(w.client, s)
		w.sync()
		before := w.users()
		s.Purge("id-002")
		again := people(3)[2]
		again.ID = "new"
		s.Put(again)
		wantCounts(t, w.sync(), domain.SyncCounts{Deactivated: 1, Updated: 1, Unchanged: 2})
		w.wantUsers(before...)
	},
	"removed at first": func(t *testing.T) {
		g := newGraph(t, directorytest.Behavior{Removed: true}, people(2)...)
		g.Remove("id-001")
		got := accounts(mustRead(t, g.source, ""))
		if len(got) != 2 || got[1] != (domain.DirectoryAccount{ObjectID: "id-001", Removed: true}) {
			t.Errorf("got %+v", got)
		}
		synced(t, domain.Microsoft, directorytest.Behavior{Removed: true})
	},
	"gone":               func(t *testing.T) { expired(t, directorytest.Behavior{}) },
	"gone with location": func(t *testing.T) { expired(t, directorytest.Behavior{Location: true}) },
	"graph throttled": func(t *testing.T) {
		for _, status := range []int{429, 503} {
			for header, wait := range map[string]time.Duration{"7": 7 * time.Second, "": time.Second} {
				g := newGraph(t, directorytest.Behavior{}, people(2)...)
				g.Inject(throttled("/users/delta", status, header))
				mustRead(t, g.source, "")
				if !slices.Equal(g.waits.list, []time.Duration{wait}) {
					t.Errorf("%d, Retry-After %q: waited %v", status, header, g.waits.list)
				}
			}
		}
	},
	"group lag": func(t *testing.T) {
		w := newWorld(t)
		s := servePart(t, domain.Microsoft, "grp", people(5)...)
		s.PutGroup("grp", "Head office", "id-000", "id-001", "id-002")
		w.connect(w.client, s)
		wantCounts(t, w.sync(), domain.SyncCounts{Created: 3})
		s.LagGroups(true)
		s.PutGroup("grp", "Head office", "id-000", "id-001", "id-003")
		wantCounts(t, w.sync(), domain.SyncCounts{Unchanged: 3})
		s.LagGroups(false)
		wantCounts(t, w.sync(), domain.SyncCounts{Created: 1, Deactivated: 1, Unchanged: 2})
	},
	"google empty": func(t *testing.T) {
		g := googleServer(t, directorytest.New(directorytest.Account{ID: "a", Email: "a@example.com"}))
		s, _ := source(t, domain.Google, g, "")
		wantAccounts(t, accounts(mustRead(t, s, "")), bare("a", "a@example.com", "", "", ""))
	},
	"google mailbox": func(t *testing.T) {
		g := googleServer(t, directorytest.New(directorytest.Account{ID: "a", Email: "a@example.com", NoMailbox: true}))
		s, _ := source(t, domain.Google, g, "")
		wantAccounts(t, accounts(mustRead(t, s, "")), bare("a", "", "", "", ""))
		for _, said := range []string{`null`, `true`} {
			g.Inject(directorytest.Fault{Path: "/users", Body: `{"kind": "admin#directory#users", "users": [
				{"id": "a", "primaryEmail": "a@example.com", "isMailboxSetup": ` + said + `}]}`})
			wantAccounts(t, accounts(mustRead(t, s, "")), bare("a", "a@example.com", "", "", ""))
		}
	},
	"google quotas": func(t *testing.T) {
		for _, reason := range []string{"rateLimitExceeded", "userRateLimitExceeded", "quotaExceeded", "dailyLimitExceeded"} {
			g := googleServer(t, directorytest.New(people(5)...))
			s, w := source(t, domain.Google, g, "")
			g.Inject(directorytest.Refused("/users", reason, 2))
			if pages := mustRead(t, s, ""); len(accounts(pages)) != 5 || len(w.list) != 2 {
				t.Errorf("%s: got %d accounts, waited %v", reason, len(accounts(pages)), w.list)
			}
		}
	},
	"google throttled": func(t *testing.T) {
		for _, status := range []int{429, 503} {
			g := googleServer(t, directorytest.New(people(2)...))
			s, w := source(t, domain.Google, g, "")
			g.Inject(throttled("/users", status, ""))
			if mustRead(t, s, ""); !slices.Equal(w.list, []time.Duration{time.Second}) {
				t.Errorf("%d: waited %v", status, w.list)
			}
		}
	},
	"google refusals": func(t *testing.T) {
		for _, reason := range []string{
			"forbidden", "insufficientPermissions", "domainCannotUseApis", "domainPolicy", "accessNotConfigured", "authError", "",
		} {
			g := googleServer(t, directorytest.New(people(2)...))
			s, w := source(t, domain.Google, g, "")
			g.Inject(directorytest.Refused("/users", reason, 1))
			_, err := read(t.Context(), s, "")
			if temporary := (*directory.Temporary)(nil); err == nil || errors.As(err, &temporary) || len(w.list) > 0 {
				t.Errorf("%s: got %v, waited %v", reason, err, w.list)
			}
		}
	},
	"google pages": func(t *testing.T) {
		g := googleServer(t, directorytest.New(people(5)...))
		s, _ := source(t, domain.Google, g, "")
		if _, err := read(t.Context(), s, "2 unknown"); !errors.Is(err, directory.ErrStartOver) {
			t.Errorf("got %v", err)
		}
	},
}

// TestDocumented verifies each documented behavior, and that there are no others.
func TestDocumented(t *testing.T) {
	names := map[string]bool{}
	for _, b := range directorytest.Behaviors {
		names[b.Name] = true
		test := behaviors[b.Name]
		if test == nil || b.Says == "" || len(b.Sources) == 0 || !strings.HasPrefix(b.Sources[0], "https://") {
			t.Errorf("%q has no test or no source", b.Name)
			continue
		}
		t.Run(b.Name, test)
	}
	for name := range behaviors {
		if !names[name] {
			t.Errorf("%q is not documented", name)
		}
	}
}

// graph is a directory that Microsoft's server shows, with a source that reads it.
type graph struct {
	*directorytest.Directory
	*directorytest.Microsoft
	source directory.Source
	waits  *waits
}

func newGraph(t *testing.T, b directorytest.Behavior, list ...directorytest.Account) graph {
	d := directorytest.New(list...)
	m := microsoft(t, d)
	m.Behave(b)
	s, w := source(t, domain.Microsoft, m, "")
	return graph{d, m, s, w}
}

// throttled is a fault with a status, and a Retry-After unless that is empty.
func throttled(path string, status int, retryAfter string) directorytest.Fault {
	f := directorytest.Fault{Path: path, Status: status, Header: map[string]string{}}
	if retryAfter != "" {
		f.Header["Retry-After"] = retryAfter
	}
	return f
}

// synced verifies that a directory whose accounts change during the first read is synced as it is at last, and after
// changes too, however the server behaves.
func synced(t *testing.T, provider domain.Directory, b directorytest.Behavior) {
	t.Helper()
	w, s := newWorld(t), serve(t, provider, people(5)...)
	s.graph().Behave(b)
	w.connect(w.client, s)
	want := func(departments ...string) {
		t.Helper()
		for i, line := range w.users() {
			parts := strings.Split(line, "|")
			if parts[1] != "User" || parts[2] != fmt.Sprint(i) || parts[3] != departments[i] || parts[6] != "active" ||
				parts[5] != []string{"-", "user000@example.com"}[min(i, 1)] {
				t.Errorf("got %s, want the department %s", line, departments[i])
			}
		}
	}
	changed := people(5)[0]
	changed.Department = "Sales"
	s.atPage(1, func() { s.Put(changed) })
	w.sync()
	w.sync() // the round before may have ended without the change
	want("Sales", "-", "-", "-", "-")
	changed.Department = ""
	other := people(5)[3]
	other.Department = "Finance"
	s.Put(changed, other)
	w.sync()
	want("-", "-", "-", "Finance", "-")
	w.check()
}

// expired verifies that a link that has expired is answered by reading everything, between two rounds and within one.
func expired(t *testing.T, b directorytest.Behavior) {
	t.Helper()
	w, s := newWorld(t), serve(t, domain.Microsoft, people(5)...)
	s.graph().Behave(b)
	w.connect(w.client, s)
	s.atPage(2, s.graph().ForgetPositions)
	wantCounts(t, w.sync(), domain.SyncCounts{Created: 5})
	if n := s.Requests("/users/delta"); n != 6 {
		t.Errorf("got %d requests, want 6: two pages, a refused link, three pages", n)
	}
	s.Remove("id-004")
	s.graph().ForgetPositions()
	wantCounts(t, w.sync(), domain.SyncCounts{Deactivated: 1, Unchanged: 4})
	s.Inject(directorytest.Failing("/users/delta", http.StatusGone, 1))
	wantCounts(t, w.sync(), domain.SyncCounts{Unchanged: 4})
}
