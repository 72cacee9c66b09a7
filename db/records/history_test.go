package records_test

import (
	"testing"
	"time"

	"partnerapi/db"
	"partnerapi/db/records"
	"partnerapi/domain"
)

// count counts rows of a query that have no arguments.
func (w *world) count(from string) int {
	w.T.Helper()
	return w.Number("SELECT count(*) FROM " + from)
}

func emailOf(user domain.UserID, id domain.MessageID) domain.SentEmailRecord {
	return domain.SentEmailRecord{
		ID: domain.RefTo(id), User: domain.Give(domain.RefTo(user)), EventTime: moment(day),
		FromEmail: domain.Give("it@example.com"), Subject: domain.Give("Welcome"),
		SendMethod: domain.Give(domain.BySMTP), MessageType: domain.Give(domain.WelcomeMail),
	}
}

// TestImportSentEmails: mails are added and updated by user and id.
func TestImportSentEmails(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	client := w.AddClient()
	one, two := w.AddUser(client, domain.RoleStandard, 750), w.AddUser(client, domain.RoleStandard, 750)
	id := db.NewID[domain.MessageKind]()
	changed := func(id domain.MessageID) domain.SentEmailRecord { // needs no event_time if it is there
		return domain.SentEmailRecord{ID: domain.RefTo(id), User: domain.Give(domain.RefTo(two)), Subject: domain.Give("Hello")}
	}
	importAll(w, records.SentEmails, []domain.SentEmailRecord{
		emailOf(one, id), emailOf(two, id), emailOf(domain.UserID{1}, id), changed(db.NewID[domain.MessageKind]()),
	}, "created", "created", "refused: user: there is no such user", "refused: event_time is required")

	importAll(w, records.SentEmails, []domain.SentEmailRecord{emailOf(one, id), changed(id)}, "unchanged", "updated")
	if n := w.count("sent_emails WHERE subject = 'Hello' AND message_type = 'welcome'"); n != 1 || w.count("sent_emails") != 2 {
		t.Errorf("%d mails are changed", n)
	}
	if n := w.count("events") + w.count("mail_requests"); n != 0 {
		t.Errorf("%d are told", n)
	}
}

// TestImportExposures: exposures score, are one for a user and breach, and nobody is
// told of them.
func TestImportExposures(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	client := w.AddClient()
	user := w.AddUser(client, domain.RoleStandard, 750)
	_, _, err := w.ImportBreaches(t.Context(), []domain.Breach{
		{Name: "Forum", Title: "Forum", Severity: domain.SeverityCritical, DataClasses: []string{"Passwords"}},
	})
	w.Must(err)
	exposure := domain.ExposureRecord{
		ID: domain.RefTo(domain.ExposureID{1}), User: domain.Give(domain.RefTo(user)), BreachName: domain.Give("Forum"),
		FirstSeenAt: moment(50 * day),
	}
	unknown, early := exposure, exposure
	unknown.BreachName = domain.Give("None")
	early.ResolvedAt = maybe(51 * day)

	importAll(w, records.Exposures, []domain.ExposureRecord{exposure, unknown, early, exposure}, "created",
		"refused: breach_name: there is no such breach; first, import the breaches with partnerapi breaches import",
		"refused: resolved_at is before first_seen_at", "unchanged")
	if risk, err := w.UserRisk(t.Context(), user); err != nil || risk.Score != 680 {
		t.Errorf("scored %+v, %v", risk, err)
	}

	resolved := exposure
	resolved.ResolvedAt, resolved.DataClasses = maybe(day), domain.Give([]string{"Names"})
	importAll(w, records.Exposures, []domain.ExposureRecord{resolved}, "updated")
	if risk, err := w.UserRisk(t.Context(), user); err != nil || risk.Score != 750 {
		t.Errorf("scored %+v, %v", risk, err)
	}
	if n := w.count("events") + w.count("mail_requests"); n != 0 {
		t.Errorf("%d are told", n)
	}
	if n := w.count("exposures WHERE severity = 'critical' AND data_classes = '{Names}' AND found"); n != 1 {
		t.Errorf("%d are as they were told", n)
	}
}

// TestImportFrameworkAssignments: the audience gets the courses as of when both were
// there, what is overdue of them is no event, and training that is switched off is
// withdrawn.
func TestImportFrameworkAssignments(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	client, other := w.AddClient(), w.AddClient()
	old := w.AddUser(client, domain.RoleStandard, 750)
	w.Exec("UPDATE users SET created_at = $1", noon.Add(-100*day))
	young := w.AddUser(client, domain.RoleStandard, 750)
	w.Exec("UPDATE users SET created_at = $1 WHERE id = $2", noon.Add(-10*day), young)
	w.Exec("INSERT INTO assignments (client_id, user_id, course_id, position, from_program, assigned_at, due_on) "+
		"VALUES ($1, $2, '019b7740-0000-7000-8000-000000000009', 1, true, $3, $4)", client, young, noon.Add(-day), today.AddDays(5))

	of := func(framework string) domain.FrameworkAssignmentRecord {
		return domain.FrameworkAssignmentRecord{
			ID: domain.RefTo(db.NewID[domain.FrameworkAssignmentKind]()), Client: domain.Give(domain.RefTo(client)),
			Framework: domain.Give(framework), CreatedAt: moment(60 * day),
		}
	}
	gone := of("soc2")
	gone.Audience = domain.Give(domain.AudienceRecord{
		Type: domain.FrameworkForCollection, ID: new(domain.AnyRefTo(domain.CollectionID{1})), Deleted: true,
	})
	nobody := of("soc2")
	nobody.Audience = domain.Give(domain.AudienceRecord{
		Type: domain.FrameworkForGroup, ID: new(domain.AnyRefTo(domain.GroupID{1})),
	})
	gdpr, none := of("gdpr"), of("none")
	importAll(w, records.Frameworks, []domain.FrameworkAssignmentRecord{gdpr, of("gdpr"), gone, nobody, none},
		"created", "refused: audience is already used by the framework assignment", "created", "refused: audience: the client has no such group", "refused: framework must be")

	type given struct {
		due      domain.Date
		assigned time.Time
		reasons  int
		noted    bool
	}
	read := func(user domain.UserID) (g given) {
		w.Scan("SELECT due_on, assigned_at, cardinality(frameworks), overdue_noted FROM assignments WHERE user_id = $1",
			[]any{user}, &g.due, &g.assigned, &g.reasons, &g.noted)
		g.assigned = g.assigned.UTC()
		return g
	}
	want := given{today.AddDays(-30), noon.Add(-60 * day), 1, true}
	if got := read(old); got != want {
		t.Errorf("given as %+v, not %+v", got, want)
	}
	if got := read(young); got != (given{today.AddDays(5), noon.Add(-day), 1, false}) {
		t.Errorf("who had the course has it as %+v", got)
	}
	var frameworks string
	w.Scan("SELECT framework_ids::text FROM clients WHERE id = $1", []any{client}, &frameworks)
	if n, _, err := w.NoteOverdue(t.Context()); n != 0 || err != nil || frameworks != "{gdpr,soc2}" || w.count("events") != 0 {
		t.Errorf("%d are overdue, %v; the client has %s", n, err, frameworks)
	}

	w.switchTraining(other, gdpr, gone)
	if got := read(old); got != want {
		t.Errorf("given again as %+v, not %+v", got, want)
	}
}

// switchTraining imports an assignment again, and switches its training off and on: the
// program's one course stays.
func (w *world) switchTraining(other domain.ClientID, assigned, gone domain.FrameworkAssignmentRecord) {
	w.T.Helper()
	type list = []domain.FrameworkAssignmentRecord
	importAll(w, records.Frameworks, list{assigned, gone}, "unchanged", "unchanged")
	moved := assigned
	moved.Client.Value = domain.RefTo(other)
	importAll(w, records.Frameworks, list{moved}, "refused: client cannot be changed")

	off := assigned
	off.Modules = domain.Give(domain.ModulesRecord{Training: new(false), Policies: new(true)})
	importAll(w, records.Frameworks, list{off}, "updated")
	if n := w.count("assignments"); n != 1 {
		w.T.Errorf("%d courses are left", n)
	}
	off.Modules = domain.Give(domain.ModulesRecord{Training: new(true)})
	importAll(w, records.Frameworks, list{off}, "updated")
}
