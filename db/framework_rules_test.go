package db_test

import (
	"slices"
	"time"

	"partnerapi/db"
	"partnerapi/domain"
)

// daysAgo is the given number of days before noon, and a time more.
func daysAgo(days int, more time.Duration) time.Time { return noon.AddDate(0, 0, -days).Add(-more) }

// staff is a user of a role who was created the given number of days ago, and what else is
// said of the user.
func staff(role domain.Role, created time.Time, more ...func(*followedUser)) followedUser {
	u := followedUser{id: db.NewID[domain.UserKind](), active: true, role: role, created: created}
	for _, fn := range more {
		fn(&u)
	}
	return u
}

// old is a standard user of two years.
func old(more ...func(*followedUser)) followedUser {
	return staff(domain.RoleStandard, daysAgo(730, 0), more...)
}

// The courses of cis_v8: for all, and for finance.
var (
	forAll     = domain.CourseID{0x01, 0x9b, 0x77, 0x40, 0, 0, 0x70, 0, 0x80, 15: 0x01}
	forFinance = domain.CourseID{0x01, 0x9b, 0x77, 0x40, 0, 0, 0x70, 0, 0x80, 15: 0x0a}
	forNobody  = domain.CourseID{0x01, 0x9b, 0x77, 0x40, 0, 0, 0x70, 0, 0x80, 15: 0x05}
)

func completed(course domain.CourseID, at time.Time) func(*followedUser) {
	return func(u *followedUser) {
		u.completed = append(u.completed, followedCourse{course: course, round: len(u.completed) + 1, at: &at})
	}
}

func mailed(m followedMail) func(*followedUser) {
	return func(u *followedUser) { u.mails = append(u.mails, m) }
}

func clicked(sent, at time.Time) func(*followedUser) {
	return mailed(followedMail{sent: sent, clicked: &at})
}

func clickedAt(at time.Time) func(*followedUser) { return clicked(at, at) }

func due(days int) func(*followedUser) {
	on := today.AddDays(days)
	return func(u *followedUser) { u.nextDue = &on }
}

func signed(p domain.PolicyID, version int, at time.Time) func(*followedUser) {
	return func(u *followedUser) { u.signed = append(u.signed, followedSignature{p, version, at}) }
}

func inactive(u *followedUser) { u.active = false }

// unclicked is a user with a simulated mail.
func unclicked() followedUser { return old(mailed(followedMail{sent: noon})) }

func times(n int, u func() followedUser) []followedUser {
	list := make([]followedUser, n)
	for i := range list {
		list[i] = u()
	}
	return list
}

// rules are cases of what each measure counts (decisions 7.7): its words, and what many users
// are needed for. TestEvaluationsEqualARecount has the other borders.
func rules(client domain.ClientID) []struct {
	name string
	key  domain.Measure
	// want is the detail, the value and whether it is met.
	want string
	rows followed
} {
	p := db.NewID[domain.PolicyKind]()
	policy := followedPolicy{
		id: p, scope: domain.TenantScope, scopeID: client, asks: true, version: 2, days: 365, reviewed: daysAgo(365, 0),
	}
	with := func(change func(*followedPolicy)) []followedPolicy {
		q := policy
		change(&q)
		return []followedPolicy{q}
	}
	users := func(list ...followedUser) followed { return followed{users: list} }
	const us, later = time.Microsecond, 30 * dayLong

	return []struct {
		name string
		key  domain.Measure
		want string
		rows followed
	}{
		{"within a year", "T1", "1 of 2 users completed all required courses within a year; 50; false", users(
			old(completed(forAll, daysAgo(365, 0))), old(completed(forAll, daysAgo(365, us))))},
		{"new users", "T2", "2 of 5 new users completed a required course within 30 days; 40; false", users(
			staff("standard", daysAgo(365, 0), completed(forAll, daysAgo(335, 0))),
			staff("standard", daysAgo(30, 0), completed(forAll, daysAgo(30, 0))),
			staff("standard", daysAgo(100, 0), completed(forAll, daysAgo(100, -later-us))),
			staff("standard", daysAgo(100, 0), completed(forAll, daysAgo(100, us))),
			staff("standard", daysAgo(100, 0), completed(forFinance, daysAgo(99, 0))))},
		{"in a role", "T3",
			"1 of 3 users in non-standard roles completed the course of their role within a year; 33.3; false", users(
				staff("finance", daysAgo(730, 0), completed(forFinance, daysAgo(365, 0))),
				staff("finance", daysAgo(730, 0), completed(forFinance, daysAgo(365, us))),
				staff("hr", daysAgo(730, 0), completed(forFinance, noon), completed(forAll, noon)))},
		{"overdue", "T4", "2 of 3 users had nothing overdue; 66.7; false", users(old(), old(due(0)), old(due(-1)))},
		{"at the target", "T4", "19 of 20 users had nothing overdue; 95; true", followed{users: append(
			times(19, func() followedUser { return old() }), old(due(-1)))}},
		{"simulated", "P1", "1 of 2 users received a simulation within 90 days; 50; false", users(
			old(mailed(followedMail{sent: daysAgo(90, 0)})), old(mailed(followedMail{sent: daysAgo(90, us)})))},
		{"no mails", "P2", "0 of 0 simulated mails of the last 90 days led to a click; 0; true", users(old())},
		{"the click rate at the target", "P2", "1 of 20 simulated mails of the last 90 days led to a click; 5; true",
			followed{users: append(times(19, unclicked), old(clickedAt(noon)))}},
		{"judged before it is rounded", "P2", "8 of 159 simulated mails of the last 90 days led to a click; 5; false",
			followed{users: append(times(151, unclicked),
				times(8, func() followedUser { return old(clickedAt(noon)) })...)}},
		{"half away from zero", "P2", "1 of 16 simulated mails of the last 90 days led to a click; 6.3; false",
			followed{users: append(times(15, unclicked), old(clickedAt(noon)))}},
		{"nothing to report", "P3", "0 of 0 simulated mails of the last 90 days led to a report; null; false", users(old())},
		{"reported", "P3", "1 of 5 simulated mails of the last 90 days led to a report; 20; true", followed{users: append(
			times(4, unclicked), old(mailed(followedMail{sent: noon, reported: true})))}},
		{"no failing", "P4", "0 of 0 users who failed a simulation completed a course within 30 days; 100; true", users(
			old(mailed(followedMail{sent: daysAgo(60, 0), reported: true})), old(clicked(daysAgo(60, 0), daysAgo(30, -us))),
			old(clicked(daysAgo(400, 0), daysAgo(365, us))))},
		{"followed up", "P4", "3 of 5 users who failed a simulation completed a course within 30 days; 60; false", users(
			old(clickedAt(daysAgo(30, 0)), completed(forNobody, noon)),
			old(clicked(daysAgo(400, 0), daysAgo(365, 0)), completed(forNobody, daysAgo(365, 0))),
			old(clickedAt(daysAgo(200, 0)), clickedAt(daysAgo(100, 0)), completed(forNobody, daysAgo(180, 0))),
			old(clickedAt(daysAgo(200, 0)), clickedAt(daysAgo(100, 0)), completed(forNobody, daysAgo(90, 0))),
			old(clickedAt(daysAgo(200, 0)), completed(forNobody, daysAgo(200, us)), completed(forAll, daysAgo(170, -us))))},
		{"signed", "A1", "1 of 4 users signed the current version of every policy that asks them; 25; false",
			followed{policies: []followedPolicy{policy}, users: []followedUser{
				old(signed(p, 2, daysAgo(365, -us))), old(signed(p, 2, daysAgo(365, 0))), old(signed(p, 1, noon)), old(),
			}}},
		{"no policies", "A2", "0 of 0 policies had a review within a year; null; false", users(old())},
		{"reviewed", "A2", "1 of 2 policies had a review within a year; 50; false",
			followed{users: []followedUser{old()}, policies: slices.Concat(
				with(func(p *followedPolicy) { p.id, p.asks = db.NewID[domain.PolicyKind](), false }),
				with(func(p *followedPolicy) { p.id, p.reviewed = db.NewID[domain.PolicyKind](), daysAgo(365, us) }),
				with(func(p *followedPolicy) { p.id, p.archived = db.NewID[domain.PolicyKind](), true }))}},
		{"no report", "R1", "0 compliance reports made within 90 days; 0; false", followed{users: []followedUser{old()},
			reports: []followedReport{
				{"compliance", "ready", daysAgo(90, us)}, {"compliance", "pending", noon}, {"policy", "ready", noon},
			}}},
		{"a report", "R1", "1 compliance report made within 90 days; 1; true", followed{users: []followedUser{old()},
			reports: []followedReport{{"compliance", "ready", daysAgo(90, 0)}}}},
		{"reports", "R1", "2 compliance reports made within 90 days; 2; true", followed{users: []followedUser{old()},
			reports: []followedReport{{"compliance", "ready", daysAgo(90, 0)}, {"compliance", "ready", noon}}}},
		{"an empty audience", "A2", "0 users in the audience; null; false", followed{users: []followedUser{old(inactive)},
			policies: with(func(p *followedPolicy) { p.id = db.NewID[domain.PolicyKind]() })}},
		{"reports for an empty audience", "R1", "0 users in the audience; null; false",
			followed{reports: []followedReport{{"compliance", "ready", noon}}}},
	}
}
