package migrate_test

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"partnerapi/db"
	"partnerapi/db/dbtest"
	"partnerapi/db/dbtest/fixture"
	"partnerapi/db/dbtest/worldtest"
	"partnerapi/db/migrate"
	"partnerapi/db/reports"
	"partnerapi/domain"
)

// noTables is a database without tables.
var noTables = dbtest.Schema{Name: "dbempty", Apply: func(context.Context, string) error { return nil }}

// beforeFrameworks is the last migration before those of frameworks, reports and
// directories.
const beforeFrameworks = 31

// oldWorld is a database as it was before frameworks, with a client and a user.
type oldWorld struct {
	*worldtest.World
	client domain.ClientID
	user   domain.UserID
}

func newOldWorld(t *testing.T) oldWorld {
	d, err := db.Open(dbtest.URL(t, noTables), db.WithClock(domain.NewManualClock(worldtest.Noon)), db.WithStrictLocks())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	w := oldWorld{World: &worldtest.World{DB: d, T: t, Partner: db.NewID[domain.PartnerKind]()},
		client: db.NewID[domain.ClientKind](), user: db.NewID[domain.UserKind]()}
	w.Must(migrate.UpTo(t.Context(), d, beforeFrameworks))
	w.Add("partners", fixture.Row{"id": w.Partner})
	w.Add("clients", fixture.Row{"id": w.client, "partner_id": w.Partner, "name": "Acme", "name_key": "acme"})
	w.Add("users", fixture.Row{"client_id": w.client, "id": w.user, "email": "ann@example.com"})
	return w
}

// migrate brings the tables to the newest version.
func (w oldWorld) migrate() {
	w.T.Helper()
	_, err := migrate.Up(w.T.Context(), w.World.DB)
	w.Must(err)
}

// is wants a query to return one text.
func (w oldWorld) is(want, query string, args ...any) {
	w.T.Helper()
	var got string
	w.Get(query, args, &got)
	if got != want {
		w.T.Errorf("%s %v: %s, not %s", query, args, got, want)
	}
}

// TestMigrateFrameworks: of a framework that an audience had twice the earlier
// assignment stays, with the modules of both, and is why the courses of both are
// assigned.
func TestMigrateFrameworks(t *testing.T) {
	t.Parallel()
	w := newOldWorld(t)
	group := db.NewID[domain.CollectionKind]()
	use := func(framework string, audience any, days int, modules fixture.Row) domain.FrameworkAssignmentID {
		id := db.NewID[domain.FrameworkAssignmentKind]()
		kind := "all"
		if audience != nil {
			kind = "collection"
		}
		full := fixture.Row{"client_id": w.client, "id": id, "framework_id": framework, "audience_type": kind, "audience_id": audience,
			"training": true, "phishing": false, "policies": false, "reporting": false, "created_at": worldtest.Noon.AddDate(0, 0, days)}
		for name, on := range modules {
			full[name] = on
		}
		w.Add("framework_uses", full)
		return id
	}
	// The one with the greater id is the earlier.
	later := use("cis_v8", nil, 2, fixture.Row{"policies": true})
	kept := use("cis_v8", nil, 1, fixture.Row{"phishing": true})
	third := use("cis_v8", nil, 3, nil)
	part := use("cis_v8", group, 4, nil)
	same := use("cis_v8", group, 5, fixture.Row{"training": false, "reporting": true})
	other := use("nist_csf", nil, 6, nil)

	course := func(n byte) domain.CourseID {
		return domain.CourseID{0x01, 0x9b, 0x77, 0x40, 0, 0, 0x70, 0, 0x80, 15: n}
	}
	for n, by := range []any{nil, nil, later, kept, third, part, same, other} {
		position := n
		if n > 0 {
			position += 1000
		}
		w.Add("assignments", fixture.Row{"client_id": w.client, "user_id": w.user, "course_id": course(byte(n + 1)), "round": 1,
			"position": position, "framework_use_id": by, "assigned_at": worldtest.Noon, "due_on": "2026-07-01"})
	}
	w.Add("waiting_assignments", fixture.Row{"client_id": w.client, "user_id": w.user, "course_id": course(13),
		"due_on": "2026-07-01", "notify": true, "asked_at": worldtest.Noon})

	w.migrate()
	w.is("true,true,true,false", `SELECT concat_ws(',', training, phishing, policies, reporting)
		FROM (SELECT training::text, phishing::text, policies::text, reporting::text FROM framework_assignments
		WHERE id = $1 AND evaluated_at = 'epoch') AS f`, kept)
	w.is("true,true", `SELECT training || ',' || reporting FROM framework_assignments WHERE id = $1`, part)
	w.is("3", "SELECT count(*) FROM framework_assignments")
	for n, want := range []any{"program", "direct", kept, kept, kept, part, part, other} {
		if id, ok := want.(domain.FrameworkAssignmentID); ok {
			want = id.UUID()
		}
		w.is(want.(string), `SELECT concat_ws(',', CASE WHEN from_program THEN 'program' END, CASE WHEN direct THEN 'direct' END,
			nullif(array_to_string(frameworks, '+'), '')) FROM assignments WHERE course_id = $1`, course(byte(n+1)))
	}
	w.is("true,{}", "SELECT direct || ',' || frameworks::text FROM waiting_assignments")

	tenant, err := w.AnyTenant(t.Context(), w.client)
	w.Must(err)
	w.Must(tenant.EvaluateStale(t.Context()))
	w.is("3 true", `SELECT concat_ws(' ', count(*) FILTER (WHERE evaluated_at > '-infinity'), bool_or(id = $1 AND total > 0)::text)
		FROM framework_assignments`, kept)
	for waiting := 1; waiting > 0; {
		waiting, err = w.AssignWaiting(t.Context())
		w.Must(err)
	}
	w.is("direct", "SELECT CASE WHEN direct THEN 'direct' END FROM assignments WHERE course_id = $1", course(13))
}

// TestMigrateReportedEmails: of the reports of one message by one user the earliest
// stays, with the latest classification.
func TestMigrateReportedEmails(t *testing.T) {
	t.Parallel()
	w := newOldWorld(t)
	bob := db.NewID[domain.UserKind]()
	w.Add("users", fixture.Row{"client_id": w.client, "id": bob, "email": "bob@example.com"})
	var ids []string
	report := func(user domain.UserID, message, classification string, hour int, classified any) {
		id := db.NewID[domain.EventKind]().UUID()
		ids = append(ids, id)
		if hours, ok := classified.(int); ok {
			classified = worldtest.Noon.Add(time.Duration(hours) * time.Hour)
		}
		w.Add("reported_emails", fixture.Row{"client_id": w.client, "id": id, "user_id": user, "message_id": message,
			"subject": "S", "sender": "x@example.org", "classification": classification,
			"reported_at": worldtest.Noon.Add(time.Duration(hour) * time.Hour), "classified_at": classified})
	}
	report(w.user, "<a@x>", "spam", 2, 3)
	report(w.user, " a@x ", "pending", 1, nil) // the earliest
	report(w.user, "a@x", "phishing", 4, 5)    // the latest classification
	report(w.user, "<b@x>", "pending", 1, nil)
	report(w.user, "b@x", "pending", 2, nil)
	report(bob, "<a@x>", "safe", 9, 10)
	report(bob, "alone", "pending", 1, nil)

	w.migrate()
	for n, want := range map[int]string{
		1: "a@x phishing 5 5", 3: "b@x pending 1", 5: "a@x safe 10 10", 6: "alone pending 1",
	} {
		w.is(want, `SELECT concat_ws(' ', message_id, classification, extract(epoch FROM updated_at - $2::timestamptz)::int / 3600,
			extract(epoch FROM classified_at - $2::timestamptz)::int / 3600) FROM reported_emails WHERE id = $1`, ids[n], worldtest.Noon)
	}
	w.is("4", "SELECT count(*) FROM reported_emails")
}

// TestMigrateMailAndReports: what waited is sent and made with the new tables.
func TestMigrateMailAndReports(t *testing.T) {
	t.Parallel()
	w := newOldWorld(t)
	invite := db.NewID[domain.UserKind]()
	w.Add("admin_invites", fixture.Row{"client_id": w.client, "id": invite, "email": "new@example.com", "role": "admin",
		"created_at": worldtest.Noon, "expires_at": worldtest.Noon})
	course, policy := "019b7740-0000-7000-8000-000000000001", db.NewID[domain.PolicyKind]()
	w.Add("policies", fixture.Row{"client_id": w.client, "id": policy, "version": 1, "scope_id": w.client, "counted_until": "-infinity",
		"audience_count": 0, "acknowledged_count": 0})
	for _, mail := range []fixture.Row{
		{"type": "welcome", "user_id": w.user}, {"type": "welcome", "user_id": w.user, "sent_at": worldtest.Noon},
		{"type": "admin-invite", "invite_id": invite}, {"type": "training-invite", "user_id": w.user, "course_id": course},
		{"type": "policy-reminder", "user_id": w.user, "policy_id": policy, "failed_at": worldtest.Noon, "failure": "no"},
	} {
		mail["client_id"], mail["id"], mail["created_at"] = w.client, db.NewID[domain.MessageKind](), worldtest.Noon
		w.Add("mail_requests", mail)
	}
	made, _ := json.Marshal(worldtest.Noon.AddDate(0, 0, -1))
	for _, status := range []string{"pending", "ready"} {
		w.Add("reports", fixture.Row{"client_id": w.client, "id": db.NewID[domain.ReportKind](), "type": "risk_overview", "format": "pdf",
			"status": status, "created_at": json.RawMessage(made), "updated_at": worldtest.Noon})
	}

	w.migrate()
	w.is("5 1 1", `SELECT concat_ws(' ', count(*), count(sent_at), count(failed_at)) FROM mail_requests
		WHERE num_nonnulls(round, result_id, breach_name, admin_id, report_id, due_at, suppressed_at) = 0`)
	pending, err := reports.PendingReports(t.Context(), w.World.DB, worldtest.Noon, 10)
	if err != nil || len(pending) != 1 {
		t.Errorf("the pending reports are %v, %v", pending, err)
	}
}

// TestMigrateUserBlocks: no blocks are left, and the release before adds none.
func TestMigrateUserBlocks(t *testing.T) {
	t.Parallel()
	w := newOldWorld(t)
	const add = "INSERT INTO user_blocks VALUES ($1, '-infinity', $1, 5, 0) ON CONFLICT (client_id, after_at, after_id) DO UPDATE SET active = 5"
	w.Must(migrate.UpTo(t.Context(), w.World.DB, 89))
	w.Exec(add, w.client)
	w.migrate()
	w.Exec(add, w.client)
	w.is("0", "SELECT count(*) FROM user_blocks")
}
