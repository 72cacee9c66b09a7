//go:build scale

package v2_test

import (
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"partnerapi/db/doctor"
	"partnerapi/db/ingest"
	"partnerapi/db/outbox"
	"partnerapi/db/reports"
	"partnerapi/db/seed"
	"partnerapi/domain"
	"partnerapi/platform/report"
	"partnerapi/v2/v2test"
)

var quiet = slog.New(slog.DiscardHandler)

// TestYear verifies that all stored values of a service that is used for a year are those that a plain computation
// gives: after a step of the clock each week, at both ends of each month, and on a leap day.
func TestYear(t *testing.T) {
	y := startYear(t)
	times := yearTimes(y.Clock.Now(), time.Date(2029, time.January, 8, 12, 0, 0, 0, time.UTC))
	for n, at := range times {
		y.Clock.Set(at)
		y.background()
		y.act(n)
		if n%8 == 0 || at.Day() == 29 && at.Month() == time.February || n == len(times)-1 {
			y.recount()
		}
	}
	if y.months != 14 { // November 2027 to December 2028
		t.Errorf("reports were emailed for %d months, want 14", y.months)
	}
}

// yearTimes returns the times of the steps: noon of each seventh day, half past eleven on the last evening of a month,
// five past midnight on the first, and noon of the leap day.
func yearTimes(from, until time.Time) (times []time.Time) {
	for at := from; at.Before(until); at = at.AddDate(0, 0, 7) {
		times = append(times, at)
	}
	for month := time.Date(from.Year(), from.Month()+1, 1, 0, 0, 0, 0, time.UTC); month.Before(until); month = month.AddDate(0, 1, 0) {
		times = append(times, month.Add(-30*time.Minute), month.Add(5*time.Minute))
	}
	times = append(times, time.Date(2028, time.February, 29, 12, 0, 0, 0, time.UTC), until)
	slices.SortFunc(times, time.Time.Compare)
	return times
}

// year is a service with the demonstration that is used for a year.
type year struct {
	*v2test.Harness
	key     string
	clients []string
	store   *report.Store
	turns   outbox.MailTurns
	months  int // for which reports were made
	sent    int // emails
	signals int
}

func startYear(t *testing.T) *year {
	t.Helper()
	y := &year{Harness: v2test.New(t, v2test.Options{Demo: true, Limits: v2test.Unlimited})}
	y.Clock.Set(time.Date(2027, time.December, 1, 12, 0, 0, 0, time.UTC))
	keys, err := seed.Demo(t.Context(), y.DB)
	y.check(err)
	y.key = keys.All
	for _, c := range y.All("/v2/clients", y.key) {
		y.clients = append(y.clients, c["id"].(string))
	}
	y.store, err = report.OpenStore(t.Context(), "", t.TempDir(), quiet)
	y.check(err)
	y.check(outbox.SwitchMail(t.Context(), y.DB, keys.Client, domain.MonthlyReportMail, true))
	return y
}

func (y *year) check(err error) {
	y.T.Helper()
	if err != nil {
		y.T.Fatalf("at %s: %v", y.Clock.Now(), err)
	}
}

// background does what work does in the background: twice, as the second time must find nothing to do.
func (y *year) background() {
	y.T.Helper()
	ctx, today := y.T.Context(), domain.DateOf(y.Clock.Now())
	_, err := y.DB.DailyRefresh(ctx, today, nil)
	y.check(err)
	if ran, err := y.DB.DailyRefresh(ctx, today, nil); err != nil || ran {
		y.T.Errorf("%s: a day was refreshed twice: %v", today, err)
	}
	for more := true; more; {
		_, more, err = y.DB.NoteOverdue(ctx)
		y.check(err)
	}
	made, err := reports.QueueMonthlyReports(ctx, y.DB)
	y.check(err)
	if made > 0 {
		y.months++
	}
	y.check(report.NewMaintainer(y.DB, y.store, quiet, nil).Maintain(ctx))
	worker := report.NewWorker(y.DB, y.store, report.NewRenderer(nil), quiet, report.Observer{})
	leases, err := reports.ClaimReports(ctx, y.DB, 20, time.Minute)
	y.check(err)
	for _, l := range leases {
		y.check(worker.Work(ctx, l))
	}
	y.send()
	y.Publish()
}

// send marks all emails that are due as sent.
func (y *year) send() {
	y.T.Helper()
	for {
		leases, err := outbox.ClaimMails(y.T.Context(), y.DB, &y.turns, 500, time.Minute)
		y.check(err)
		if len(leases) == 0 {
			return
		}
		mails := make([]outbox.SentMail, len(leases))
		for i, l := range leases {
			mails[i] = outbox.SentMail{Lease: l, From: "a@example.com", Subject: "Subject"}
		}
		_, err = outbox.MarkSent(y.T.Context(), y.DB, mails)
		y.check(err)
		y.sent += len(mails)
	}
}

// act does what people and programs do in step n: courses, simulations, signatures, and users who come, go and return.
func (y *year) act(n int) {
	y.T.Helper()
	client := "/v2/clients/" + y.clients[n%4] // the others rest
	var active []string
	for _, u := range y.All(client+"/users?status=active", y.key) {
		active = append(active, u["id"].(string))
	}
	if len(active) > 30 {
		from := n % (len(active) - 30)
		active = active[from : from+30]
	}
	post := func(path, body string) {
		y.T.Helper()
		if r := y.Do(http.MethodPost, path, y.key, body); r.Status >= 300 && r.Status != http.StatusConflict {
			y.T.Fatalf("%s %s: %d %s", path, body, r.Status, r.Body)
		}
	}
	if len(active) > 0 {
		list := `["` + strings.Join(active, `","`) + `"]`
		post(client+"/phishing/sends", `{"user_ids":`+list+`}`)
		y.send()
		if n%5 == 0 {
			courses := y.All("/v2/courses", y.key)
			post(client+"/training/assignments", fmt.Sprintf(`{"course_id":%q,"audience":{"type":"users","user_ids":%s}}`, courses[n%len(courses)]["id"], list))
		}
		if n%6 == 0 {
			y.Do(http.MethodPatch, "/v2/users/"+active[0], y.key, `{"status":"inactive"}`).Want(http.StatusOK)
			y.Do(http.MethodPatch, "/v2/users/"+active[len(active)-1], y.key, `{"role":"finance"}`).Want(http.StatusOK)
			post(client+"/users", fmt.Sprintf(`{"email":"year%d@example.com"}`, n))
		}
		if n%12 == 0 {
			post(client+"/frameworks", fmt.Sprintf(`{"framework_id":%q}`, []string{"hipaa", "soc2", "pci_dss", "nydfs"}[n/12%4]))
		}
	}
	y.Clock.Advance(time.Hour)
	y.react(n)
}

// react applies signals: some of the open courses are begun or completed, some simulations clicked or reported, some
// policies signed.
func (y *year) react(n int) {
	y.T.Helper()
	type row struct {
		Kind                         domain.SignalType
		User, Course, Result, Policy *string
		Version                      *int
	}
	rows, err := y.DB.SQL().QueryContext(y.T.Context(), `
		(SELECT CASE WHEN md5(user_id::text || $1) < 'c' THEN 'course_completed' ELSE 'course_started' END, user_id::text, course_id::text,
			NULL, NULL, NULL::integer FROM assignments AS a JOIN clients AS c ON c.id = a.client_id AND c.archived_at IS NULL
			WHERE completed_at IS NULL ORDER BY md5(user_id::text || course_id || $1) LIMIT 60)
		UNION ALL (SELECT (ARRAY['phishing_opened', 'phishing_clicked', 'phishing_reported', 'credentials_submitted'])[1 + get_byte(uuid_send(id), 15) % 4],
			NULL, NULL, id::text, NULL, NULL FROM phishing_results WHERE sent_at > $2::timestamptz - interval '2 hours' AND get_byte(uuid_send(id), 14) % 3 = 0)
		UNION ALL (SELECT 'policy_signed', u.id::text, NULL, NULL, p.id::text, p.version
			FROM policies AS p JOIN users AS u USING (client_id) JOIN clients AS c ON c.id = p.client_id
			WHERE p.requires_acknowledgment AND p.archived_at IS NULL AND c.archived_at IS NULL
			ORDER BY md5(u.id::text || p.id || $1) LIMIT 20)`, fmt.Sprint(n), y.Clock.Now())
	y.check(err)
	defer func() { _ = rows.Close() }()
	var batch []domain.Signal
	for rows.Next() {
		var r row
		y.check(rows.Scan(&r.Kind, &r.User, &r.Course, &r.Result, &r.Policy, &r.Version))
		s := domain.Signal{ID: fmt.Sprintf("%d/%d", n, len(batch)), Type: r.Kind, At: y.Clock.Now(), Version: domain.OrZero(r.Version)}
		s.User.SetUUID(domain.OrZero(r.User))
		s.Course.SetUUID(domain.OrZero(r.Course))
		s.Result.SetUUID(domain.OrZero(r.Result))
		s.Policy.SetUUID(domain.OrZero(r.Policy))
		batch = append(batch, s)
	}
	y.check(rows.Err())
	for some := range slices.Chunk(batch, 100) {
		_, err := ingest.Apply(y.T.Context(), y.DB, some)
		y.check(err)
	}
	y.signals += len(batch)
}

// plain are queries of stored values, as of the time $1, that differ from a computation of what they are kept of. Those
// of summaries are right after a daily refresh.
var plain = map[string]string{
	"next due courses": `SELECT count(*) FROM users AS u LEFT JOIN LATERAL (SELECT due_on, course_id FROM assignments AS a
			WHERE a.client_id = u.client_id AND a.user_id = u.id AND a.completed_at IS NULL ORDER BY due_on, position, course_id LIMIT 1) AS d ON true
		WHERE (u.next_due_on, u.next_course_id) IS DISTINCT FROM (d.due_on, d.course_id)`,
	"simulations of users": `SELECT count(*) FROM users AS u WHERE (phished_sent, phished_clicked) <> (
		SELECT count(sent_at), count(*) FILTER (WHERE status IN ('attachment_opened', 'clicked', 'credentials_submitted'))
		FROM phishing_results AS r WHERE r.client_id = u.client_id AND r.user_id = u.id)`,
	"scores": `SELECT count(*) FROM users AS u JOIN user_risks AS r ON r.client_id = u.client_id AND r.user_id = u.id
		WHERE r.baseline + (SELECT sum(d) FROM unnest(r.deltas) AS d) <> u.score`,
	"scores of another day": `SELECT count(*) FROM user_risks AS r JOIN clients AS c ON c.id = r.client_id AND c.archived_at IS NULL
		WHERE r.computed_on < ($1::timestamptz AT TIME ZONE 'UTC')::date`,
	"summaries": `SELECT count(*) FROM clients AS c CROSS JOIN LATERAL (
			SELECT count(*) AS users, coalesce(floor(avg(score) + 0.5), 750) AS score, count(*) FILTER (WHERE EXISTS (
				SELECT 1 FROM assignments AS a WHERE a.client_id = u.client_id AND a.user_id = u.id AND a.completed_at IS NULL
					AND a.due_on < ($1::timestamptz AT TIME ZONE 'UTC')::date)) AS late
			FROM users AS u WHERE u.client_id = c.id AND u.status = 'active') AS u
		WHERE c.archived_at IS NULL AND (c.average_score, c.overdue_users, c.on_track_rate) <>
			(u.score, u.late, CASE WHEN u.users = 0 THEN 100 ELSE round(100.0 * (u.users - u.late) / u.users, 1) END)`,
	"click rates": `SELECT count(*) FROM clients AS c CROSS JOIN LATERAL (
			SELECT count(*) AS sent, count(*) FILTER (WHERE status IN ('attachment_opened', 'clicked', 'credentials_submitted')) AS clicked,
				count(*) FILTER (WHERE reported) AS reported
			FROM phishing_results AS r WHERE r.client_id = c.id AND c.users_active > 0
				AND (sent_at AT TIME ZONE 'UTC')::date > ($1::timestamptz AT TIME ZONE 'UTC')::date - 90) AS r
		WHERE c.archived_at IS NULL AND (c.click_rate_90d, c.report_rate_90d) <> (
			coalesce(round(100.0 * r.clicked / nullif(r.sent, 0), 1), 0), coalesce(round(100.0 * r.reported / nullif(r.sent, 0), 1), 0))`,
	"risk history": `SELECT count(*) FROM clients AS c LEFT JOIN risk_history AS h
			ON h.client_id = c.id AND h.day = ($1::timestamptz AT TIME ZONE 'UTC')::date
		WHERE c.archived_at IS NULL AND (h.average_score, h.active_users) IS DISTINCT FROM (c.average_score, c.users_active)`,
	"courses to renew": `SELECT count(*) FROM assignments AS a JOIN users AS u ON u.client_id = a.client_id AND u.id = a.user_id AND u.status = 'active'
		JOIN clients AS c ON c.id = a.client_id AND c.archived_at IS NULL JOIN courses AS k ON k.id = a.course_id AND k.renewal_months > 0
		WHERE NOT a.superseded AND (a.from_program OR a.direct)
			AND (a.completed_at + make_interval(months => k.renewal_months))::date <= ($1::timestamptz AT TIME ZONE 'UTC')::date`,
	"events of overdue courses": `SELECT count(*) FROM assignments WHERE completed_at IS NULL AND NOT overdue_noted
		AND due_on < ($1::timestamptz AT TIME ZONE 'UTC')::date`,
	"emails in the outbox": `SELECT count(*) FROM outbox AS o JOIN clients AS c ON c.id = o.client_id AND c.archived_at IS NULL WHERE due_at <= $1`,
	"old events":           `SELECT count(*) FROM published_events WHERE created_at < $1::timestamptz - interval '40 days'`,
	"reports":              `SELECT count(*) FROM reports WHERE status = 'failed' AND mailed_for IS NOT NULL`,
}

// recount compares all stored values with a plain computation, and prints figures.
func (y *year) recount() {
	y.T.Helper()
	y.Clock.Advance(2 * domain.SummaryAge)
	y.send()
	y.check(y.DB.ForceSummaries(y.T.Context()))
	now := y.Clock.Now()
	for what, query := range plain {
		var args []any
		if strings.Contains(query, "$1") {
			args = append(args, now)
		}
		if n := y.Number(query, args...); n != 0 {
			y.T.Errorf("%s: %d %s differ from a plain computation", now, n, what)
		}
	}
	wrong, err := doctor.Recount(y.T.Context(), y.DB)
	y.check(err)
	for _, m := range wrong {
		y.T.Errorf("%s: %+v", now, m)
	}
	y.T.Logf("%s: %d users, %d rounds of courses (%d open), %d simulations, %d signals, %d emails, %d events, %d months of reports",
		now.Format(time.RFC3339), y.Number("SELECT count(*) FROM users"), y.Number("SELECT count(*) FROM assignments"),
		y.Number("SELECT count(*) FROM assignments WHERE completed_at IS NULL"), y.Number("SELECT count(*) FROM phishing_results"),
		y.signals, y.sent, y.Number("SELECT count(*) FROM published_events"), y.months)
}
