package directory_test

import (
	"context"
	"testing"

	"partnerapi/db/dirsync"
	"partnerapi/domain"
	"partnerapi/v2/api"
	"partnerapi/v2/op"
)

var (
	ada   = account{email: "Ada@Example.com", first: "Ada", last: "Lovelace", title: "Director", group: "Analysts", language: domain.Spanish}
	bob   = account{email: "bob@example.com", first: "Bob", last: "Moss", manager: "ADA@example.com", department: "Finance"}
	guest = account{email: "guest@elsewhere.com", guest: true}
	silo  = account{first: "Room", last: "4"}
	gone  = account{email: "gone@example.com", first: "G", last: "One", disabled: true}
)

const (
	adaLine = "ada@example.com|Ada|Lovelace|-|Director|-|active|executive|es|microsoft|Analysts"
	bobLine = "bob@example.com|Bob|Moss|Finance|-|ada@example.com|active|finance|en|microsoft|Microsoft 365"
)

func office() state {
	return state{"a": ada, "b": bob, "g": guest, "r": silo, "x": gone}
}

func TestFirstSync(t *testing.T) {
	for _, whole := range []bool{true, false} {
		w := newWorld(t)
		w.connect(w.client, newScripted(whole, office()))
		run := w.sync()
		wantCounts(t, run, domain.SyncCounts{Created: 2})
		if run.Trigger != domain.SyncByCommand || run.StartedAt == nil || run.FinishedAt == nil || len(run.Skipped) != 0 {
			t.Errorf("the run is %+v", run)
		}
		w.wantUsers(adaLine, bobLine)
		w.check()
		if n := w.Number("SELECT count(*) FROM events WHERE type = 'sync.completed' AND object_id IS NOT NULL AND user_id IS NULL"); n != 1 {
			t.Errorf("%d events of the run", n)
		}

		before := w.Number("SELECT count(*) FROM events WHERE type LIKE 'user.%'")
		wantCounts(t, w.sync(), domain.SyncCounts{Unchanged: 2})
		w.wantUsers(adaLine, bobLine)
		if after := w.Number("SELECT count(*) FROM events WHERE type LIKE 'user.%'"); after != before {
			t.Errorf("an unchanged directory makes %d events", after-before)
		}
	}
}

func TestChanges(t *testing.T) {
	for _, whole := range []bool{true, false} {
		w := newWorld(t)
		s := newScripted(whole, office())
		w.connect(w.client, s)
		w.sync()
		w.Clock.Advance(1e9)

		moved, named := ada, bob
		moved.group, moved.title, moved.email, moved.language = "", "HR partner", "ada.l@example.com", domain.English
		named.department, named.manager, named.disabled = "", "", true
		enabled := gone
		enabled.disabled = false
		s.change(map[string]*account{"a": &moved, "b": &named, "x": &enabled})
		wantCounts(t, w.sync(), domain.SyncCounts{Created: 1, Updated: 1, Deactivated: 1})
		w.wantUsers("ada.l@example.com|Ada|Lovelace|-|HR partner|-|active|hr|en|microsoft|Microsoft 365",
			"bob@example.com|Bob|Moss|-|-|-|inactive|standard|en|microsoft|Microsoft 365",
			"gone@example.com|G|One|-|-|-|active|standard|en|microsoft|Microsoft 365")
		w.check()

		named.disabled = false
		s.change(map[string]*account{"a": nil, "b": &named})
		wantCounts(t, w.sync(), domain.SyncCounts{Updated: 1, Deactivated: 1, Unchanged: 1})
		w.wantUsers("ada.l@example.com|Ada|Lovelace|-|HR partner|-|inactive|hr|en|microsoft|Microsoft 365",
			"bob@example.com|Bob|Moss|-|-|-|active|standard|en|microsoft|Microsoft 365",
			"gone@example.com|G|One|-|-|-|active|standard|en|microsoft|Microsoft 365")
		w.check()

		// a person who comes back with another account is the same user
		s.change(map[string]*account{"a2": &moved})
		wantCounts(t, w.sync(), domain.SyncCounts{Updated: 1, Unchanged: 2})
		w.check()
	}
}

// TestUserEventsOfSyncs: what a sync or its end shows of a user otherwise than before is
// one event of that user, a renamed group too.
func TestUserEventsOfSyncs(t *testing.T) {
	w := newWorld(t)
	w.User(w.tenant, w.client, "bob@example.com")
	s := newScripted(false, office())
	w.connect(w.client, s)
	want := func(what string, do func(), updated, deactivated int) {
		t.Helper()
		w.Exec("DELETE FROM events")
		w.Clock.Advance(1e9)
		do()
		for kind, n := range map[string]int{"user.updated": updated, "user.deactivated": deactivated} {
			if got := w.Number("SELECT count(*) FROM events WHERE type = $1", kind); got != n {
				t.Errorf("%s: %d events %s, not %d", what, got, kind, n)
			}
		}
	}
	follow := func(id string, a account) func() {
		return func() {
			s.change(map[string]*account{id: &a})
			w.sync()
		}
	}
	want("a merge", func() { w.sync() }, 1, 0)
	grouped, renamed, off := ada, ada, ada
	grouped.group = "Scientists"
	want("a renamed group", follow("a", grouped), 1, 0)
	renamed.email = "a.l@example.com"
	want("an address", follow("a", renamed), 1, 0)
	off.disabled = true
	want("a disabled account", follow("a", off), 0, 1)
	want("an enabled one", follow("a", ada), 1, 0)
	want("a disconnect", func() { w.must(dirsync.Disconnect(t.Context(), w.DB, w.client)) }, 2, 0)
}

// TestMerge: a user made by hand is the directory's from now on, and keeps what
// was set by hand.
func TestMerge(t *testing.T) {
	w := newWorld(t)
	in := &api.CreateUserInput{}
	in.Path.ClientID = w.client
	in.Body.Email, in.Body.FirstName, in.Body.Role = "ada@example.com", "Augusta", domain.RoleFinance
	made, err := op.Call(w.tenant.Ctx, &w.API.Set, api.CreateUser, in)
	w.must(err)
	other := w.User(w.tenant, w.client, "bob@example.com")
	change := &api.UpdateUserInput{}
	change.Path.UserID = other.ID
	change.Body.Status = domain.Give(domain.Inactive)
	change.Body.LastName = domain.Give("By Hand")
	_, err = op.Call(w.tenant.Ctx, &w.API.Set, api.UpdateUser, change)
	w.must(err)
	w.User(w.tenant, w.client, "nobody@example.com")

	s := newScripted(false, office())
	w.connect(w.client, s)
	wantCounts(t, w.sync(), domain.SyncCounts{Merged: 2})
	want := []string{"ada@example.com|Ada|Lovelace|-|Director|-|active|finance|es|microsoft|Analysts",
		"bob@example.com|Bob|By Hand|Finance|-|ada@example.com|inactive|finance|en|microsoft|Microsoft 365",
		"nobody@example.com|Ada|Example|-|-|-|active|standard|en|api|Manual"}
	w.wantUsers(want...)
	if n := w.Number("SELECT count(*) FROM users WHERE id = $1 AND email = 'ada@example.com'", made.ID); n != 1 {
		t.Error("the user is another")
	}
	w.check()

	// the account of a user whose status was set by hand
	off, on := bob, bob
	off.disabled = true
	s.change(map[string]*account{"b": &off})
	w.sync()
	s.change(map[string]*account{"b": &on})
	wantCounts(t, w.sync(), domain.SyncCounts{Unchanged: 2})
	w.wantUsers(want...)
}

// TestGuestBecomesMember: a guest who is made a member has a user from then on, and
// a member who is made a guest is deactivated.
func TestGuestBecomesMember(t *testing.T) {
	for _, whole := range []bool{true, false} {
		w := newWorld(t)
		s := newScripted(whole, office())
		w.connect(w.client, s)
		w.sync()
		member, former := guest, bob
		member.guest, former.guest = false, true
		s.change(map[string]*account{"g": &member, "b": &former})
		wantCounts(t, w.sync(), domain.SyncCounts{Created: 1, Deactivated: 1, Unchanged: 1})
		w.check()

		s.change(map[string]*account{"b": &bob})
		wantCounts(t, w.sync(), domain.SyncCounts{Updated: 1, Unchanged: 2})
		w.check()
	}
}

// TestSkipped: accounts that cannot be followed are named by every run until they
// can be.
func TestSkipped(t *testing.T) {
	for _, whole := range []bool{true, false} {
		w := newWorld(t)
		bad := account{email: "no address", first: "Bad"}
		twin := account{email: "ADA@example.com", first: "Twin"}
		s := newScripted(whole, state{"a": ada, "bad": bad, "twin": twin})
		w.connect(w.client, s)
		for range 2 {
			run := w.sync()
			if len(run.Skipped) != 2 || run.Skipped[0] != (domain.SkippedAccount{Address: "no address", Reason: domain.SkippedInvalid}) ||
				run.Skipped[1] != (domain.SkippedAccount{Address: "ada@example.com", Reason: domain.SkippedTaken}) {
				t.Fatalf("skipped are %+v", run.Skipped)
			}
			w.wantUsers(adaLine)
		}
		moved := ada
		moved.email = "lovelace@example.com"
		s.change(map[string]*account{"a": &moved})
		run := w.sync()
		wantCounts(t, run, domain.SyncCounts{Created: 1, Updated: 1})
		if len(run.Skipped) != 1 {
			t.Errorf("skipped are %+v", run.Skipped)
		}
		w.check()
	}
}

// TestRenames: addresses go from user to user, in chains and circles.
func TestRenames(t *testing.T) {
	w := newWorld(t)
	named := func(email string) *account { return &account{email: email + "@example.com", first: email} }
	s := newScripted(false, state{})
	w.connect(w.client, s)
	byHand := w.User(w.tenant, w.client, "hand@example.com")
	s.change(map[string]*account{
		"1": named("a"), "2": named("b"), "3": named("c"), "4": named("d"), "5": named("e"), "6": named("f"), "7": named("g")})
	w.sync()
	s.change(map[string]*account{
		"1": named("b"), "2": named("c"), "3": named("a"), // a circle
		"4": named("e"), "5": named("new"), // a chain with a free end
		"6": named("g"), "7": named("hand"), // one whose end is taken
	})
	run := w.sync()
	wantCounts(t, run, domain.SyncCounts{Updated: 7})
	if len(run.Skipped) != 2 {
		t.Errorf("skipped are %+v", run.Skipped)
	}
	var got string
	w.must(w.DB.SQL().QueryRowContext(context.Background(), `SELECT string_agg(d.object_id || '=' || split_part(u.email, '@', 1), ' ' ORDER BY d.object_id)
		FROM directory_accounts AS d JOIN users AS u ON u.id = d.user_id`).Scan(&got))
	if got != "1=b 2=c 3=a 4=e 5=new 6=f 7=g" {
		t.Errorf("the addresses are %s", got)
	}
	w.Exec("UPDATE users SET email = 'elsewhere@example.com' WHERE id = $1", byHand.ID)
	wantCounts(t, w.sync(), domain.SyncCounts{Updated: 2, Unchanged: 5})
}

// TestPanic: a run that panics has failed; the next one starts afresh.
func TestPanic(t *testing.T) {
	w := newWorld(t)
	s := newScripted(false, crowd(3))
	w.connect(w.client, s)
	s.before = func(position string) error {
		if position != "" {
			panic("planted")
		}
		return nil
	}
	if run := w.try(false); run.Status != domain.SyncFailed || *run.Error != domain.ErrPanicked.Error() {
		t.Errorf("the run is %+v", run)
	}
	s.before = nil
	wantCounts(t, w.sync(), domain.SyncCounts{Created: 3})
}

// TestFrameworkCourses: whom a sync makes, activates or gives another role gets the
// courses of the frameworks that ask for them then.
func TestFrameworkCourses(t *testing.T) {
	w := newWorld(t)
	s := newScripted(false, state{"a": account{email: "a@example.com", title: "Clerk"}})
	w.connect(w.client, s)
	w.Do("POST", "/v2/clients/"+w.client.String()+"/frameworks", w.tenant.Key, map[string]any{"framework_id": "cis_v8"}).Want(201)
	given := func(email string) int {
		return w.Number(`SELECT count(*) FROM assignments AS a JOIN users AS u ON u.id = a.user_id
			WHERE u.email = $1 AND a.frameworks <> '{}'`, email)
	}
	wantCounts(t, w.sync(), domain.SyncCounts{Created: 1})
	before := given("a@example.com")

	s.change(map[string]*account{"a": {email: "a@example.com", title: "Accountant"}, "b": {email: "b@example.com", title: "Accountant"}})
	wantCounts(t, w.sync(), domain.SyncCounts{Created: 1, Updated: 1})
	if before == 0 || given("a@example.com") != before+1 || given("b@example.com") != before+1 {
		t.Errorf("the clerk has %d courses of the framework, the accountant %d, and the new one %d",
			before, given("a@example.com"), given("b@example.com"))
	}
}
