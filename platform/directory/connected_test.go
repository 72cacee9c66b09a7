package directory_test

import (
	"slices"
	"strings"
	"testing"

	"partnerapi/domain"
	"partnerapi/platform/directory/directorytest"
)

// TestSyncOverFaults: faults of the servers are retried within a run, and what runs
// have applied change by change is what a first run makes of the same directory.
func TestSyncOverFaults(t *testing.T) {
	for provider, path := range list {
		t.Run(string(provider), func(t *testing.T) {
			d := directorytest.New(people(60)...)
			v := vendors(t, d)[provider]
			v.SetPageSize(25)
			w := newWorld(t)
			first, _ := source(t, provider, v, "")
			w.connect(w.client, first)
			v.Inject(directorytest.Throttled(path, "7", 2))
			wantCounts(t, w.sync(), domain.SyncCounts{Created: 60})

			d.Remove("id-057")
			d.Put(directorytest.Account{ID: "id-055", Email: "user055@example.com", First: "New", Title: "Chief"})
			v.Inject(directorytest.Cut(path, 2), directorytest.Failing(path, 503, 1), directorytest.HTML(path, 1))
			wantCounts(t, w.sync(), domain.SyncCounts{Updated: 1, Deactivated: 1, Unchanged: 58})
			v.ExpireTokens()
			wantCounts(t, w.sync(), domain.SyncCounts{Unchanged: 59})

			changed := active(w.users())
			w.client = w.Client(w.tenant, "Other").ID
			again, _ := source(t, provider, v, "")
			w.connect(w.client, again)
			wantCounts(t, w.sync(), domain.SyncCounts{Created: 59})
			w.wantUsers(changed...)
			w.check()
		})
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

// TestLeaverKeepsRecord: who takes the address of a disabled account is another person,
// whether that account got another address, kept it, or comes back.
func TestLeaverKeepsRecord(t *testing.T) {
	leaver := directorytest.Account{ID: "id-1", Email: "lee@example.com", First: "Lee", Last: "Old"}
	newcomer := directorytest.Account{ID: "id-2", Email: "lee@example.com", First: "Lee", Last: "New"}
	with := func(a directorytest.Account, email string, disabled bool) directorytest.Account {
		a.Email, a.Disabled = email, disabled
		return a
	}
	for provider := range list {
		t.Run(string(provider), func(t *testing.T) {
			d := directorytest.New(leaver)
			v := vendors(t, d)[provider]
			w := newWorld(t)
			s, _ := source(t, provider, v, "")
			w.connect(w.client, s)
			w.sync()
			want := func(what string, users ...string) {
				t.Helper()
				var got []string
				for _, line := range w.users() {
					parts := strings.Split(line, "|")
					got = append(got, strings.Join([]string{parts[0], parts[2], parts[6]}, " "))
				}
				if !slices.Equal(got, users) {
					t.Errorf("%s: the users are %q, not %q", what, got, users)
				}
			}

			// the directory kept the address: the newcomer waits, and is listed
			d.Put(with(leaver, "lee@example.com", true), newcomer)
			if run := w.sync(); len(run.Skipped) != 1 || run.Skipped[0].Reason != domain.SkippedTaken {
				t.Errorf("skipped are %+v", run.Skipped)
			}
			want("taken", "lee@example.com Old inactive")

			// it is given up while the account is disabled
			d.Put(with(leaver, "lee.old@example.com", true))
			wantCounts(t, w.sync(), domain.SyncCounts{Created: 1, Updated: 1})
			want("given up", "lee.old@example.com Old inactive", "lee@example.com New active")

			// both swap addresses, and the first comes back
			d.Put(with(leaver, "lee@example.com", true), with(newcomer, "lee.old@example.com", false))
			wantCounts(t, w.sync(), domain.SyncCounts{Updated: 2})
			want("swapped", "lee.old@example.com New active", "lee@example.com Old inactive")
			d.Put(leaver)
			wantCounts(t, w.sync(), domain.SyncCounts{Updated: 1, Unchanged: 1})
			want("back", "lee.old@example.com New active", "lee@example.com Old active")

			// an account that is gone comes back by its address
			d.Remove(leaver.ID)
			w.sync()
			d.Put(directorytest.Account{ID: "id-3", Email: "lee@example.com", First: "Lee", Last: "Again"})
			wantCounts(t, w.sync(), domain.SyncCounts{Updated: 1, Unchanged: 1})
			want("again", "lee.old@example.com New active", "lee@example.com Again active")
			w.check()
		})
	}
}

// TestLeaverOfReleaseBefore: that release did not apply the changes of disabled
// accounts, and took them as applied.
func TestLeaverOfReleaseBefore(t *testing.T) {
	for _, whole := range []bool{true, false} {
		w := newWorld(t)
		left := ada
		left.disabled, left.email = true, "old@example.com"
		s := newScripted(whole, state{"a": ada})
		w.connect(w.client, s)
		w.sync()
		s.change(map[string]*account{"a": &left})
		w.sync()
		w.Exec("UPDATE users SET email = 'ada@example.com'")

		s.change(map[string]*account{"b": &ada})
		wantCounts(t, w.sync(), domain.SyncCounts{Created: 1, Updated: 1})
		w.wantUsers(adaLine, "old@example.com|Ada|Lovelace|-|Director|-|inactive|executive|es|microsoft|Analysts")
		w.check()
	}
}
