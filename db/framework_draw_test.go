package db_test

import (
	"fmt"
	"time"

	"pgregory.net/rapid"

	"partnerapi/db"
	"partnerapi/domain"
)

// drawTime draws a time of the past on one of the borders that evaluations know,
// just before it or after it.
func drawTime(r *rapid.T, label string) time.Time {
	days := rapid.SampledFrom([]int{0, 1, 29, 30, 31, 60, 89, 90, 91, 200, 364, 365, 366, 500}).Draw(r, label+" days")
	return past(daysAgo(days, rapid.SampledFrom([]time.Duration{
		0, time.Microsecond, -time.Microsecond, 12 * time.Hour, 12*time.Hour + time.Microsecond, -5 * time.Hour,
	}).Draw(r, label+" aside")))
}

func past(at time.Time) time.Time {
	if at.After(noon) {
		return noon
	}
	return at
}

// drawnClient is a client whose rows are drawn.
type drawnClient struct {
	*rapid.T
	*evaluatedRows
	courses     []domain.CourseID
	groups      []any
	collections []any // the last one was deleted
}

// drawClient draws a client that follows every framework, and one that is unknown.
func drawClient(r *rapid.T, client domain.ClientID, courses []domain.CourseID) *evaluatedRows {
	d := drawnClient{T: r, evaluatedRows: newEvaluatedRows(client), courses: courses}
	for i := range 2 {
		group, collection := db.NewID[domain.GroupKind](), db.NewID[domain.CollectionKind]()
		d.add("groups", row{"id": group, "name": fmt.Sprint(i), "manual": i == 0, "created_at": noon}, nil)
		d.add("collections", row{"id": collection, "name": fmt.Sprint(i), "name_key": fmt.Sprint(i)}, nil)
		d.groups, d.collections = append(d.groups, group), append(d.collections, collection)
	}
	d.collections = append(d.collections, db.NewID[domain.CollectionKind]())

	for range rapid.IntRange(0, 5).Draw(r, "policies") {
		d.drawPolicy()
	}
	for range rapid.IntRange(0, 3).Draw(r, "reports") {
		d.report(
			rapid.SampledFrom([]domain.ReportType{"compliance", "compliance", "policy"}).Draw(r, "type"),
			rapid.SampledFrom([]domain.ReportStatus{"ready", "ready", "pending", "failed"}).Draw(r, "status"),
			drawTime(r, "ready"))
	}
	for range rapid.IntRange(0, 8).Draw(r, "users") {
		d.drawUser()
	}

	for _, framework := range append(domain.Frameworks, domain.Framework{ID: "of_a_later_release"}) {
		audience := rapid.SampledFrom(domain.FrameworkAudienceType("").Values()).Draw(r, "audience")
		f := row{"audience_type": audience}
		switch domain.FrameworkAudienceType(audience) {
		case domain.FrameworkForGroup:
			f["audience_id"] = rapid.SampledFrom(d.groups).Draw(r, "group")
		case domain.FrameworkForCollection:
			f["audience_id"] = rapid.SampledFrom(d.collections).Draw(r, "collection")
		}
		for _, module := range domain.Module("").Values() {
			f[module] = rapid.IntRange(0, 5).Draw(r, module) > 0
		}
		d.follow(framework.ID, f)
	}
	return d.evaluatedRows
}

func (d *drawnClient) drawPolicy() {
	p := row{
		"scope_type":              rapid.SampledFrom([]domain.ScopeType{"tenant", "user_container", "collection"}).Draw(d.T, "scope"),
		"requires_acknowledgment": rapid.IntRange(0, 4).Draw(d.T, "asks") > 0,
		"version":                 rapid.IntRange(1, 2).Draw(d.T, "version"),
		"renewal_period_days":     rapid.SampledFrom([]int{30, 365}).Draw(d.T, "renewal"),
		"reviewed_at":             drawTime(d.T, "reviewed"),
	}
	switch p["scope_type"] {
	case domain.GroupScope:
		p["scope_id"] = rapid.SampledFrom(d.groups).Draw(d.T, "scope group")
	case domain.CollectionScope:
		p["scope_id"] = rapid.SampledFrom(d.collections).Draw(d.T, "scope collection")
	}
	if rapid.IntRange(0, 4).Draw(d.T, "archived") == 0 {
		p["archived_at"] = noon
	}
	d.policy(p)
}

func (d *drawnClient) drawUser() {
	created := drawTime(d.T, "created")
	u := row{
		"role":       rapid.SampledFrom([]string{"standard", "standard", "admin", "executive", "hr", "finance"}).Draw(d.T, "role"),
		"status":     rapid.SampledFrom([]string{"active", "active", "active", "active", "inactive"}).Draw(d.T, "status"),
		"group_id":   rapid.SampledFrom(append(d.groups, nil)).Draw(d.T, "of group"),
		"created_at": created,
	}
	if rapid.IntRange(0, 3).Draw(d.T, "due") > 0 {
		u["next_due_on"] = today.AddDays(rapid.IntRange(-1, 5).Draw(d.T, "due in"))
	}
	user := d.user(u)
	for _, c := range d.collections[:2] {
		if rapid.Bool().Draw(d.T, "member") {
			d.add("collection_members", row{"collection_id": c, "user_id": user, "added_at": noon}, nil)
		}
	}
	from := []time.Time{created}
	for range rapid.IntRange(0, 3).Draw(d.T, "mails") {
		from = append(from, d.drawMail(user)...)
	}
	d.drawCourses(user, from)
	if rapid.IntRange(0, 3).Draw(d.T, "signs") == 0 {
		return
	}
	for _, p := range d.tables["policies"] {
		version := p["version"].(int) - rapid.IntRange(0, 4).Draw(d.T, "old")/4
		if version > 0 {
			d.sign(user, p["id"].(domain.PolicyID), version, daysAgo(p["renewal_period_days"].(int), -rapid.SampledFrom([]time.Duration{
				0, time.Microsecond, time.Hour, day, day,
			}).Draw(d.T, "signed")))
		}
	}
}

// drawMail draws a simulated mail, and returns when the user fell for it.
func (d *drawnClient) drawMail(user domain.UserID) (fell []time.Time) {
	sent := drawTime(d.T, "sent")
	m := row{"reported": rapid.IntRange(0, 3).Draw(d.T, "reported") == 0}
	for _, status := range []domain.ResultStatus{
		domain.ResultAttachmentOpened, domain.ResultClicked, domain.ResultCredentialsSubmitted,
	} {
		if rapid.IntRange(0, 3).Draw(d.T, "fell") == 0 {
			at := past(sent.Add(rapid.SampledFrom([]time.Duration{0, time.Hour, 100 * day}).Draw(d.T, "after")))
			m["status"], m[string(status)+"_at"] = status, at
			fell = append(fell, at)
		}
	}
	d.mail(user, sent, m)
	return fell
}

// drawCourses draws completions, of which many are as of a border that moves with
// the user.
func (d *drawnClient) drawCourses(user domain.UserID, from []time.Time) {
	least := rapid.IntRange(0, 1).Draw(d.T, "diligent")
	for _, course := range d.courses {
		for range rapid.IntRange(least, 2).Draw(d.T, "rounds") {
			at := drawTime(d.T, "completed")
			switch rapid.IntRange(0, 5).Draw(d.T, "as of") {
			case 0:
				d.round(user, course, nil)
				continue
			case 1, 2:
				at = past(rapid.SampledFrom(from).Draw(d.T, "from").Add(rapid.SampledFrom([]time.Duration{
					-time.Microsecond, 0, 30 * day, 30*day + time.Microsecond,
				}).Draw(d.T, "later")))
			case 3, 4:
				at = noon.Add(-time.Hour)
			}
			d.round(user, course, at)
		}
	}
}
