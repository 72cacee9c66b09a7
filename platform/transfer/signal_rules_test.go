package transfer_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"partnerapi/domain"
)

// permutations are all orders of n things.
func permutations(n int) [][]int {
	if n == 0 {
		return [][]int{nil}
	}
	var all [][]int
	for _, rest := range permutations(n - 1) {
		for at := range n {
			all = append(all, append(append(append([]int{}, rest[:at]...), n-1), rest[at:]...))
		}
	}
	return all
}

// TestWorstFinding: of several findings the worst describes an exposure and the
// first says since when, whichever comes first and whether in one run or in
// several, resolved or not; the finding is announced once.
func TestWorstFinding(t *testing.T) {
	t.Parallel()
	p := newSignalWorld(t)
	orders := permutations(4)
	o := p.office(2 * len(orders))
	for n, order := range orders {
		told := func(user domain.UserID) (lines []string) {
			for _, i := range order {
				id, about := fmt.Sprint(user, i), []any{"user_id", user, "breach_name", "List"}
				lines = append(lines, []string{
					signalLine(id, domain.ExposureFound, noon.Add(-5*time.Hour), append(about, "severity", "medium")...),
					signalLine(id, domain.ExposureFound, noon.Add(-3*time.Hour), append(about, "data_classes", []string{"PINs"})...),
					signalLine(id, domain.ExposureFound, noon.Add(-4*time.Hour), append(about, "severity", "high", "data_classes", []string{"Passports"})...),
					signalLine(id, domain.ExposureResolved, noon.Add(-2*time.Hour), about...),
				}[i])
			}
			return lines
		}
		p.ingest(told(o.users[2*n])...)
		for _, one := range told(o.users[2*n+1]) {
			p.ingest(one)
		}
	}
	const want = "critical {PINs} 2026-06-15 07:00:00+00 2026-06-15 10:00:00+00"
	if got := p.text(`SELECT string_agg(DISTINCT concat_ws(' ', severity, data_classes, first_seen_at, resolved_at), '; ') FROM exposures`); got != want {
		t.Errorf("exposures %s, want %s", got, want)
	}
	if got := p.text(`SELECT min(n) || ' to ' || max(n) || ' of ' || count(*) FROM (
		SELECT count(*) AS n FROM events WHERE type = 'dark_web.exposure.found' GROUP BY user_id, object_id) AS e`); got != "1 to 1 of 48" {
		t.Errorf("announced %s", got)
	}
}

// TestResolvedFirst: an exposure that is resolved before it is found stands as
// the catalogue has it, unannounced, until the finding comes.
func TestResolvedFirst(t *testing.T) {
	t.Parallel()
	p := newSignalWorld(t)
	o := p.office(1)
	about := []any{"user_id", o.users[0], "breach_name", "Forum"}
	for i, c := range []struct{ line, want string }{
		{signalLine("1", domain.ExposureResolved, noon, about...), "critical {Passwords} 0"},
		{signalLine("2", domain.ExposureResolved, noon.Add(-time.Minute), about...), "critical {Passwords} 0"},
		{signalLine("3", domain.ExposureFound, noon.Add(time.Minute), append(about, "severity", "low")...), "low {Passwords} 1"},
		{signalLine("4", domain.ExposureFound, noon, append(about, "severity", "medium")...), "medium {Passwords} 1"},
		{signalLine("5", domain.ExposureResolved, noon.Add(-2*time.Minute), about...), "medium {Passwords} 1"},
	} {
		p.ingest(c.line)
		if got := p.text("SELECT concat_ws(' ', severity, data_classes, (SELECT count(*) FROM events)) FROM exposures"); got != c.want {
			t.Errorf("after signal %d: %s, want %s", i+1, got, c.want)
		}
	}
}

// TestUnwatched: exposures of a client without Dark Web Monitoring are kept, and
// count and show nowhere.
func TestUnwatched(t *testing.T) {
	t.Parallel()
	p := newSignalWorld(t)
	o := p.office(1)
	p.Exec("UPDATE clients SET dark_web_monitoring = false")
	before := p.text("SELECT concat_ws(' ', u, r) FROM users AS u JOIN user_risks AS r ON r.user_id = u.id")
	p.ingest(signalLine("1", domain.ExposureFound, noon, "user_id", o.users[0], "breach_name", "Forum"))
	p.rescore(o)
	if after := p.text("SELECT concat_ws(' ', u, r) FROM users AS u JOIN user_risks AS r ON r.user_id = u.id"); after != before {
		t.Errorf("%s\nbefore %s", after, before)
	}
	if got := p.text("SELECT count(*) || ' ' || (SELECT count(*) FROM events) FROM exposures"); got != "1 0" {
		t.Errorf("exposures and events: %s", got)
	}
	p.Exec("UPDATE clients SET dark_web_monitoring = true")
	p.rescore(o)
	if got := p.text("SELECT password_breaches_active FROM user_risks"); got != "1" {
		t.Errorf("%s breaches count once the client is watched", got)
	}
}

// TestLatestCompletion: of several completions of a round the latest counts; a
// further round takes what comes from the end of the window before it on.
func TestLatestCompletion(t *testing.T) {
	t.Parallel()
	p := newSignalWorld(t)
	o := p.office(2)
	passed := func(id string, user int, n byte, at time.Time) string {
		return signalLine(id, domain.CourseCompleted, at, "user_id", o.users[user], "course_id", course(n))
	}
	completed := func(user int, n byte) string {
		return p.text(`SELECT string_agg(concat_ws(' ', round, completed_at), ', ' ORDER BY round)
			FROM assignments WHERE user_id = $1 AND course_id = $2`, o.users[user], course(n))
	}
	for i, c := range []struct {
		day  int // after noon
		want string
	}{
		{-30, "1 2024-06-15 12:00:00+00, 2 2026-05-16 12:00:00+00"}, // before the round was assigned
		{-10, "1 2024-06-15 12:00:00+00, 2 2026-06-05 12:00:00+00"},
		{-25, "1 2024-06-15 12:00:00+00, 2 2026-06-05 12:00:00+00"},
	} {
		p.ingest(passed(fmt.Sprint("a", i), 0, 2, noon.AddDate(0, 0, c.day)))
		if got := completed(0, 2); got != c.want {
			t.Errorf("after day %d: %s, want %s", c.day, got, c.want)
		}
	}
	p.Exec("UPDATE assignments SET completed_at = '2024-07-15 12:00Z' WHERE user_id = $1 AND course_id = $2 AND round = 1",
		o.users[1], course(2))
	windowEnd := time.Date(2025, 7, 15, 0, 0, 0, 0, time.UTC)
	p.ingest(passed("b", 1, 2, windowEnd.Add(-time.Second)))
	if got := completed(1, 2); got != "1 2024-07-15 12:00:00+00, 2" {
		t.Errorf("within the window before: %s", got)
	}
	p.ingest(passed("c", 1, 2, windowEnd), passed("d", 1, 2, windowEnd.Add(-time.Second)))
	if got := completed(1, 2); got != "1 2024-07-15 12:00:00+00, 2 2025-07-15 00:00:00+00" {
		t.Errorf("at the end of the window before: %s", got)
	}
	// Passed again after the window ended and before the next round was opened.
	p.ingest(passed("e", 0, 1, noon.AddDate(0, 0, -400)), passed("f", 0, 1, noon.AddDate(0, 0, -10)), passed("g", 0, 1, noon.AddDate(0, 0, -20)))
	if _, err := p.DailyRefresh(t.Context(), domain.DateOf(noon), nil); err != nil {
		t.Fatal(err)
	}
	if got := completed(0, 1); got != "1 2026-06-05 12:00:00+00" {
		t.Errorf("passed again: %s", got)
	}
	if got := p.text("SELECT count(*) FROM events"); got != "3" {
		t.Errorf("%s events", got)
	}
}

// TestStarted: the earliest start of an open round counts; one of a round that is
// over, or of a course that was never assigned, is a no-op.
func TestStarted(t *testing.T) {
	t.Parallel()
	p := newSignalWorld(t)
	o := p.office(1)
	started := func(id string, n byte, at time.Time) string {
		return signalLine(id, domain.CourseStarted, at, "user_id", o.users[0], "course_id", course(n))
	}
	p.ingest(started("a", 1, noon.AddDate(0, 0, -5)), started("b", 1, noon.AddDate(0, 0, -7)), started("c", 9, noon))
	p.ingest(started("d", 1, noon.AddDate(0, 0, -6)), started("e", 2, noon.AddDate(-2, 1, 0))) // of the window before
	got := p.ingest(started("f", 2, noon.AddDate(0, 0, -3)), started("g", 99, noon),
		signalLine("h", domain.CourseStarted, noon, "user_id", o.users[0]))
	if want := "2 there is no such course; 3 course_id is required"; strings.Join(got.refused, "; ") != want {
		t.Errorf("refused are %v", got.refused)
	}
	p.ingest(signalLine("i", domain.CourseCompleted, noon.AddDate(0, 0, -2), "user_id", o.users[0], "course_id", course(2)),
		started("j", 2, noon.AddDate(0, 0, -4)))
	if got, want := p.text(`SELECT string_agg(concat_ws(' ', round, started_at), ', ' ORDER BY course_id, round)
		FROM assignments WHERE course_id IN ($1, $2, $3)`, course(1), course(2), course(9)),
		"1 2026-06-08 12:00:00+00, 1, 2 2026-06-12 12:00:00+00"; got != want {
		t.Errorf("started: %s, want %s", got, want)
	}
}

// TestEndedCompletion: a completion whose renewal window has ended closes nothing
// that is open; one of a course that was never assigned is kept.
func TestEndedCompletion(t *testing.T) {
	t.Parallel()
	p := newSignalWorld(t)
	o := p.office(1)
	const state = `SELECT string_agg(concat_ws(' ', round, completed_at), ', ' ORDER BY round)
		FROM assignments WHERE course_id = $1`
	ended := time.Date(2025, 6, 15, 23, 59, 59, 0, time.UTC)
	for i, c := range []struct {
		course byte
		at     time.Time
		want   string
	}{
		{1, ended, "1"},
		{1, ended.Add(time.Second), "1 2025-06-16 00:00:00+00"},
		{2, ended, "1 2024-06-15 12:00:00+00, 2"},
		{7, ended, "1 2025-06-15 23:59:59+00"},
	} {
		p.ingest(signalLine(fmt.Sprint(i), domain.CourseCompleted, c.at, "user_id", o.users[0], "course_id", course(c.course)))
		if got := p.text(state, course(c.course)); got != c.want {
			t.Errorf("course %d completed at %s: %s, want %s", c.course, c.at, got, c.want)
		}
	}
}

// TestOverdueShows: that a course is no longer overdue moves updated_at, also
// when neither the next course nor a tally moves.
func TestOverdueShows(t *testing.T) {
	t.Parallel()
	p := newSignalWorld(t)
	o := p.office(1)
	p.Exec(`INSERT INTO assignments (client_id, user_id, course_id, position, assigned_at, due_on)
		VALUES ($1, $2, $3, 9, $4, $4::timestamptz), ($1, $2, $5, 10, $4, $6::timestamptz)`,
		o.client, o.users[0], course(7), noon.AddDate(0, 0, -1), course(8), noon)
	old := noon.AddDate(0, 0, -400)
	p.Exec("UPDATE courses SET renewal_months = 0") // so that an old completion closes a round
	p.ingest(signalLine("what is next is known", domain.CourseCompleted, old, "user_id", o.users[0], "course_id", course(3)))
	p.Exec("UPDATE users SET updated_at = created_at")
	for i, c := range []struct {
		course byte
		want   string
	}{{8, "2024-06-15 12:00:00+00"}, {7, "2026-06-15 12:00:00+00"}} {
		p.ingest(signalLine(fmt.Sprint(i), domain.CourseCompleted, old, "user_id", o.users[0], "course_id", course(c.course)))
		if got := p.text("SELECT updated_at FROM users"); got != c.want {
			t.Errorf("course %d: updated at %s, want %s", c.course, got, c.want)
		}
	}
}

// TestSignaturesThatShow: a signature is an event when it shows, at once or when
// its version becomes the current one.
func TestSignaturesThatShow(t *testing.T) {
	t.Parallel()
	p := newSignalWorld(t)
	o := p.office(3)
	const state = "SELECT (SELECT count(*) FROM events WHERE type = 'policy.acknowledged') || ' ' || updated_at FROM policies WHERE id = $1"
	signed := func(id string, user, version int, at time.Time) string {
		return signalLine(id, domain.PolicySigned, at, "user_id", o.users[user], "policy_id", o.policies[0], "version", version)
	}
	published := func(id string) string {
		return signalLine(id, domain.PolicyPublished, noon, "policy_id", o.policies[0])
	}
	lapsed := noon.AddDate(0, 0, -365)
	for _, c := range []struct{ before, line, want string }{
		{"", signed("lapsed", 0, 1, lapsed), "0 2024-06-15 12:00:00+00"},
		{"", signed("early", 0, 2, noon), "0 2024-06-15 12:00:00+00"},
		{"", signed("early and lapsed", 1, 2, lapsed), "0 2024-06-15 12:00:00+00"},
		{"UPDATE policies SET requires_acknowledgment = false", signed("not asked", 2, 1, noon), "0 2024-06-15 12:00:00+00"},
		{"UPDATE policies SET requires_acknowledgment = true", signed("in time", 1, 1, lapsed.Add(time.Microsecond)), "1 2026-06-15 12:00:00+00"},
		{"", published("2"), "2 2026-06-15 12:00:00+00"},
		{"UPDATE policies SET updated_at = '2024-06-15 12:00Z'", signed("version 1", 2, 1, noon.Add(time.Minute)), "2 2024-06-15 12:00:00+00"},
		{"", signed("version 2", 1, 2, noon), "3 2026-06-15 12:00:00+00"},
		{"", published("3"), "3 2026-06-15 12:00:00+00"},
	} {
		if c.before != "" {
			p.Exec(c.before)
		}
		if got := p.ingest(c.line); got.Taken != 1 {
			t.Fatalf("%s: %+v", c.line, got)
		}
		if got := p.text(state, o.policies[0]); got != c.want {
			t.Errorf("after %s: %s, want %s", c.line, got, c.want)
		}
	}
}
