package directory_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"partnerapi/db/dirsync"
	"partnerapi/domain"
	"partnerapi/platform/directory/directorytest"
	"partnerapi/v2/api"
	"partnerapi/v2/op"
)

var (
	ada = directorytest.Account{
		ID: "a", Email: "Ada@Example.com", First: "Ada", Last: "Lovelace", Title: "Director", OrgUnit: "/Analysts", Language: "es",
	}
	bob   = directorytest.Account{ID: "b", Email: "bob@example.com", First: "Bob", Last: "Moss", Manager: "a", Department: "Finance"}
	guest = directorytest.Account{ID: "g", Email: "guest@elsewhere.com", Guest: true}
	silo  = directorytest.Account{ID: "r", First: "Room", Last: "4"}
	gone  = directorytest.Account{ID: "x", Email: "gone@example.com", First: "G", Last: "One", Disabled: true}
)

const bobLine = "bob@example.com|Bob|Moss|Finance|-|ada@example.com|active|finance|en|microsoft|Microsoft 365"

// adaLine is the line of ada as a user: Google's directories have groups of their own.
func adaLine(provider domain.Directory) string {
	group := map[domain.Directory]string{domain.Google: "Analysts", domain.Microsoft: "Microsoft 365"}[provider]
	return "ada@example.com|Ada|Lovelace|-|Director|-|active|executive|es|microsoft|" + group
}

// office serves ada and bob, and accounts that get no user.
func office(t *testing.T, provider domain.Directory) *served {
	s := serve(t, provider, ada, bob, silo, gone)
	if provider == domain.Microsoft { // Google's directories have no guests
		s.Put(guest)
	}
	return s
}

func TestSync(t *testing.T) {
	for provider := range list {
		w, s := newWorld(t), office(t, provider)
		w.connect(w.client, s)
		run := w.sync()
		wantCounts(t, run, domain.SyncCounts{Created: 2})
		if run.Trigger != domain.SyncByCommand || run.StartedAt == nil || run.FinishedAt == nil || len(run.Skipped) != 0 {
			t.Errorf("the run is %+v", run)
		}
		w.check()
		if n := w.Number("SELECT count(*) FROM events WHERE type = 'sync.completed' AND object_id IS NOT NULL AND user_id IS NULL"); n != 1 {
			t.Errorf("%d events of the run", n)
		}
		for unchanged := range 2 { // the second makes no events
			w.wantUsers(adaLine(provider), bobLine)
			if n := w.Number("SELECT count(*) FROM events WHERE type LIKE 'user.%'"); n != 2 {
				t.Errorf("%d events of users after %d more runs", n, unchanged)
			}
			wantCounts(t, w.sync(), domain.SyncCounts{Unchanged: 2})
		}
		w.Clock.Advance(1e9)

		moved, named, enabled := ada, bob, gone
		moved.OrgUnit, moved.Title, moved.Email, moved.Language = "", "HR partner", "ada.l@example.com", ""
		named.Department, named.Manager, named.Disabled = "", "", true
		enabled.Disabled = false
		s.Put(moved, named, enabled)
		wantCounts(t, w.sync(), domain.SyncCounts{Created: 1, Updated: 1, Deactivated: 1})
		w.wantUsers("ada.l@example.com|Ada|Lovelace|-|HR partner|-|active|hr|en|microsoft|Microsoft 365",
			"bob@example.com|Bob|Moss|-|-|-|inactive|standard|en|microsoft|Microsoft 365",
			"gone@example.com|G|One|-|-|-|active|standard|en|microsoft|Microsoft 365")
		w.check()

		named.Disabled = false
		s.Remove("a")
		s.Put(named)
		wantCounts(t, w.sync(), domain.SyncCounts{Updated: 1, Deactivated: 1, Unchanged: 1})
		w.wantUsers("ada.l@example.com|Ada|Lovelace|-|HR partner|-|inactive|hr|en|microsoft|Microsoft 365",
			"bob@example.com|Bob|Moss|-|-|-|active|standard|en|microsoft|Microsoft 365",
			"gone@example.com|G|One|-|-|-|active|standard|en|microsoft|Microsoft 365")
		w.check()

		// a person who comes back with another account is the same user
		moved.ID = "a2"
		s.Put(moved)
		wantCounts(t, w.sync(), domain.SyncCounts{Updated: 1, Unchanged: 2})
		w.check()
	}
}

// TestUserEventsOfSyncs: what a sync or its end shows of a user otherwise than before is
// one event of that user, a renamed group too.
func TestUserEventsOfSyncs(t *testing.T) {
	w := newWorld(t)
	w.AddUser(w.tenant, w.client, "bob@example.com")
	s := serve(t, domain.Google, ada, directorytest.Account{ID: "b", Email: "bob@example.com"}) // which has groups
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
	follow := func(a directorytest.Account) func() {
		return func() {
			s.Put(a)
			w.sync()
		}
	}
	want("a merge", func() { w.sync() }, 1, 0)
	grouped, renamed, off := ada, ada, ada
	grouped.OrgUnit = "/Scientists"
	want("a renamed group", follow(grouped), 1, 0)
	renamed.Email = "a.l@example.com"
	want("an address", follow(renamed), 1, 0)
	off.Disabled = true
	want("a disabled account", follow(off), 0, 1)
	want("an enabled one", follow(ada), 1, 0)
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
	other := w.AddUser(w.tenant, w.client, "bob@example.com")
	change := &api.UpdateUserInput{}
	change.Path.UserID = other.ID
	change.Body.Status = domain.Give(domain.Inactive)
	change.Body.LastName = domain.Give("By Hand")
	_, err = op.Call(w.tenant.Ctx, &w.API.Set, api.UpdateUser, change)
	w.must(err)
	w.AddUser(w.tenant, w.client, "nobody@example.com")

	s := office(t, domain.Google)
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
	off := bob
	off.Disabled = true
	s.Put(off)
	w.sync()
	s.Put(bob)
	wantCounts(t, w.sync(), domain.SyncCounts{Unchanged: 2})
	w.wantUsers(want...)
}

// TestSkipped: accounts that cannot be followed are named by every run until they
// can be.
func TestSkipped(t *testing.T) {
	for provider := range list {
		w := newWorld(t)
		s := serve(t, provider, ada, directorytest.Account{ID: "bad", Email: "no address", First: "Bad"},
			directorytest.Account{ID: "twin", Email: "ADA@example.com", First: "Twin"})
		w.connect(w.client, s)
		for range 2 {
			run := w.sync()
			if len(run.Skipped) != 2 || run.Skipped[0] != (domain.SkippedAccount{Address: "no address", Reason: domain.SkippedInvalid}) ||
				run.Skipped[1] != (domain.SkippedAccount{Address: "ada@example.com", Reason: domain.SkippedTaken}) {
				t.Fatalf("skipped are %+v", run.Skipped)
			}
			w.wantUsers(adaLine(provider))
		}
		moved := ada
		moved.Email = "lovelace@example.com"
		s.Put(moved)
		run := w.sync()
		wantCounts(t, run, domain.SyncCounts{Created: 1, Updated: 1})
		if len(run.Skipped) != 1 {
			t.Errorf("skipped are %+v", run.Skipped)
		}
		w.check()
	}
}

// TestRenames: addresses go from user to user, in chains and circles. An account whose new
// address another user keeps is named by every run, until that is free.
func TestRenames(t *testing.T) {
	w := newWorld(t)
	named := func(emails ...string) (list []directorytest.Account) {
		for i, email := range emails {
			list = append(list, directorytest.Account{ID: fmt.Sprint(i + 1), Email: email + "@example.com", First: email})
		}
		return list
	}
	s := serve(t, domain.Microsoft, named("a", "b", "c", "d", "e", "f", "g")...)
	w.connect(w.client, s)
	hand := w.AddUser(w.tenant, w.client, "hand@example.com").ID
	w.sync()
	s.Put(named("b", "c", "a", "e", "new", "g", "hand")...) // a circle, a chain with a free end, and one whose end is taken
	for _, want := range []domain.SyncCounts{{Updated: 7}, {Unchanged: 7}} {
		run := w.sync()
		wantCounts(t, run, want)
		if len(run.Skipped) != 2 || run.Skipped[0].Reason != domain.SkippedTaken {
			t.Errorf("skipped are %+v", run.Skipped)
		}
	}
	var got string
	w.must(w.DB.SQL().QueryRowContext(t.Context(), `SELECT string_agg(d.object_id || '=' || split_part(u.email, '@', 1), ' ' ORDER BY d.object_id)
		FROM directory_accounts AS d JOIN users AS u ON u.id = d.user_id`).Scan(&got))
	if got != "1=b 2=c 3=a 4=e 5=new 6=f 7=g" {
		t.Errorf("the addresses are %s", got)
	}
	w.Exec("UPDATE users SET email = 'elsewhere@example.com' WHERE id = $1", hand)
	wantCounts(t, w.sync(), domain.SyncCounts{Updated: 2, Unchanged: 5})
}

// TestSpellings verifies that the addresses of accounts and users are compared by their key: an account joins the user
// with another spelling, and accounts with the same key are one address. Users of 1.0 with the same key each keep the
// account with exactly their address.
func TestSpellings(t *testing.T) {
	for provider := range list {
		w := newWorld(t)
		account := func(id, email string) directorytest.Account {
			return directorytest.Account{ID: id, Email: email + "@example.com", First: id}
		}
		emails := func(want string) {
			t.Helper()
			if got := w.Text(`SELECT string_agg(d.object_id || '=' || split_part(u.email, '@', 1) || coalesce(' ' || u.email_state, ''), ', ' ORDER BY d.object_id)
				FROM directory_accounts AS d JOIN users AS u ON u.id = d.user_id`); got != want {
				t.Errorf("the addresses are %q, not %q", got, want)
			}
			w.check()
		}
		w.AddUser(w.tenant, w.client, "νίκος@example.com")
		s := serve(t, provider, account("1", "ΝΊΚΟσ"), account("2", "Straße"), account("3", "STRASSE"))
		w.connect(w.client, s)
		run := w.sync()
		wantCounts(t, run, domain.SyncCounts{Merged: 1, Created: 1})
		if len(run.Skipped) != 1 || run.Skipped[0].Reason != domain.SkippedTaken {
			t.Errorf("skipped are %+v", run.Skipped)
		}
		emails("1=νίκοσ, 2=straße")

		s.Put(account("1", "strasse"), account("2", "ΝΊΚΟΣ"), account("3", "c")) // keys go from one to the other
		wantCounts(t, w.sync(), domain.SyncCounts{Created: 1, Updated: 2})
		emails("1=strasse, 2=νίκος, 3=c")
		s.Put(account("1", "STRAßE")) // a spelling only
		wantCounts(t, w.sync(), domain.SyncCounts{Updated: 1, Unchanged: 2})
		emails("1=straße, 2=νίκος, 3=c")

		// as 1.0 stored it
		s.Put(account("3", "strasse"))
		w.Exec("UPDATE users SET email = 'strasse@example.com' WHERE email = 'c@example.com'")
		if _, err := w.DB.SettleEmails(t.Context()); err != nil {
			t.Fatal(err)
		}
		wantCounts(t, w.sync(), domain.SyncCounts{Unchanged: 3})
		emails("1=straße, 2=νίκος, 3=strasse shared")
		s.Put(account("3", "straſſe"))
		wantCounts(t, w.sync(), domain.SyncCounts{Updated: 1, Unchanged: 2})
		emails("1=straße, 2=νίκος, 3=straſſe shared")
		s.Put(account("2", "STRASSE")) // an address that both have
		if run := w.sync(); len(run.Skipped) != 1 {
			t.Errorf("skipped are %+v", run.Skipped)
		}
		s.Put(account("2", "n"), account("3", "νίκος"))
		w.sync()
		emails("1=straße, 2=n, 3=νίκος")
	}
}

// TestSharedAddresses verifies that of two users of 1.0 with the same key an account joins the one with exactly its
// address, and else the oldest.
func TestSharedAddresses(t *testing.T) {
	for _, c := range []struct{ email, joined string }{{"strasse", "strasse"}, {"Straße", "straße"}, {"STRAſSE", "straße"}} {
		w := newWorld(t)
		older := w.AddUser(w.tenant, w.client, "straße@example.com")
		younger := w.AddUser(w.tenant, w.client, "other@example.com")
		w.Exec("UPDATE users SET email = 'strasse@example.com', created_at = created_at + interval '1 day' WHERE id = $1", younger.ID)
		if _, err := w.DB.SettleEmails(t.Context()); err != nil {
			t.Fatal(err)
		}
		w.connect(w.client, serve(t, domain.Microsoft, directorytest.Account{ID: "1", Email: c.email + "@example.com", First: "A"}))
		wantCounts(t, w.sync(), domain.SyncCounts{Merged: 1})
		want := map[string]domain.UserID{"strasse": younger.ID, "straße": older.ID}[c.joined]
		if n := w.Number("SELECT count(*) FROM directory_accounts WHERE user_id = $1", want); n != 1 {
			t.Errorf("%s does not join %s", c.email, c.joined)
		}
	}
}

// TestFrameworkCourses: whom a sync makes, activates or gives another role gets the
// courses of the frameworks that ask for them then.
func TestFrameworkCourses(t *testing.T) {
	w := newWorld(t)
	s := serve(t, domain.Microsoft, directorytest.Account{ID: "a", Email: "a@example.com", Title: "Clerk"})
	w.connect(w.client, s)
	w.Do("POST", "/v2/clients/"+w.client.String()+"/frameworks", w.tenant.Key, map[string]any{"framework_id": "cis_v8"}).Want(201)
	given := func(email string) int {
		return w.Number(`SELECT count(*) FROM assignments AS a JOIN users AS u ON u.id = a.user_id
			WHERE u.email = $1 AND a.frameworks <> '{}'`, email)
	}
	wantCounts(t, w.sync(), domain.SyncCounts{Created: 1})
	before := given("a@example.com")

	s.Put(directorytest.Account{ID: "a", Email: "a@example.com", Title: "Accountant"}, directorytest.Account{ID: "b", Email: "b@example.com", Title: "Accountant"})
	wantCounts(t, w.sync(), domain.SyncCounts{Created: 1, Updated: 1})
	if before == 0 || given("a@example.com") != before+1 || given("b@example.com") != before+1 {
		t.Errorf("the clerk has %d courses of the framework, the accountant %d, and the new one %d",
			before, given("a@example.com"), given("b@example.com"))
	}
}

// TestSyncOfPart: a group of Microsoft's and a domain of Google's are synced alone,
// and who leaves it is deactivated.
func TestSyncOfPart(t *testing.T) {
	for provider, part := range map[domain.Directory]string{domain.Microsoft: "grp", domain.Google: "part.example"} {
		t.Run(string(provider), func(t *testing.T) {
			d := directorytest.New(people(10)...)
			// in puts exactly these in the group and in the domain
			in := func(ids ...string) {
				d.PutGroup("grp", "Head office", ids...)
				for _, a := range d.Accounts() {
					a.Manager, a.Email = "", a.ID+"@example.com"
					if slices.Contains(ids, a.ID) {
						a.Email = a.ID + "@part.example"
					}
					if provider == domain.Google {
						d.Put(a)
					}
				}
			}
			in("id-001", "id-002", "id-003")
			v := vendors(t, d)[provider]
			w := newWorld(t)
			s, _ := source(t, provider, v, part)
			w.connect(w.client, s)
			wantCounts(t, w.sync(), domain.SyncCounts{Created: 3})

			in("id-001", "id-003", "id-004")
			wantCounts(t, w.sync(), domain.SyncCounts{Created: 1, Deactivated: 1, Unchanged: 2})
			w.check()
		})
	}
}

// TestLeaverOfReleaseBefore: that release did not apply the changes of disabled
// accounts, and took them as applied.
func TestLeaverOfReleaseBefore(t *testing.T) {
	for provider := range list {
		w, s := newWorld(t), serve(t, provider, ada)
		w.connect(w.client, s)
		w.sync()
		left, again := ada, ada
		left.Disabled, left.Email, again.ID = true, "old@example.com", "b"
		s.Put(left)
		w.sync()
		w.Exec("UPDATE users SET email = 'ada@example.com'")

		s.Put(again)
		wantCounts(t, w.sync(), domain.SyncCounts{Created: 1, Updated: 1})
		leaver := strings.NewReplacer("ada@", "old@", "|active|", "|inactive|").Replace(adaLine(provider))
		w.wantUsers(adaLine(provider), leaver)
		w.check()
	}
}
