package db_test

import (
	"maps"
	"time"

	"partnerapi/db"
	"partnerapi/domain"
)

// evaluatedRows are rows of a client from which framework assignments are evaluated, by table.
type evaluatedRows struct {
	client domain.ClientID
	tables map[string][]row
}

func newEvaluatedRows(client domain.ClientID) *evaluatedRows {
	return &evaluatedRows{client: client, tables: map[string][]row{}}
}

// add adds a row to a table, with other values than it has by itself.
func (e *evaluatedRows) add(table string, r, other row) {
	r["client_id"] = e.client
	maps.Copy(r, other)
	e.tables[table] = append(e.tables[table], r)
}

// daysAgo is the given number of days before noon, and a time more.
func daysAgo(days int, more time.Duration) time.Time { return noon.AddDate(0, 0, -days).Add(-more) }

// user adds an active standard user of two years.
func (e *evaluatedRows) user(other row) domain.UserID {
	id := db.NewID[domain.UserKind]()
	e.add("users", row{
		"id": id, "email": id.String() + "@example.com", "role": domain.RoleStandard, "status": domain.Active,
		"group_id": nil, "next_due_on": nil, "created_at": daysAgo(730, 0),
	}, other)
	return id
}

// round adds a round of a course that was completed at a time, or is open for nil.
func (e *evaluatedRows) round(user domain.UserID, course domain.CourseID, completed any) {
	e.add("assignments", row{
		"user_id": user, "course_id": course, "round": 1 + len(e.tables["assignments"]), "position": 1,
		"completed_at": completed, "assigned_at": daysAgo(730, 0), "due_on": today,
	}, nil)
}

// mail adds a simulated mail.
func (e *evaluatedRows) mail(user domain.UserID, sent time.Time, other row) {
	e.add("phishing_results", row{
		"id": db.NewID[domain.ResultKind](), "user_id": user, "template_id": domain.TemplateID{15: 1},
		"status": domain.ResultSent, "sent_at": sent, "clicked_at": nil, "credentials_submitted_at": nil,
		"attachment_opened_at": nil, "reported": false,
	}, other)
}

// click adds a simulated mail that was clicked.
func (e *evaluatedRows) click(user domain.UserID, sent, clicked time.Time) {
	e.mail(user, sent, row{"status": domain.ResultClicked, "clicked_at": clicked})
}

// policy adds the second version of a policy that all users are to sign for a year.
func (e *evaluatedRows) policy(other row) domain.PolicyID {
	id := db.NewID[domain.PolicyKind]()
	e.add("policies", row{
		"id": id, "scope_type": domain.TenantScope, "scope_id": e.client, "requires_acknowledgment": true,
		"archived_at": nil, "version": 2, "renewal_period_days": 365, "reviewed_at": daysAgo(365, 0),
	}, other)
	return id
}

func (e *evaluatedRows) sign(user domain.UserID, policy domain.PolicyID, version int, at time.Time) {
	e.add("policy_signatures", row{"policy_id": policy, "version": version, "user_id": user, "signed_at": at}, nil)
}

func (e *evaluatedRows) report(of domain.ReportType, status domain.ReportStatus, ready time.Time) {
	e.add("reports", row{
		"id": db.NewID[domain.ReportKind](), "type": of, "format": "pdf", "status": status,
		"created_at": daysAgo(730, 0), "updated_at": ready,
	}, nil)
}

// follow adds an assignment of a framework to all users, with all modules.
func (e *evaluatedRows) follow(framework string, other row) domain.FrameworkAssignmentID {
	id := db.NewID[domain.FrameworkAssignmentKind]()
	e.add("framework_assignments", row{
		"id": id, "framework_id": framework, "audience_type": "all", "audience_id": nil, "training": true,
		"phishing": true, "policies": true, "reporting": true, "created_at": noon,
	}, other)
	return id
}

// store writes the rows.
func (w *world) store(e *evaluatedRows) {
	w.T.Helper()
	w.Add("phishing_templates", row{"id": domain.TemplateID{15: 1}})
	for _, table := range []string{
		"groups", "users", "collections", "collection_members", "policies", "policy_signatures", "reports",
		"assignments", "phishing_results", "framework_assignments",
	} {
		w.Add(table, e.tables[table]...)
	}
}
