package directory_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"partnerapi/db/dirsync"
	"partnerapi/domain"
	"partnerapi/platform/directory"
	"partnerapi/platform/directory/directorytest"
	"partnerapi/v2/api"
	"partnerapi/v2/op"
)

// TestGuardOfAll verifies that a run that would deactivate all of a client's few users changes nothing, unless it is
// forced: an empty directory, and one whose accounts are all disabled. A single user may leave.
func TestGuardOfAll(t *testing.T) {
	for provider := range list {
		w, s := newWorld(t), serve(t, provider, people(5)...)
		w.connect(w.client, s)
		w.sync()
		full := w.users()
		stops := func(what string) {
			t.Helper()
			if run := w.try(false); run.Status != domain.SyncFailed || !strings.Contains(*run.Error, "deactivate 5 of the directory's 5") {
				t.Errorf("%s: the run is %+v", what, run)
			}
			w.wantUsers(full...)
		}
		for _, a := range people(5) {
			a.Disabled = true
			s.Put(a)
		}
		stops("all disabled")
		for _, a := range people(5) {
			s.Remove(a.ID)
		}
		stops("none left")
		wantCounts(t, w.try(true), domain.SyncCounts{Deactivated: 5})

		s.Put(people(1)...)
		wantCounts(t, w.sync(), domain.SyncCounts{Updated: 1})
		s.Remove("id-000")
		wantCounts(t, w.sync(), domain.SyncCounts{Deactivated: 1})
		w.check()
	}
}

// TestGuardNamesMissingMail verifies that the guard counts the users who would leave only because their accounts have no
// mailbox or no email address: disabled and deleted accounts, and ones that change nothing, are not among them.
func TestGuardNamesMissingMail(t *testing.T) {
	for provider := range list {
		w, s := newWorld(t), serve(t, provider, people(7)...)
		w.connect(w.client, s)
		w.sync()
		for i, a := range people(6) {
			if a.NoMailbox = true; provider == domain.Microsoft {
				a.Email = ""
			}
			a.Disabled = i == 0
			s.Put(a)
		}
		s.Remove("id-001")
		const want = "deactivate 6 of the directory's 7 active users (4 of them only because their accounts have no email address or no mailbox), so"
		if run := w.try(false); run.Status != domain.SyncFailed || !strings.Contains(*run.Error, want) {
			t.Errorf("%s: the run is %+v: %s", provider, run, domain.OrZero(run.Error))
		}
	}
}

// TestStatusOverride verifies that every run lists a user whose account is gone and who stays active, as the status is an
// override, and that such a user does not hide that all others would be deactivated.
func TestStatusOverride(t *testing.T) {
	for provider := range list {
		w, s := newWorld(t), serve(t, provider, people(3)...)
		w.connect(w.client, s)
		w.sync()
		set := func(status domain.UserStatus) {
			in := &api.UpdateUserInput{}
			w.must(w.DB.SQL().QueryRowContext(t.Context(), "SELECT id FROM users WHERE client_id = $1 AND email = 'user001@example.com'",
				w.client).Scan(&in.Path.UserID))
			in.Body.Status = domain.Give(status)
			_, err := op.Call(w.tenant.Ctx, &w.API.Set, api.UpdateUser, in)
			w.must(err)
		}
		set(domain.Inactive)
		set(domain.Active)
		wantSkipped := func(run domain.SyncRun, want ...domain.SkippedAccount) {
			t.Helper()
			if fmt.Sprint(run.Skipped) != fmt.Sprint(append([]domain.SkippedAccount{}, want...)) {
				t.Errorf("%s: got %+v, want %+v", provider, run.Skipped, want)
			}
		}
		kept := domain.SkippedAccount{Address: "user001@example.com", Reason: domain.SkippedOverride}
		wantSkipped(w.sync())
		s.Remove("id-001")
		for range 2 {
			run := w.sync()
			wantSkipped(run, kept)
			wantCounts(t, run, domain.SyncCounts{Unchanged: 2})
		}
		s.Remove("id-000", "id-002")
		if run := w.try(false); run.Status != domain.SyncFailed || !strings.Contains(*run.Error, "deactivate 2 of") {
			t.Errorf("%s: the run is %+v", provider, run)
		}
		s.Put(people(3)...)
		wantSkipped(w.sync())
		s.Remove("id-001")
		set(domain.Inactive)
		wantSkipped(w.sync())
		w.check()
	}
}

// TestWithoutEmail verifies that a run counts the accounts without an email address, those of Google without a mailbox
// among them, in its result and in the log. Guests and removed accounts are not counted.
func TestWithoutEmail(t *testing.T) {
	for provider := range list {
		w, s := newWorld(t), office(t, provider) // which has a room without an email address
		var log bytes.Buffer
		w.log = slog.New(slog.NewTextHandler(&log, nil))
		w.runner = w.newRunner(directory.Observer{})
		w.connect(w.client, s)
		want := func(n int) {
			t.Helper()
			if run := w.sync(); run.WithoutEmail != n || !strings.Contains(log.String(), fmt.Sprint(" without_email=", n, "\n")) {
				t.Errorf("%s: got %d accounts, want %d; the log is\n%s", provider, run.WithoutEmail, n, log.String())
			}
			log.Reset()
		}
		want(1)
		room, hall := silo, silo
		room.Disabled, hall.ID = true, "h"
		s.Put(room, hall)
		want(2)
		s.Remove("h")
		want(1)
		if provider == domain.Google {
			unlicensed := bob
			unlicensed.NoMailbox = true
			s.Put(unlicensed, directorytest.Account{ID: "n", Email: "new@example.com", NoMailbox: true})
			run := w.sync()
			wantCounts(t, run, domain.SyncCounts{Deactivated: 1, Unchanged: 1})
			if run.WithoutEmail != 3 || len(run.Skipped) > 0 {
				t.Errorf("the run is %+v", run)
			}
			s.Put(bob)
			wantCounts(t, w.sync(), domain.SyncCounts{Updated: 1, Unchanged: 1})
		}
		w.check()
	}
}

// TestLanguages verifies that a language may be written with "_" as with "-".
func TestLanguages(t *testing.T) {
	for provider := range list {
		w := newWorld(t)
		want := map[string]string{"es_MX": "es", "es-MX": "es", "fr_CA": "fr-ca", "FR": "fr-ca", "en_US": "en", "_": "en", "de_DE": "en"}
		s := serve(t, provider)
		for tag := range want {
			s.Put(directorytest.Account{ID: "id " + tag, Email: fmt.Sprintf("u%x@example.com", tag), Language: tag})
		}
		w.connect(w.client, s)
		w.sync()
		for tag, language := range want {
			if n := w.Number("SELECT count(*) FROM users WHERE email = $1 AND preferred_language = $2",
				fmt.Sprintf("u%x@example.com", tag), language); n != 1 {
				t.Errorf("%s: %s is not %s", provider, tag, language)
			}
		}
	}
}

// TestDisplayNames verifies that names follow from the display name only while there is no other name, also if a change
// reports one of them alone.
func TestDisplayNames(t *testing.T) {
	w := newWorld(t)
	s := serve(t, domain.Microsoft)
	w.connect(w.client, s)
	w.sync()
	for i, step := range []struct{ account, names string }{
		{`"mail": "a@example.com", "displayName": "Anna  Maria Lopez"`, "Anna Maria|Lopez"},
		{`"displayName": "Anna"`, "Anna|"},
		{`"surname": "Ruiz"`, "|Ruiz"},
		{`"displayName": "Someone Else"`, "|Ruiz"},
		{`"givenName": "Ana"`, "Ana|Ruiz"},
		{`"givenName": null, "surname": null`, "Someone|Else"},
		{`"displayName": null`, "|"},
	} {
		s.Inject(directorytest.Fault{Path: "/users/delta", Body: `{"value": [{"id": "a", ` + step.account +
			`}], "@odata.deltaLink": "` + s.Endpoints().Graph + `/v1.0/users/delta?x=` + fmt.Sprint(i) + `"}`})
		w.sync()
		if got := strings.Join(strings.Split(w.users()[0], "|")[1:3], "|"); got != step.names {
			t.Errorf("%s: got %s, want %s", step.account, got, step.names)
		}
	}
}

// TestClaimOfOtherRelease verifies that a process goes on with a run whose position a later release has stored, by reading
// from the start, as often as that happens.
func TestClaimOfOtherRelease(t *testing.T) {
	for provider := range list {
		w, s := newWorld(t), serve(t, provider, people(3)...)
		w.connect(w.client, s)
		lease, err := dirsync.Start(context.Background(), w.DB, w.client, false, time.Minute)
		w.must(err)
		for range 3 {
			ctx, kill := context.WithCancel(context.Background())
			_, _ = w.runner.Work(ctx, lease, func(int, int) { kill() })
			kill()
			w.Exec("UPDATE sync_runs SET position = '9 elsewhere' WHERE client_id = $1", w.client)
			lease = w.claim()
		}
		run, err := w.runner.Work(context.Background(), lease, nil)
		w.must(err)
		wantCounts(t, run, domain.SyncCounts{Created: 3})
	}
}
