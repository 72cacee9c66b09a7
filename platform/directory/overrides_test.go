package directory_test

import (
	"context"
	"testing"
	"time"

	"partnerapi/db/dirsync"
	"partnerapi/db/pg"
	"partnerapi/domain"
	"partnerapi/v2/api"
	"partnerapi/v2/op"
)

// override sets fields of the user with an email address as a caller does.
func (w *world) override(email string, set func(*api.UpdateUserInput)) {
	w.t.Helper()
	in := &api.UpdateUserInput{}
	in.Path.UserID = w.userID(email)
	set(in)
	_, err := op.Call(w.tenant.Ctx, &w.API.Set, api.UpdateUser, in)
	w.must(err)
}

// release removes an override of the user with an email address.
func (w *world) release(email, field string) error {
	in := &api.RemoveOverrideInput{}
	in.Path.UserID, in.Path.Field = w.userID(email), op.FieldName(field)
	_, err := op.Call(w.tenant.Ctx, &w.API.Set, api.RemoveOverride, in)
	return err
}

func (w *world) userID(email string) domain.UserID {
	w.t.Helper()
	id, err := pg.One[domain.UserID](w.t.Context(), w.DB, "find a user", pg.SQL("SELECT id FROM users WHERE client_id = ? AND email = ?", w.client, email))
	w.must(err)
	return id
}

// TestRemovedOverrides verifies that the run after the removal of an override sets the field, although the directory reports
// no change, and that runs leave the other overrides. The run after it finds nothing to do.
func TestRemovedOverrides(t *testing.T) {
	for provider := range list {
		w, s := newWorld(t), office(t, provider)
		w.connect(w.client, s)
		w.sync()
		w.override("bob@example.com", func(in *api.UpdateUserInput) {
			in.Body.FirstName, in.Body.LastName = domain.Give("Robert"), domain.Give("Mossman")
			in.Body.Department, in.Body.JobTitle = domain.Give(new("Human Resources")), domain.Give(new("Clerk"))
			in.Body.ManagerEmail, in.Body.PreferredLanguage = domain.Give(new("boss@example.com")), domain.Give(domain.French)
			in.Body.Status, in.Body.Role = domain.Give(domain.Inactive), domain.Give(domain.RoleAdmin)
		})
		overridden := "bob@example.com|Robert|Mossman|Human Resources|Clerk|boss@example.com|inactive|admin|fr-ca|microsoft|Microsoft 365"
		wantCounts(t, w.sync(), domain.SyncCounts{Unchanged: 2})
		w.wantUsers(adaLine(provider), overridden)

		for _, step := range []struct{ field, line string }{
			{"first_name", "bob@example.com|Bob|Mossman|Human Resources|Clerk|boss@example.com|inactive|admin|fr-ca|microsoft|Microsoft 365"},
			{"manager_email", "bob@example.com|Bob|Mossman|Human Resources|Clerk|ada@example.com|inactive|admin|fr-ca|microsoft|Microsoft 365"},
			{"status", "bob@example.com|Bob|Mossman|Human Resources|Clerk|ada@example.com|active|admin|fr-ca|microsoft|Microsoft 365"},
			{"department", "bob@example.com|Bob|Mossman|Finance|Clerk|ada@example.com|active|admin|fr-ca|microsoft|Microsoft 365"},
		} {
			w.must(w.release("bob@example.com", step.field))
			before := w.users()
			wantCounts(t, w.sync(), domain.SyncCounts{Updated: 1, Unchanged: 1})
			w.wantUsers(adaLine(provider), step.line)
			if w.users()[1] == before[1] {
				t.Errorf("%s: the removal of %s changed the user before the run", provider, step.field)
			}
			wantCounts(t, w.sync(), domain.SyncCounts{Unchanged: 2})
		}

		w.must(w.release("bob@example.com", "role")) // which is classified at once
		w.wantUsers(adaLine(provider), "bob@example.com|Bob|Mossman|Finance|Clerk|ada@example.com|active|finance|fr-ca|microsoft|Microsoft 365")
		wantCounts(t, w.sync(), domain.SyncCounts{Unchanged: 2})
		for _, field := range []string{"last_name", "job_title", "preferred_language"} {
			w.must(w.release("bob@example.com", field))
		}
		wantCounts(t, w.sync(), domain.SyncCounts{Updated: 1, Unchanged: 1})
		w.wantUsers(adaLine(provider), bobLine)
		if err := w.release("bob@example.com", "role"); !domain.IsCode(err, domain.NotFound) {
			t.Errorf("%s: the removal of what is no override returns %v", provider, err)
		}
		w.check()
	}
}

// TestRemovedStatusOverride verifies that the run after the removal of a status override deactivates a user whose account is
// gone, and one whose account is disabled.
func TestRemovedStatusOverride(t *testing.T) {
	for provider := range list {
		w, s := newWorld(t), serve(t, provider, people(12)...)
		w.connect(w.client, s)
		w.sync()
		for _, email := range []string{"user001@example.com", "user002@example.com"} {
			for _, status := range []domain.UserStatus{domain.Inactive, domain.Active} {
				w.override(email, func(in *api.UpdateUserInput) { in.Body.Status = domain.Give(status) })
			}
		}
		s.Remove("id-001")
		off := people(12)[2]
		off.Disabled = true
		s.Put(off)
		w.sync()
		active := func() int {
			return w.Number("SELECT count(*) FROM users WHERE client_id = $1 AND status = 'active'", w.client)
		}
		if n := active(); n != 12 {
			t.Fatalf("%s: %d users are active with overrides", provider, n)
		}
		w.must(w.release("user001@example.com", "status"))
		w.must(w.release("user002@example.com", "status"))
		wantCounts(t, w.sync(), domain.SyncCounts{Deactivated: 2, Unchanged: 10})
		if n := active(); n != 10 {
			t.Errorf("%s: %d users are active", provider, n)
		}
		wantCounts(t, w.sync(), domain.SyncCounts{Unchanged: 10})
		w.check()
	}
}

// TestOverrideRemovedDuringRun verifies that the removal of an override is not lost if a run that has read the directory
// applies it before or after.
func TestOverrideRemovedDuringRun(t *testing.T) {
	for provider := range list {
		for steps := range 6 { // pages and batches
			w, s := newWorld(t), office(t, provider)
			w.connect(w.client, s)
			w.sync()
			w.override("bob@example.com", func(in *api.UpdateUserInput) { in.Body.FirstName = domain.Give("Robert") })
			changed := bob
			changed.Last = "Changed"
			s.Put(changed)

			lease, err := dirsync.Start(context.Background(), w.DB, w.client, true /* force */, 0)
			w.must(err)
			released := false
			left := steps
			run, err := w.runner.Work(context.Background(), lease, func(int, int) {
				if left--; left < 0 && !released {
					released = true
					w.must(w.release("bob@example.com", "first_name"))
				}
			})
			w.must(err)
			if run.Status != domain.SyncCompleted {
				t.Fatalf("%s: the run is %+v", provider, run)
			}
			if !released {
				w.must(w.release("bob@example.com", "first_name"))
			}
			w.Clock.Advance(time.Second)
			w.sync()
			w.wantUsers(adaLine(provider), "bob@example.com|Bob|Changed|Finance|-|ada@example.com|active|finance|en|microsoft|Microsoft 365")
			w.check()
		}
	}
}
