package db_test

import (
	"encoding/json"
	"math"
	"reflect"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"partnerapi/db"
	"partnerapi/domain"
)

// The raw rows of a client that follows frameworks, as far as they decide on an
// evaluation. Times are microseconds apart at least, as PostgreSQL's are.
type (
	followed struct {
		users       []followedUser
		policies    []followedPolicy
		reports     []followedReport
		assignments []followedFramework
		groups      []domain.GroupID
		collections []domain.CollectionID // the last one was deleted
	}
	followedUser struct {
		id          domain.UserID
		active      bool
		role        domain.Role
		group       *domain.GroupID
		collections []domain.CollectionID
		created     time.Time
		nextDue     *domain.Date
		completed   []followedCourse
		mails       []followedMail
		signed      []followedSignature
	}
	followedCourse struct {
		course domain.CourseID
		round  int
		at     *time.Time
	}
	followedMail struct {
		sent                         time.Time
		clicked, submitted, attached *time.Time
		reported                     bool
	}
	followedPolicy struct {
		id             domain.PolicyID
		scope          domain.ScopeType
		scopeID        [16]byte
		asks, archived bool
		version, days  int
		reviewed       time.Time
	}
	followedSignature struct {
		policy  domain.PolicyID
		version int
		at      time.Time
	}
	followedReport struct {
		is, status string
		at         time.Time
	}
	followedFramework struct {
		id       domain.FrameworkAssignmentID
		of       domain.Framework
		audience domain.FrameworkAudienceType
		whom     [16]byte
		modules  domain.FrameworkModules
	}
)

// requiredCourse is a course of a framework; role is empty where it is for all.
type requiredCourse struct {
	course domain.CourseID
	role   domain.Role
}

const dayLong = 24 * time.Hour

// naive evaluates a framework assignment user by user.
func (f *followed) naive(a followedFramework, required []requiredCourse, now time.Time) domain.Evaluation {
	e := domain.Evaluation{Requirements: []domain.Requirement{}, At: now}
	var audience []followedUser
	for _, u := range f.users {
		in := a.audience == domain.FrameworkForAll ||
			a.audience == domain.FrameworkForGroup && u.group != nil && *u.group == a.whom ||
			a.audience == domain.FrameworkForCollection && slices.Contains(u.collections, domain.CollectionID(a.whom))
		if u.active && in {
			audience = append(audience, u)
		}
	}
	for _, m := range domain.Measures {
		on := map[domain.Module]bool{
			"training": a.modules.Training, "phishing": a.modules.Phishing,
			"policies": a.modules.Policies, "reporting": a.modules.Reporting,
		}[m.Module]
		if !on || !slices.Contains(a.of.Measures, m.Key) {
			continue
		}
		r := f.requirement(m, audience, required, now)
		e.Total++
		if r.Met {
			e.Met++
		}
		e.Requirements = append(e.Requirements, r)
	}
	return e
}

func (f *followed) requirement(
	m domain.MeasureSpec, audience []followedUser, required []requiredCourse, now time.Time,
) domain.Requirement {
	if len(audience) == 0 {
		return domain.Requirement{Key: m.Key, Detail: db.Detail(m.Key, nil, nil)}
	}
	if m.Key == domain.ComplianceReports {
		n := 0
		for _, r := range f.reports {
			if r.is == "compliance" && r.status == "ready" && !r.at.Before(now.Add(-90*dayLong)) {
				n++
			}
		}
		value := float64(n)
		return domain.Requirement{Key: m.Key, Met: n >= 1, Value: &value, Detail: db.Detail(m.Key, &n, nil)}
	}

	part, whole := 0, 0
	if m.Key == domain.PoliciesReviewed {
		for _, p := range f.policies {
			if !p.archived {
				whole++
				part += one(!p.reviewed.Before(now.Add(-365 * dayLong)))
			}
		}
	} else {
		for _, u := range audience {
			counts, of := f.shareOf(m.Key, u, required, now)
			part, whole = part+counts, whole+of
		}
	}
	r := domain.Requirement{Key: m.Key, Detail: db.Detail(m.Key, &part, &whole)}
	switch {
	case whole > 0:
		value := math.Floor(float64(1000*part)/float64(whole)+0.5) / 10
		r.Value = &value
		r.Met = 100*part >= int(m.Target)*whole
		if m.AtMost {
			r.Met = 100*part <= int(m.Target)*whole
		}
	case slices.Contains([]domain.Measure{"T2", "T3", "P4"}, m.Key):
		r.Value, r.Met = new(float64), true
		*r.Value = 100
	case m.Key == "P2":
		r.Value, r.Met = new(float64), true
	}
	return r
}

// shareOf is what one user adds to a measure's numerator and denominator.
func (f *followed) shareOf(
	m domain.Measure, u followedUser, required []requiredCourse, now time.Time,
) (part, whole int) {
	year := now.Add(-365 * dayLong)
	var own, special []domain.CourseID
	for _, r := range required {
		if r.role == "" || r.role == u.role {
			own = append(own, r.course)
		}
		if r.role == u.role {
			special = append(special, r.course)
		}
	}
	switch m {
	case "T1":
		return one(u.completedAll(own, year)), 1
	case "T2":
		if u.created.Before(year) || u.created.After(now.Add(-30*dayLong)) {
			return 0, 0
		}
		return one(u.completedIn(own, u.created, u.created.Add(30*dayLong))), 1
	case "T3":
		if u.role == domain.RoleStandard {
			return 0, 0
		}
		return one(u.completedAll(special, year)), 1
	case "T4":
		return one(u.nextDue == nil || u.nextDue.DaysUntil(domain.DateOf(now)) <= 0), 1
	case "P4":
		first := u.firstFailing(year)
		if first == nil || first.After(now.Add(-30*dayLong)) {
			return 0, 0
		}
		return one(u.completedIn(nil, *first, first.Add(30*dayLong))), 1
	case "A1":
		return one(f.signedAll(u, now)), 1
	}
	return u.mailed(m, now)
}

// mailed is shareOf for the measures of simulated mails.
func (u *followedUser) mailed(m domain.Measure, now time.Time) (part, whole int) {
	first := domain.DateOf(now).AddDays(-89).Time()
	simulated := false
	for _, mail := range u.mails {
		simulated = simulated || !mail.sent.Before(now.Add(-90*dayLong))
		if mail.sent.Before(first) {
			continue
		}
		whole++
		if m == "P2" {
			part += one(mail.clicked != nil || mail.submitted != nil || mail.attached != nil)
		} else {
			part += one(mail.reported)
		}
	}
	if m == "P1" {
		return one(simulated), 1
	}
	return part, whole
}

func one(is bool) int {
	if is {
		return 1
	}
	return 0
}

func (u *followedUser) completedAll(courses []domain.CourseID, since time.Time) bool {
	for _, course := range courses {
		if !u.completedIn([]domain.CourseID{course}, since, since.Add(1000*dayLong)) {
			return false
		}
	}
	return true
}

// completedIn reports whether the user completed one of the courses, or any for
// nil, from a time to another, both counted.
func (u *followedUser) completedIn(courses []domain.CourseID, from, to time.Time) bool {
	return slices.ContainsFunc(u.completed, func(c followedCourse) bool {
		return c.at != nil && !c.at.Before(from) && !c.at.After(to) &&
			(courses == nil || slices.Contains(courses, c.course))
	})
}

func (u *followedUser) firstFailing(since time.Time) (first *time.Time) {
	for _, m := range u.mails {
		var fell *time.Time
		for _, at := range []*time.Time{m.clicked, m.submitted, m.attached} {
			if at != nil && (fell == nil || at.Before(*fell)) {
				fell = at
			}
		}
		if fell != nil && !fell.Before(since) && (first == nil || fell.Before(*first)) {
			first = fell
		}
	}
	return first
}

func (f *followed) signedAll(u followedUser, now time.Time) bool {
	for _, p := range f.policies {
		asked := p.scope == domain.TenantScope ||
			p.scope == domain.GroupScope && u.group != nil && *u.group == p.scopeID ||
			p.scope == domain.CollectionScope && slices.Contains(u.collections, domain.CollectionID(p.scopeID))
		if !asked || !p.asks || p.archived {
			continue
		}
		if !slices.ContainsFunc(u.signed, func(s followedSignature) bool {
			return s.policy == p.id && s.version == p.version && s.at.After(now.Add(-time.Duration(p.days)*dayLong))
		}) {
			return false
		}
	}
	return true
}

// TestEvaluationsEqualARecount: whatever a client's rows are, each evaluation is
// what counting them user by user gives.
func TestEvaluationsEqualARecount(t *testing.T) {
	w := newWorld(t)
	required := w.requiredCourses()
	met := map[domain.Measure][2]int{}
	rapid.Check(t, func(r *rapid.T) {
		client := w.AddClient()
		f := drawFollowed(r, client, required)
		w.follow(client, f)
		w.Must(db.EvaluateAll(t.Context(), w.DB))

		got, err := db.Evaluations(t.Context(), w.DB, client)
		w.Must(err)
		for _, a := range f.assignments {
			want := f.naive(a, required[a.of.ID], noon)
			if !reflect.DeepEqual(got[a.id], want) {
				is, _ := json.Marshal(got[a.id])
				wants, _ := json.Marshal(want)
				r.Fatalf("%s for %s: %s\nwant %s", a.of.ID, a.audience, is, wants)
			}
			for _, q := range want.Requirements {
				n := met[q.Key]
				n[one(q.Met)]++
				met[q.Key] = n
			}
		}
		w.Exec("DELETE FROM framework_assignments")
	})
	for _, m := range domain.Measures {
		if n := met[m.Key]; n[0] == 0 || n[1] == 0 {
			t.Errorf("%s: %d not met, %d met; both should have been tried", m.Key, n[0], n[1])
		}
	}
}
