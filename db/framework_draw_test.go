package db_test

import (
	"encoding/hex"
	"fmt"
	"slices"
	"time"

	"pgregory.net/rapid"

	"partnerapi/db"
	"partnerapi/db/pg"
	"partnerapi/domain"
)

// requiredCourses are the courses of the frameworks.
func (w *world) requiredCourses() map[string][]requiredCourse {
	w.T.Helper()
	type row struct {
		FrameworkID string
		CourseID    domain.CourseID
		Role        domain.Role
	}
	rows, err := pg.All[row](w.T.Context(), w.DB, "list required courses", pg.SQL(
		"SELECT framework_id, course_id, coalesce(role, '') AS role FROM framework_courses ORDER BY 1, 2"))
	w.Must(err)
	list := map[string][]requiredCourse{}
	for _, r := range rows {
		list[r.FrameworkID] = append(list[r.FrameworkID], requiredCourse{r.CourseID, r.Role})
	}
	return list
}

// drawTime draws a time of the past on one of the borders that evaluations know,
// just before it or after it.
func drawTime(r *rapid.T, label string) time.Time {
	days := rapid.SampledFrom([]int{0, 1, 29, 30, 31, 60, 89, 90, 91, 200, 364, 365, 366, 500}).Draw(r, label+" days")
	aside := rapid.SampledFrom([]time.Duration{
		0, time.Microsecond, -time.Microsecond, 12 * time.Hour, 12*time.Hour + time.Microsecond, -5 * time.Hour,
	}).Draw(r, label+" aside")
	return past(noon.AddDate(0, 0, -days).Add(-aside))
}

func past(at time.Time) time.Time {
	if at.After(noon) {
		return noon
	}
	return at
}

func drawFollowed(r *rapid.T, client domain.ClientID, required map[string][]requiredCourse) *followed {
	f := &followed{}
	for range 2 {
		f.groups = append(f.groups, db.NewID[domain.GroupKind]())
		f.collections = append(f.collections, db.NewID[domain.CollectionKind]())
	}
	f.collections = append(f.collections, db.NewID[domain.CollectionKind]())

	for range rapid.IntRange(0, 5).Draw(r, "policies") {
		f.policies = append(f.policies, f.drawPolicy(r, client))
	}
	for range rapid.IntRange(0, 3).Draw(r, "reports") {
		f.reports = append(f.reports, followedReport{
			is:     rapid.SampledFrom([]string{"compliance", "compliance", "policy"}).Draw(r, "type"),
			status: rapid.SampledFrom([]string{"ready", "ready", "pending", "failed"}).Draw(r, "status"),
			at:     drawTime(r, "ready"),
		})
	}
	courses := []domain.CourseID{required["gdpr"][0].course}
	for _, list := range required {
		for _, c := range list {
			if !slices.Contains(courses, c.course) {
				courses = append(courses, c.course)
			}
		}
	}
	slices.SortFunc(courses, func(a, b domain.CourseID) int { return slices.Compare(a[:], b[:]) })
	for range rapid.IntRange(0, 8).Draw(r, "users") {
		f.users = append(f.users, f.drawUser(r, courses))
	}

	for _, framework := range domain.Frameworks {
		audience := rapid.SampledFrom([]domain.FrameworkAudienceType{"all", "group", "collection"}).Draw(r, "audience")
		a := followedFramework{id: db.NewID[domain.FrameworkAssignmentKind](), of: framework, audience: audience}
		switch audience {
		case domain.FrameworkForGroup:
			a.whom = rapid.SampledFrom(f.groups).Draw(r, "group")
		case domain.FrameworkForCollection:
			a.whom = rapid.SampledFrom(f.collections).Draw(r, "collection")
		}
		off := rapid.IntRange(0, 7).Draw(r, "module off")
		a.modules = domain.FrameworkModules{Training: off != 0, Phishing: off != 1, Policies: off != 2, Reporting: off != 3}
		f.assignments = append(f.assignments, a)
	}
	return f
}

func (f *followed) drawPolicy(r *rapid.T, client domain.ClientID) followedPolicy {
	p := followedPolicy{
		id: db.NewID[domain.PolicyKind](), scopeID: client,
		scope:    rapid.SampledFrom([]domain.ScopeType{"tenant", "user_container", "collection"}).Draw(r, "scope"),
		asks:     rapid.IntRange(0, 4).Draw(r, "asks") > 0,
		archived: rapid.IntRange(0, 4).Draw(r, "archived") == 0,
		version:  rapid.IntRange(1, 2).Draw(r, "version"),
		days:     rapid.SampledFrom([]int{30, 365}).Draw(r, "renewal"),
		reviewed: drawTime(r, "reviewed"),
	}
	switch p.scope {
	case domain.GroupScope:
		p.scopeID = rapid.SampledFrom(f.groups).Draw(r, "scope group")
	case domain.CollectionScope:
		p.scopeID = rapid.SampledFrom(f.collections).Draw(r, "scope collection")
	}
	return p
}

func (f *followed) drawUser(r *rapid.T, courses []domain.CourseID) followedUser {
	u := followedUser{
		id: db.NewID[domain.UserKind](), active: rapid.IntRange(0, 4).Draw(r, "active") > 0,
		role: rapid.SampledFrom([]domain.Role{
			"standard", "standard", "admin", "executive", "hr", "finance",
		}).Draw(r, "role"),
		created: drawTime(r, "created"),
	}
	if i := rapid.IntRange(0, 2).Draw(r, "of group"); i < 2 {
		u.group = &f.groups[i]
	}
	for _, c := range f.collections[:2] {
		if rapid.Bool().Draw(r, "member") {
			u.collections = append(u.collections, c)
		}
	}
	if rapid.IntRange(0, 3).Draw(r, "due") > 0 {
		due := today.AddDays(rapid.IntRange(-1, 5).Draw(r, "due in"))
		u.nextDue = &due
	}
	for range rapid.IntRange(0, 3).Draw(r, "mails") {
		u.mails = append(u.mails, drawMail(r))
	}
	u.drawCourses(r, courses)
	if rapid.IntRange(0, 3).Draw(r, "signs") > 0 {
		for _, p := range f.policies {
			u.signed = append(u.signed, followedSignature{
				policy: p.id, version: p.version - rapid.IntRange(0, 4).Draw(r, "old")/4,
				at: noon.AddDate(0, 0, -p.days).Add(rapid.SampledFrom([]time.Duration{
					0, time.Microsecond, time.Hour, dayLong, dayLong,
				}).Draw(r, "signed")),
			})
		}
	}
	return u
}

func drawMail(r *rapid.T) followedMail {
	m := followedMail{sent: drawTime(r, "sent"), reported: rapid.IntRange(0, 3).Draw(r, "reported") == 0}
	for _, at := range []**time.Time{&m.clicked, &m.submitted, &m.attached} {
		if rapid.IntRange(0, 3).Draw(r, "fell") == 0 {
			fell := past(m.sent.Add(rapid.SampledFrom([]time.Duration{0, time.Hour, 100 * dayLong}).Draw(r, "after")))
			*at = &fell
		}
	}
	return m
}

// drawCourses draws completions, of which many are as of a border that moves with
// the user.
func (u *followedUser) drawCourses(r *rapid.T, courses []domain.CourseID) {
	from := []time.Time{u.created}
	for _, m := range u.mails {
		for _, at := range []*time.Time{m.clicked, m.submitted, m.attached} {
			if at != nil {
				from = append(from, *at)
			}
		}
	}
	diligent := rapid.Bool().Draw(r, "diligent")
	for _, course := range courses {
		for round := range rapid.IntRange(one(diligent), 2).Draw(r, "rounds") {
			c := followedCourse{course: course, round: round + 1}
			at := drawTime(r, "completed")
			switch rapid.IntRange(0, 5).Draw(r, "as of") {
			case 0:
				u.completed = append(u.completed, c)
				continue
			case 1, 2:
				at = past(rapid.SampledFrom(from).Draw(r, "from").Add(rapid.SampledFrom([]time.Duration{
					-time.Microsecond, 0, 30 * dayLong, 30*dayLong + time.Microsecond,
				}).Draw(r, "later")))
			case 3, 4:
				at = noon.Add(-time.Hour)
			}
			c.at = &at
			u.completed = append(u.completed, c)
		}
	}
}

// follow writes the rows.
func (w *world) follow(client domain.ClientID, f *followed) {
	w.T.Helper()
	uuid := func(id [16]byte) string { return hex.EncodeToString(id[:]) }
	rows := map[string][]row{}
	put := func(table string, r row) {
		r["client_id"] = client
		rows[table] = append(rows[table], r)
	}
	for i, g := range f.groups {
		put("groups", row{"id": g, "name": fmt.Sprint(i), "manual": i == 0, "created_at": noon})
	}
	for i, c := range f.collections[:max(len(f.collections)-1, 0)] {
		put("collections", row{"id": c, "name": fmt.Sprint(i), "name_key": fmt.Sprint(i)})
	}
	for _, p := range f.policies {
		put("policies", row{
			"id": p.id, "scope_type": p.scope, "scope_id": uuid(p.scopeID), "requires_acknowledgment": p.asks,
			"archived_at": map[bool]any{true: noon}[p.archived], "version": p.version, "renewal_period_days": p.days,
			"reviewed_at": p.reviewed,
		})
	}
	for _, r := range f.reports {
		put("reports", row{
			"id": db.NewID[domain.ReportKind](), "type": r.is, "format": "pdf", "status": r.status,
			"created_at": noon.AddDate(-2, 0, 0), "updated_at": r.at,
		})
	}
	for i := range f.users {
		f.users[i].rows(put)
	}
	for _, a := range f.assignments {
		var whom any
		if a.audience != domain.FrameworkForAll {
			whom = uuid(a.whom)
		}
		put("framework_assignments", row{
			"id": a.id, "framework_id": a.of.ID, "audience_type": a.audience, "audience_id": whom,
			"training": a.modules.Training, "phishing": a.modules.Phishing, "policies": a.modules.Policies,
			"reporting": a.modules.Reporting, "created_at": noon,
		})
	}
	w.Add("phishing_templates", row{"id": domain.TemplateID{15: 1}})
	for _, table := range []string{
		"groups", "users", "collections", "collection_members", "policies", "policy_signatures", "reports",
		"assignments", "phishing_results", "framework_assignments",
	} {
		w.Add(table, rows[table]...)
	}
}

func (u *followedUser) rows(put func(string, row)) {
	var group any
	if u.group != nil {
		group = *u.group
	}
	put("users", row{
		"id": u.id, "email": u.id.String() + "@example.com", "role": u.role, "group_id": group, "next_due_on": u.nextDue,
		"status": map[bool]string{true: "active", false: "inactive"}[u.active], "created_at": u.created,
	})
	for _, c := range u.collections {
		put("collection_members", row{"collection_id": c, "user_id": u.id, "added_at": noon})
	}
	for _, c := range u.completed {
		put("assignments", row{
			"user_id": u.id, "course_id": c.course, "round": c.round, "position": 1, "completed_at": c.at,
			"assigned_at": noon.AddDate(-2, 0, 0), "due_on": today,
		})
	}
	for _, s := range u.signed {
		if s.version > 0 {
			put("policy_signatures", row{"policy_id": s.policy, "version": s.version, "user_id": u.id, "signed_at": s.at})
		}
	}
	for _, m := range u.mails {
		status := domain.ResultSent
		switch {
		case m.submitted != nil:
			status = domain.ResultCredentialsSubmitted
		case m.clicked != nil:
			status = domain.ResultClicked
		case m.attached != nil:
			status = domain.ResultAttachmentOpened
		}
		put("phishing_results", row{
			"id": db.NewID[domain.ResultKind](), "user_id": u.id, "template_id": domain.TemplateID{15: 1}, "status": status,
			"sent_at": m.sent, "clicked_at": m.clicked, "credentials_submitted_at": m.submitted,
			"attachment_opened_at": m.attached, "reported": m.reported,
		})
	}
}
