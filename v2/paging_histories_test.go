package v2_test

import (
	"bytes"
	"crypto/md5"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"partnerapi/domain"
	"partnerapi/v2/api"
	"partnerapi/v2/v2test"
)

func pagedBreach(n int) string { return fmt.Sprintf("Breach_%03d", n) }

// breaches adds breaches to the catalogue.
func (p *pagedTable) breaches(n int) {
	for i := range n {
		p.h.Exec("INSERT INTO breaches (name, title, severity, data_classes) VALUES ($1, $1, 'low', '{Names}')", pagedBreach(i))
	}
}

// expose makes a user have the exposure that a row is.
func (p *pagedTable) expose(home pagedHome, breach string, r pagedRow) {
	p.h.Exec(`INSERT INTO exposures (client_id, user_id, breach_name, severity, data_classes, first_seen_at, updated_at)
		VALUES ($1, $2, $3, 'low', '{Names}', $4, $5)
		ON CONFLICT (client_id, user_id, breach_name) DO UPDATE SET first_seen_at = excluded.first_seen_at, updated_at = excluded.updated_at`,
		home.client, home.user, breach, r.created, r.updated)
}

// pagedExposures: five users of the client are in each breach, one of them
// inactive, and so are a neighbour's and another partner's.
func pagedExposures(t *testing.T, rows int) *pagedTable {
	p := newPagedTable(t, 16)
	homes := p.homes()
	exposed := []domain.UserID{homes[0].user, homes[1].user}
	for i := range 3 {
		exposed = append(exposed, p.h.User(p.tenant, p.client, v2test.Email(10+i)).ID)
	}
	p.h.Exec("UPDATE users SET status = 'inactive' WHERE id = $1", exposed[1])
	p.breaches(60)
	p.of(api.ListExposures, ids{"client_id": p.client.String()}, "user_id", "breach_name")
	made := 0
	p.name = func() ([16]byte, string) {
		user, breach := exposed[made%len(exposed)], pagedBreach(made/len(exposed))
		made++
		return md5.Sum([]byte(user.UUID() + breach)), user.String() + " " + breach
	}
	named := func(r pagedRow) (pagedHome, string) {
		text, breach, _ := strings.Cut(r.id, " ")
		user, err := domain.ParseID[domain.UserKind](text)
		if err != nil {
			t.Error(err)
		}
		return pagedHome{p.client, user}, breach
	}
	p.store = func(r pagedRow) {
		home, breach := named(r)
		p.expose(home, breach, r)
		p.expose(homes[2], breach, r)
		p.expose(homes[3], breach, r)
	}
	p.drop = func(r pagedRow) {
		home, breach := named(r)
		p.h.Exec("DELETE FROM exposures WHERE client_id = $1 AND user_id = $2 AND breach_name = $3", home.client, home.user, breach)
	}
	p.fill(rows)
	p.add("all", "", func(pagedRow) bool { return true })
	p.add("since", "since="+pagedFrom.Format(time.RFC3339), func(r pagedRow) bool { return !r.created.Before(pagedFrom) })
	p.add("until", "until="+pagedUntil.Format(time.RFC3339), func(r pagedRow) bool { return r.created.Before(pagedUntil) })
	p.add("updated_since", pagedUpdated, pagedRow.recent)
	p.add("all filters", pagedPeriod+"&"+pagedUpdated, func(r pagedRow) bool { return pagedWithin(r.created) && r.recent() })
	return p
}

// pagedTraining: users of the same client and of others have the same courses at
// the same places, all of them in a second round; the first had another order.
func pagedTraining(t *testing.T, rows int) *pagedTable {
	p := newPagedTable(t, 17)
	homes := p.homes()
	p.h.Exec("DELETE FROM assignments") // the program's
	p.order = "risk_score"              // which stands for the place
	p.of(api.ListTraining, ids{"user_id": homes[0].user.String()}, "course_id")
	p.show = func(uuid [16]byte) string { return domain.CourseID(uuid).String() }
	p.store = func(r pagedRow) {
		var completed *time.Time
		if r.kind == 2 {
			completed = new(v2test.Noon)
		}
		course := domain.CourseID(r.uuid)
		p.h.Exec("INSERT INTO courses (id, title, created_at) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING", course, r.name, r.created)
		for _, home := range homes {
			p.h.Exec(`INSERT INTO assignments (client_id, user_id, course_id, round, position, assigned_at, due_on, completed_at)
				VALUES ($1, $2, $3, 1, 2000 - $4::integer, $5, '2026-01-01', '2025-01-01T00:00:00Z'), ($1, $2, $3, 2, $4, $5, '2026-07-01', $6)
				ON CONFLICT (client_id, user_id, course_id, round) DO UPDATE SET
				position = excluded.position, assigned_at = excluded.assigned_at, completed_at = excluded.completed_at`,
				home.client, home.user, course, r.score, r.updated, completed)
		}
	}
	p.drop = func(r pagedRow) {
		p.h.Exec("DELETE FROM assignments WHERE client_id = $1 AND user_id = $2 AND course_id = $3", p.client, homes[0].user, domain.CourseID(r.uuid))
	}
	p.fill(rows)
	p.add("all", "", pagedAll)
	p.add("updated_since", pagedUpdated, func(r pagedRow) bool { return r.recent() || r.kind == 2 })
	return p
}

// pagedClientTraining: two users of the client, one of them inactive, have courses of their
// own in a second round; a neighbour's and another partner's users have them all.
func pagedClientTraining(t *testing.T, rows int) *pagedTable {
	p := newPagedTable(t, 21)
	homes := p.homes()
	p.h.Exec("DELETE FROM assignments") // the program's
	users := []domain.UserID{homes[0].user, homes[1].user}
	slices.SortFunc(users, func(a, b domain.UserID) int { return bytes.Compare(a[:], b[:]) })
	p.h.Exec("UPDATE users SET status = 'inactive' WHERE id = $1", users[1])
	p.countUsers()
	owner := func(course [16]byte) domain.UserID { return users[course[0]>>7] } // in the order of the courses
	p.of(api.ListClientTraining, ids{"client_id": p.client.String()}, "user_id", "course_id")
	p.show = func(uuid [16]byte) string { return owner(uuid).String() + " " + domain.CourseID(uuid).String() }
	completed := func(r pagedRow) bool { return r.kind%3 == 0 }
	p.store = func(r pagedRow) {
		var at *time.Time
		if completed(r) {
			at = &r.created
		}
		due, course := []string{"2026-07-01", "2026-07-01", "2026-01-01", "2026-01-01"}[r.kind], domain.CourseID(r.uuid)
		p.h.Exec("INSERT INTO courses (id, title, created_at) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING", course, r.name, r.created)
		for _, home := range []pagedHome{{p.client, owner(r.uuid)}, homes[2], homes[3]} {
			p.h.Exec(`INSERT INTO assignments (client_id, user_id, course_id, round, superseded, position, assigned_at, due_on, completed_at, updated_at)
				VALUES ($1, $2, $3, 1, true, 1, $5, '2026-01-01', '2025-01-01T00:00:00Z', $7), ($1, $2, $3, 2, false, $4, $5, $8, $6, $7)
				ON CONFLICT (client_id, user_id, course_id, round) DO UPDATE SET position = excluded.position,
				assigned_at = excluded.assigned_at, due_on = excluded.due_on, completed_at = excluded.completed_at, updated_at = excluded.updated_at`,
				home.client, home.user, course, r.score, r.created, at, r.updated, due)
		}
	}
	p.drop = func(r pagedRow) {
		p.h.Exec("DELETE FROM assignments WHERE client_id = $1 AND course_id = $2", p.client, domain.CourseID(r.uuid))
	}
	p.fill(rows)

	active := func(r pagedRow) bool { return owner(r.uuid) == users[0] }
	changed := func(r pagedRow) bool { return r.recent() || !r.created.Before(pagedSince) }
	p.add("all", "", pagedAll)
	p.add("user_id", "user_id="+users[1].String(), func(r pagedRow) bool { return !active(r) })
	p.add("user_status", "user_status=active", active)
	p.add("status", "status=completed", completed)
	p.add("two states", "status=assigned,overdue", func(r pagedRow) bool { return !completed(r) })
	p.add("overdue", "status=overdue", func(r pagedRow) bool { return r.kind == 2 })
	p.add("completed within", "completed_since="+pagedFrom.Format(time.RFC3339)+"&completed_until="+pagedUntil.Format(time.RFC3339),
		func(r pagedRow) bool { return completed(r) && pagedWithin(r.created) })
	p.add("updated_since", pagedUpdated, changed)
	p.add("all filters", "user_status=inactive&status=assigned,completed&"+pagedUpdated,
		func(r pagedRow) bool { return !active(r) && r.kind != 2 && changed(r) })
	return p
}

// pagedStatuses are the states of results by the kind of their rows; those of
// the first were not sent yet.
var pagedStatuses = []domain.ResultStatus{domain.ResultScheduled, domain.ResultSent, domain.ResultClicked, domain.ResultCredentialsSubmitted}

// sent is when the mail of a result was sent; nil for not yet.
func (r pagedRow) sent() *time.Time {
	if pagedStatuses[r.kind] == domain.ResultScheduled {
		return nil
	}
	return new(r.sendAt())
}

// pagedResults: the results of two users, one of whom has the finance role's;
// other clients' results were made and sent at the same moments. A period puts
// them in the order of sending, else updated_since in that of their changes.
func pagedResults(t *testing.T, rows int) *pagedTable {
	p := newPagedTable(t, 18)
	homes := p.homes()
	template := domain.TemplateID{15: 9}
	p.template(template, pagedRow{name: "Template", created: v2test.Noon, updated: v2test.Noon})
	p.of(api.ListPhishingResults, ids{"client_id": p.client.String()}, "result_id")
	p.show = func(uuid [16]byte) string { return domain.ResultID(uuid).String() }
	p.store = func(r pagedRow) {
		for _, i := range []int{0, 2, 3} {
			home := homes[i]
			if i == 0 && r.role == domain.RoleFinance {
				home = homes[1]
			}
			p.h.Exec(`INSERT INTO phishing_results (client_id, id, user_id, template_id, status, send_at, sent_at, created_at, updated_at)
				VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9) ON CONFLICT (client_id, id) DO UPDATE SET user_id = excluded.user_id, status = excluded.status,
				send_at = excluded.send_at, sent_at = excluded.sent_at, created_at = excluded.created_at, updated_at = excluded.updated_at`,
				home.client, domain.ResultID(pagedTwin(r.uuid, i)), home.user, template, pagedStatuses[r.kind], r.sendAt(), r.sent(), r.created, r.updated)
		}
	}
	p.drop = func(r pagedRow) {
		p.h.Exec("DELETE FROM phishing_results WHERE client_id = $1 AND id = $2", p.client, domain.ResultID(r.uuid))
	}
	p.fill(rows)
	of := func(r pagedRow) bool { return r.role == domain.RoleFinance }
	user, one := "user_id="+homes[1].user.String(), p.rows[7].id
	p.add("all", "", pagedAll)
	p.add("user_id", user, of)
	p.add("result_id", "result_id="+one, func(r pagedRow) bool { return r.id == one })
	p.add("status", "status=clicked", func(r pagedRow) bool { return r.kind == 2 })
	p.add("status scheduled", "status=scheduled", func(r pagedRow) bool { return r.kind == 0 })
	p.add("several statuses", "status=sent,clicked,credentials_submitted", func(r pagedRow) bool { return r.kind > 0 })
	p.order = "updated_at"
	p.add("updated_since", pagedUpdated, pagedRow.recent)
	p.order = "sent_at"
	sent := func(r pagedRow) bool { return r.kind > 0 }
	p.add("since", "since="+pagedSince.Format(time.RFC3339), func(r pagedRow) bool { return sent(r) && !r.sendAt().Before(pagedSince) })
	p.add("until", "until="+pagedUntil.Format(time.RFC3339), func(r pagedRow) bool { return sent(r) && r.sendAt().Before(pagedUntil) })
	p.add("since, until, user_id and updated_since", pagedPeriod+"&"+user+"&"+pagedUpdated,
		func(r pagedRow) bool { return sent(r) && pagedWithin(r.sendAt()) && of(r) && r.recent() })
	return p
}

// pagedMails are the types of mails by the kind of their rows.
var pagedMails = []domain.MessageType{domain.TrainingInvite, domain.PhishingMail, domain.WelcomeMail, domain.PolicyReminder}

// pagedEmails: other users were sent mails of the same ids at the same moments.
func pagedEmails(t *testing.T, rows int) *pagedTable {
	p := newPagedTable(t, 19)
	homes := p.homes()
	p.order = "-created_at"
	p.of(api.ListEmails, ids{"user_id": homes[0].user.String()}, "subject") // which is the id, that v2 does not show
	p.show = func(uuid [16]byte) string { return domain.MessageID(uuid).UUID() }
	p.store = func(r pagedRow) {
		for _, home := range homes {
			p.h.Exec(`INSERT INTO sent_emails (client_id, user_id, id, sent_at, from_email, subject, send_method, message_type)
				VALUES ($1, $2, $3, $4, 'it@example.com', $5, 'smtp', $6)
				ON CONFLICT (client_id, user_id, id) DO UPDATE SET sent_at = excluded.sent_at, message_type = excluded.message_type`,
				home.client, home.user, domain.MessageID(r.uuid), r.created, r.id, pagedMails[r.kind])
		}
	}
	p.drop = func(r pagedRow) {
		p.h.Exec("DELETE FROM sent_emails WHERE client_id = $1 AND user_id = $2 AND id = $3", p.client, homes[0].user, domain.MessageID(r.uuid))
	}
	p.fill(rows)
	some := func(r pagedRow) bool { return r.kind == 1 || r.kind == 2 }
	p.add("all", "", pagedAll)
	p.add("message_types", "message_types=phishing,welcome", some)
	p.add("since", "since="+pagedFrom.Format(time.RFC3339), func(r pagedRow) bool { return !r.created.Before(pagedFrom) })
	p.add("until", "until="+pagedUntil.Format(time.RFC3339), func(r pagedRow) bool { return r.created.Before(pagedUntil) })
	p.add("all filters", pagedPeriod+"&message_types=welcome&message_types=phishing", func(r pagedRow) bool { return some(r) && pagedWithin(r.created) })
	return p
}

// pagedClasses are the classes of reported mails by the kind of their rows.
var pagedClasses = []domain.EmailClass{domain.ClassPending, domain.ClassSpam, domain.ClassPhishing, domain.ClassSafe}

// pagedReported: users of other clients reported mails at the same moments.
func pagedReported(t *testing.T, rows int) *pagedTable {
	p := newPagedTable(t, 22)
	homes := p.homes()
	p.of(api.ListReportedEmails, ids{"client_id": p.client.String()}, "id")
	p.show = func(uuid [16]byte) string { return domain.ReportedEmailID(uuid).String() }
	p.store = func(r pagedRow) {
		for _, i := range []int{0, 2, 3} {
			id := domain.ReportedEmailID(pagedTwin(r.uuid, i))
			p.h.Exec(`INSERT INTO reported_emails (client_id, id, user_id, message_id, subject, sender, classification, reported_at, updated_at)
				VALUES ($1, $2, $3, $4, '', 'a@example.com', $5, $6, $7) ON CONFLICT (client_id, id) DO UPDATE SET
				classification = excluded.classification, reported_at = excluded.reported_at, updated_at = excluded.updated_at`,
				homes[i].client, id, homes[i].user, id.UUID(), pagedClasses[r.kind], r.created, r.updated)
		}
	}
	p.drop = func(r pagedRow) {
		p.h.Exec("DELETE FROM reported_emails WHERE client_id = $1 AND id = $2", p.client, domain.ReportedEmailID(r.uuid))
	}
	p.fill(rows)
	p.add("all", "", pagedAll)
	p.add("classification", "classification=phishing", func(r pagedRow) bool { return r.kind == 2 })
	p.add("since", "since="+pagedFrom.Format(time.RFC3339), func(r pagedRow) bool { return !r.created.Before(pagedFrom) })
	p.add("updated_since", pagedUpdated, pagedRow.recent)
	p.add("all filters", pagedPeriod+"&classification=pending&"+pagedUpdated,
		func(r pagedRow) bool { return r.kind == 0 && pagedWithin(r.created) && r.recent() })
	return p
}

// pagedTypes and pagedStates are those of reports by their kind.
var (
	pagedTypes  = [4]domain.ReportType{domain.PolicyReport, domain.RiskOverview, domain.DarkWebReport, domain.PolicyReport}
	pagedStates = [4]domain.ReportStatus{domain.ReportReady, domain.ReportPending, domain.ReportReady, domain.ReportFailed}
)

// pagedReports: other clients have reports with the same ids.
func pagedReports(t *testing.T, rows int) *pagedTable {
	p := newPagedTable(t, 23)
	homes := p.homes()
	p.order = "-created_at"
	p.of(api.ListReports, ids{"client_id": p.client.String()}, "id")
	p.show = func(uuid [16]byte) string { return domain.ReportID(uuid).String() }
	p.store = func(r pagedRow) {
		for _, home := range []pagedHome{homes[0], homes[2], homes[3]} {
			p.h.Exec(`INSERT INTO reports (client_id, id, type, format, status, created_at, updated_at) VALUES ($1, $2, $3, 'pdf', $4, $5, $6)
				ON CONFLICT (client_id, id) DO UPDATE SET type = excluded.type, status = excluded.status,
				created_at = excluded.created_at, updated_at = excluded.updated_at`,
				home.client, domain.ReportID(r.uuid), pagedTypes[r.kind], pagedStates[r.kind], r.created, r.updated)
		}
	}
	p.drop = func(r pagedRow) {
		p.h.Exec("DELETE FROM reports WHERE client_id = $1 AND id = $2", p.client, domain.ReportID(r.uuid))
	}
	p.fill(rows)
	p.add("all", "", pagedAll)
	p.add("type", "type=policy", func(r pagedRow) bool { return pagedTypes[r.kind] == domain.PolicyReport })
	p.add("status", "status=ready", func(r pagedRow) bool { return pagedStates[r.kind] == domain.ReportReady })
	p.add("updated_since", pagedUpdated, pagedRow.recent)
	p.add("all filters", pagedUpdated+"&type=policy&status=failed", func(r pagedRow) bool { return r.kind == 3 && r.recent() })
	return p
}

// pagedCourses replaces the catalogue of courses.
func pagedCourses(t *testing.T, rows int) *pagedTable {
	p := newPagedTable(t, 20)
	p.h.Exec("TRUNCATE courses CASCADE")
	p.of(api.ListCourses, nil, "id")
	p.show = func(uuid [16]byte) string { return domain.CourseID(uuid).String() }
	p.store = func(r pagedRow) {
		p.h.Exec(`INSERT INTO courses (id, title, created_at) VALUES ($1, $2, $3)
			ON CONFLICT (id) DO UPDATE SET title = excluded.title, created_at = excluded.created_at`, domain.CourseID(r.uuid), r.name, r.created)
	}
	p.drop = func(r pagedRow) { p.h.Exec("DELETE FROM courses WHERE id = $1", domain.CourseID(r.uuid)) }
	p.fill(rows)
	p.add("all", "", pagedAll)
	return p
}

func pagedTemplates(t *testing.T, rows int) *pagedTable {
	p := newPagedTable(t, 21)
	p.of(api.ListPhishingTemplates, nil, "id")
	p.show = func(uuid [16]byte) string { return domain.TemplateID(uuid).String() }
	p.store = func(r pagedRow) { p.template(r.uuid, r) }
	p.drop = func(r pagedRow) { p.h.Exec("DELETE FROM phishing_templates WHERE id = $1", domain.TemplateID(r.uuid)) }
	p.fill(rows)
	p.add("all", "", pagedAll)
	p.add("updated_since", pagedUpdated, func(r pagedRow) bool { return r.recent() || !r.created.Before(pagedSince) })
	return p
}

// template makes the catalogue have the template that a row is.
func (p *pagedTable) template(id domain.TemplateID, r pagedRow) {
	p.h.Exec(`INSERT INTO phishing_templates (id, name, language, category, subject, from_address, html, body, created_at, changed_at)
		VALUES ($1, $2, 'en', 'it', 'Subject', 'it@example.com', '', '', $3, $4)
		ON CONFLICT (id) DO UPDATE SET name = excluded.name, created_at = excluded.created_at, changed_at = excluded.changed_at`,
		id, r.name, r.created, r.updated)
}
