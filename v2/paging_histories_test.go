package v2_test

import (
	"bytes"
	"crypto/md5"
	"fmt"
	"slices"

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

// pagedExposures: five users of the client are in each breach, one of them
// inactive, and so are a neighbor's and another partner's.
func pagedExposures(p *pagedTable) {
	p.ofClient(api.ListExposures, nil, "user_id", "breach_name")
	exposed := []domain.UserID{p.homes[0].user, p.other.user}
	for i := range 3 {
		exposed = append(exposed, p.h.AddUser(p.tenant, p.homes[0].client, v2test.Email(10+i)).ID)
	}
	p.h.Exec("UPDATE users SET status = 'inactive' WHERE id = $1", exposed[1])
	p.breaches(60)
	type exposure struct {
		user   domain.UserID
		breach string
	}
	named := map[[16]byte]exposure{}
	p.name = func() ([16]byte, string) {
		e := exposure{exposed[len(named)%len(exposed)], pagedBreach(len(named) / len(exposed))}
		uuid := md5.Sum([]byte(e.user.UUID() + e.breach))
		named[uuid] = e
		return uuid, e.user.String() + " " + e.breach
	}
	p.fill(func(of *pagedRecords, r pagedRow) {
		e := named[r.uuid]
		if of.client != p.homes[0].client {
			e.user = of.user
		}
		of.putExposure(true, e.user, e.breach, r)
	})
	p.add("", pagedAll)
	p.add(sinceQuery, func(r pagedRow) bool { return fromSince(r.created) })
	p.add(untilQuery, func(r pagedRow) bool { return beforeUntil(r.created) })
	p.add(updatedQuery, pagedRow.recent)
	p.add(sinceQuery+"&"+untilQuery+"&"+updatedQuery, func(r pagedRow) bool { return pagedWithin(r.created) && r.recent() })
	p.sorted([]string{"", "first_seen_at", "-first_seen_at"})
}

// putRound puts a round of a course that the home's user has.
func (of *pagedRecords) putRound(r pagedRow, round columns) {
	round["user_id"], round["course_id"] = of.user, r.uuid
	of.put("assignments", "user_id, course_id, round", round)
}

// course has the catalogue have the course of a row.
func (p *pagedTable) course(r pagedRow) {
	p.h.Exec("INSERT INTO courses (id, title, created_at) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING",
		domain.CourseID(r.uuid), r.name, r.created)
}

// pagedTraining: users of the same client and of others have the same courses at
// the same places, all of them in a second round; the first had another order.
func pagedTraining(p *pagedTable) {
	p.ofClient(api.ListTraining, shownAs[domain.CourseKind], "course_id")
	p.h.Exec("DELETE FROM assignments") // the program's
	p.homes = append(p.homes, p.other)
	p.order = "risk_score" // which stands for the place
	p.fill(func(of *pagedRecords, r pagedRow) {
		var completed any
		if r.kind == 2 {
			completed = v2test.Noon
		}
		p.course(r)
		of.putRound(r, columns{
			"round": 1, "position": 2000 - r.score, "assigned_at": r.updated, "due_on": "2026-01-01",
			"completed_at": "2025-01-01T00:00:00Z",
		})
		of.putRound(r, columns{
			"round": 2, "position": r.score, "assigned_at": r.updated, "due_on": "2026-07-01", "completed_at": completed,
		})
	})
	p.add("", pagedAll)
	p.add(updatedQuery, func(r pagedRow) bool { return r.recent() || r.kind == 2 })
}

// pagedClientTraining: two users of the client, one of them inactive, have courses of their
// own in a second round; a neighbor's and another partner's users have them all.
func pagedClientTraining(p *pagedTable) {
	p.ofClient(api.ListClientTraining, nil, "user_id", "course_id")
	p.h.Exec("DELETE FROM assignments") // the program's
	users := []domain.UserID{p.homes[0].user, p.other.user}
	slices.SortFunc(users, func(a, b domain.UserID) int { return bytes.Compare(a[:], b[:]) })
	p.h.Exec("UPDATE users SET status = 'inactive' WHERE id = $1", users[1])
	owner := func(course [16]byte) domain.UserID { return users[course[0]>>7] } // in the order of the courses
	p.show = func(uuid [16]byte) string { return owner(uuid).String() + " " + domain.CourseID(uuid).String() }
	completed := func(r pagedRow) bool { return r.kind%3 == 0 }
	p.fill(func(of *pagedRecords, r pagedRow) {
		if of.client == p.homes[0].client {
			of.user = owner(r.uuid)
		}
		var at any
		if completed(r) {
			at = r.created
		}
		due := []string{"2026-07-01", "2026-07-01", "2026-01-01", "2026-01-01"}[r.kind]
		p.course(r)
		of.putRound(r, columns{
			"round": 1, "superseded": true, "position": 1, "assigned_at": r.created, "due_on": "2026-01-01",
			"completed_at": "2025-01-01T00:00:00Z", "updated_at": r.updated,
		})
		of.putRound(r, columns{
			"round": 2, "position": r.score, "assigned_at": r.created, "due_on": due, "completed_at": at, "updated_at": r.updated,
		})
	})

	active := func(r pagedRow) bool { return owner(r.uuid) == users[0] }
	changed := func(r pagedRow) bool { return r.recent() || !r.created.Before(pagedSince) }
	p.add("", pagedAll)
	p.add("user_id="+users[1].String(), func(r pagedRow) bool { return !active(r) })
	p.add("user_status=active", active)
	p.add("status=completed", completed)
	p.add("status=assigned,overdue", func(r pagedRow) bool { return !completed(r) })
	p.add("status=overdue", func(r pagedRow) bool { return r.kind == 2 })
	p.add("completed_"+sinceQuery+"&completed_"+untilQuery, func(r pagedRow) bool {
		return completed(r) && pagedWithin(r.created)
	})
	p.add(updatedQuery, changed)
	p.add("user_status=inactive&status=assigned,completed&"+updatedQuery, func(r pagedRow) bool {
		return !active(r) && r.kind != 2 && changed(r)
	})
	p.sorted([]string{"", "assigned_at", "-assigned_at"})
}

// pagedStatuses are the states of results by the kind of their rows; those of
// the first were not sent yet.
var pagedStatuses = []domain.ResultStatus{domain.ResultScheduled, domain.ResultSent, domain.ResultClicked, domain.ResultCredentialsSubmitted}

// pagedResults: the results of two users, one of whom has the finance role's;
// other clients' results were made and sent at the same moments. A period puts
// them in the order of sending, else updated_since in that of their changes.
func pagedResults(p *pagedTable) {
	p.ofClient(api.ListPhishingResults, shownAs[domain.ResultKind], "result_id")
	template := domain.TemplateID{15: 9}
	p.write(pagedHome{}, template, func(of *pagedRecords) { of.putTemplate(pagedRow{}) })
	sent := func(r pagedRow) bool { return r.kind > 0 }
	p.fill(func(of *pagedRecords, r pagedRow) {
		if of.client == p.homes[0].client && r.finance() {
			of.user = p.other.user
		}
		var at any
		if sent(r) {
			at = r.sendAt()
		}
		of.put("phishing_results", "id", columns{
			"id": of.id, "user_id": of.user, "template_id": template, "status": pagedStatuses[r.kind],
			"label": pagedLabelOf(r), "label_key": pagedLabelOf(r), "send_at": r.sendAt(), "sent_at": at, "created_at": r.created, "updated_at": r.updated,
		})
	})
	user, one := "user_id="+p.other.user.String(), p.rows[7].id
	p.add("", pagedAll)
	p.add(user, pagedRow.finance)
	p.add("result_id="+one, func(r pagedRow) bool { return r.id == one })
	p.add("status=clicked", func(r pagedRow) bool { return r.kind == 2 })
	p.add("status=scheduled", func(r pagedRow) bool { return !sent(r) })
	p.add("label=DRILL", func(r pagedRow) bool { return pagedLabelOf(r) != nil })
	p.add("status=sent,clicked,credentials_submitted", sent)
	p.order = "updated_at"
	p.add(updatedQuery, pagedRow.recent)
	p.order = "sent_at"
	p.add(sinceQuery, func(r pagedRow) bool { return sent(r) && fromSince(r.sendAt()) })
	p.add(untilQuery, func(r pagedRow) bool { return sent(r) && beforeUntil(r.sendAt()) })
	p.add(sinceQuery+"&"+untilQuery+"&"+user+"&"+updatedQuery, func(r pagedRow) bool {
		return sent(r) && pagedWithin(r.sendAt()) && r.finance() && r.recent()
	})
	p.sorted([]string{"", "send_at", "-send_at"})
}

// pagedLabelOf is the label of a row's result, or nil.
func pagedLabelOf(r pagedRow) any {
	if r.score%100 < 50 {
		return nil
	}
	return "drill"
}

// pagedPhishingLabels: a neighbor and another partner's client have the same labels.
func pagedPhishingLabels(p *pagedTable) {
	p.ofClient(api.ListPhishingLabels, nil, "label")
	p.order = "-created_at"
	named := 0
	p.name = func() ([16]byte, string) {
		named++
		label := fmt.Sprint("label ", named)
		return md5.Sum([]byte(label)), label
	}
	p.fill(func(of *pagedRecords, r pagedRow) {
		of.put("phishing_labels", "key", columns{
			"key": r.id, "label": r.id, "sends": r.kind, "cancelled": 0, "first_send_at": r.created, "last_send_at": r.updated,
		})
	})
	p.add("", pagedAll)
}

// pagedMails are the types of mails by the kind of their rows.
var pagedMails = []domain.MessageType{domain.TrainingInvite, domain.PhishingMail, domain.WelcomeMail, domain.PolicyReminder}

// pagedEmails: other users were sent mails of the same ids at the same moments.
func pagedEmails(p *pagedTable) {
	uuid := func(uuid [16]byte) string { return domain.MessageID(uuid).UUID() }
	p.ofClient(api.ListEmails, uuid, "subject") // which is the id, that v2 does not show
	p.order, p.homes = "-created_at", append(p.homes, p.other)
	p.fill(func(of *pagedRecords, r pagedRow) {
		of.put("sent_emails", "user_id, id", columns{
			"user_id": of.user, "id": r.uuid, "sent_at": r.created, "from_email": "it@example.com", "subject": r.id,
			"send_method": "smtp", "message_type": pagedMails[r.kind],
		})
	})
	some := func(r pagedRow) bool { return r.kind == 1 || r.kind == 2 }
	p.add("", pagedAll)
	p.add("message_types=phishing,welcome", some)
	p.add(sinceQuery, func(r pagedRow) bool { return fromSince(r.created) })
	p.add(untilQuery, func(r pagedRow) bool { return beforeUntil(r.created) })
	p.add(sinceQuery+"&"+untilQuery+"&message_types=welcome&message_types=phishing", func(r pagedRow) bool {
		return some(r) && pagedWithin(r.created)
	})
}

// pagedClasses are the classes of reported mails by the kind of their rows.
var pagedClasses = []domain.EmailClass{domain.ClassPending, domain.ClassSpam, domain.ClassPhishing, domain.ClassSafe}

func pagedReported(p *pagedTable) {
	p.ofClient(api.ListReportedEmails, shownAs[domain.ReportedEmailKind], "id")
	p.fill(func(of *pagedRecords, r pagedRow) {
		of.put("reported_emails", "id", columns{
			"id": of.id, "user_id": of.user, "message_id": domain.ReportedEmailID(of.id).UUID(), "subject": "",
			"sender": "a@example.com", "classification": pagedClasses[r.kind], "reported_at": r.created, "updated_at": r.updated,
		})
	})
	p.add("", pagedAll)
	p.add("classification=phishing", func(r pagedRow) bool { return r.kind == 2 })
	p.add(sinceQuery, func(r pagedRow) bool { return fromSince(r.created) })
	p.add(updatedQuery, pagedRow.recent)
	p.add(sinceQuery+"&"+untilQuery+"&classification=pending&"+updatedQuery, func(r pagedRow) bool {
		return r.kind == 0 && pagedWithin(r.created) && r.recent()
	})
	p.sorted([]string{"", "reported_at", "-reported_at"})
}

// pagedTypes and pagedStates are those of reports by their kind.
var (
	pagedTypes  = [4]domain.ReportType{domain.PolicyReport, domain.RiskOverview, domain.DarkWebReport, domain.PolicyReport}
	pagedStates = [4]domain.ReportStatus{domain.ReportReady, domain.ReportPending, domain.ReportReady, domain.ReportFailed}
)

func pagedReports(p *pagedTable) {
	p.ofClient(api.ListReports, shownAs[domain.ReportKind], "id")
	p.order = "-created_at"
	p.fill(func(of *pagedRecords, r pagedRow) {
		of.put("reports", "id", columns{
			"id": r.uuid, "type": pagedTypes[r.kind], "format": "pdf", "status": pagedStates[r.kind],
			"created_at": r.created, "updated_at": r.updated,
		})
	})
	p.add("", pagedAll)
	p.add("type=policy", func(r pagedRow) bool { return pagedTypes[r.kind] == domain.PolicyReport })
	p.add("status=ready", func(r pagedRow) bool { return pagedStates[r.kind] == domain.ReportReady })
	p.add(updatedQuery, pagedRow.recent)
	p.add(updatedQuery+"&type=policy&status=failed", func(r pagedRow) bool { return r.kind == 3 && r.recent() })
}

func pagedSyncRuns(p *pagedTable) {
	uuid := func(uuid [16]byte) string { return domain.SyncRunID(uuid).UUID() }
	p.ofClient(api.ListSyncRuns, uuid, "error") // which is the id, that v2 does not show
	p.order = "-created_at"
	p.fill(func(of *pagedRecords, r pagedRow) {
		of.put("sync_runs", "id", columns{
			"id": r.uuid, "status": "failed", "trigger": "api", "queued_at": r.created, "updated_at": r.updated, "error": r.id,
		})
	})
	p.add("", pagedAll)
	p.add(updatedQuery, pagedRow.recent)
}

// pagedCourses replaces the catalogue of courses.
func pagedCourses(p *pagedTable) {
	p.h.Exec("TRUNCATE courses CASCADE")
	p.of(api.ListCourses, nil, shownAs[domain.CourseKind], "id")
	p.fill(func(of *pagedRecords, r pagedRow) {
		of.putByID("courses", columns{"id": r.uuid, "title": r.name, "created_at": r.created})
	})
	p.add("", pagedAll)
}

func pagedTemplates(p *pagedTable) {
	p.of(api.ListPhishingTemplates, nil, shownAs[domain.TemplateKind], "id")
	p.fill((*pagedRecords).putTemplate)
	p.add("", pagedAll)
	p.add(updatedQuery, func(r pagedRow) bool { return r.recent() || !r.created.Before(pagedSince) })
}

// putTemplate puts a template of the catalogue.
func (of *pagedRecords) putTemplate(r pagedRow) {
	of.putByID("phishing_templates", columns{
		"id": of.id, "name": r.name, "language": "en", "category": "it", "subject": "Subject", "from_address": "it@example.com",
		"html": "", "body": "", "created_at": r.created, "changed_at": r.updated,
	})
}
