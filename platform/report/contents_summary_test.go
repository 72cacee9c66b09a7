package report_test

import (
	"fmt"
	"io"
	"strings"
	"testing"

	"partnerapi/db"
	"partnerapi/db/dbtest/fixture"
	"partnerapi/domain"
	"partnerapi/platform/report"
	"partnerapi/v2/api"
	"partnerapi/v2/v2test"
)

// history gives a client average scores on the days of the last n.
func (w *world) history(client domain.ClientID, n int) {
	w.Exec(`INSERT INTO risk_history (client_id, day, average_score)
		SELECT $1, $2::date - n, 650 + n % 80 FROM generate_series(1, $3::integer) AS n`, client, today, n)
}

// follow gives the client frameworks that are evaluated already.
func (w *world) follow(client domain.ClientID) {
	for n, id := range []string{"hipaa", "pci_dss", "hipaa"} {
		audience, of := any("all"), any(nil)
		if n == 2 {
			audience, of = "collection", db.NewID[domain.CollectionKind]()
		}
		fixture.Insert(w.T, w.DB.SQL(), "framework_assignments", fixture.Row{
			"client_id": client, "id": db.NewID[domain.FrameworkAssignmentKind](), "framework_id": id, "audience_type": audience,
			"audience_id": of, "created_at": v2test.Noon, "met": 2, "total": 3, "evaluated_at": v2test.Noon,
			"requirements": []row{
				{"key": "T1", "met": true, "value": 100, "part": 4, "whole": 4},
				{"key": "P2", "met": false, "value": 7.5, "part": 3, "whole": 40},
				{"key": "R1", "met": true, "value": 1, "part": 1},
			},
		})
	}
}

func (w *world) get(path string, into any) { w.Get(path, w.tenant.Key).Want(200).Into(into) }

// pdf writes a report of the client as a PDF and returns its number of pages.
func (w *world) pdf(typ domain.ReportType) (pages int) {
	w.T.Helper()
	w.with(typ, func(d *report.Document) error {
		pages = len(report.PagesOf(w.T, d, report.Options{}))
		return nil
	})
	return pages
}

// TestEveryTypeIsWritten: all types are written in both formats, without users, with
// one, and with many; a summary for a manager is one page.
func TestEveryTypeIsWritten(t *testing.T) {
	w := newWorld(t)
	for _, step := range []func(){
		func() {},
		func() { w.User(w.tenant, w.client, "only@example.com") },
		func() { w.fill(w.client, 60); w.history(w.client, 120); w.follow(w.client) },
		func() { // all frameworks
			for _, f := range domain.Frameworks {
				w.Do("POST", w.path("/frameworks"), w.tenant.Key, row{"framework_id": f.ID})
			}
		},
	} {
		step()
		for _, typ := range domain.ReportTypes {
			if pages := w.pdf(typ); pages == 0 || typ == domain.ExecutiveSummary && pages != 1 {
				t.Errorf("%s has %d pages", typ, pages)
			}
			w.with(typ, func(d *report.Document) error { return report.WriteXLSX(t.Context(), io.Discard, d) })
		}
	}
}

// TestExecutiveSummary: figures are those of the client and of its summaries.
func TestExecutiveSummary(t *testing.T) {
	w := twoClients(t)
	w.history(w.client, 120)
	w.follow(w.client)
	d := w.document(domain.ExecutiveSummary, nil)

	var client api.Client
	w.get(w.path(""), &client)
	d.figure(t, "Average risk score", client.Risk.AverageScore)
	d.figure(t, "High-risk users", client.Risk.HighRiskUsers)
	d.figure(t, "On track", client.Training.OnTrackRate)
	d.figure(t, "Users with overdue courses", client.Training.OverdueUsers)
	d.figure(t, "Click rate", client.Phishing.ClickRate90d)
	d.figure(t, "Report rate", client.Phishing.ReportRate90d)
	d.figure(t, "Framework requirements", 6)

	var exposures api.DarkWeb
	w.get(w.path("/dark-web"), &exposures)
	d.figure(t, "Unresolved exposures", exposures.Summary.UnresolvedExposures)
	type policy struct {
		MustSign          bool `json:"requires_acknowledgment"`
		AudienceUserCount *int `json:"audience_user_count"`
		AcknowledgedCount *int `json:"acknowledged_count"`
	}
	asked, signed := 0, 0
	for _, p := range list[policy](w, w.path("/policies")) {
		if p.MustSign {
			asked += *p.AudienceUserCount
			signed += *p.AcknowledgedCount
		}
	}
	d.figure(t, "Policies signed", rate(signed, asked))
	if !strings.Contains(d.texts, fmt.Sprintf("missing (%d)", asked-signed)) {
		t.Errorf("the next steps do not name the missing signatures: %s", d.texts)
	}

	w.Exec("UPDATE clients SET dark_web_monitoring = false WHERE id = $1", w.client)
	w.document(domain.ExecutiveSummary, nil).figure(t, "Exposures found", "–")
}

// TestRiskOverview: tables are those of GET risk, and users those of their list.
func TestRiskOverview(t *testing.T) {
	w := twoClients(t)
	w.Exec(`UPDATE users SET score = 300 + (random() * 600)::integer,
		role = (ARRAY['standard', 'hr', 'admin'])[1 + (random() * 2)::integer]`)
	w.history(w.client, 30)
	d := w.document(domain.RiskOverview, nil)

	var risk api.ClientRisk
	w.get(w.path("/risk"), &risk)
	d.figure(t, "Average risk score", risk.AverageScore)
	d.figure(t, "High-risk users", risk.HighRiskUsers)
	n := risk.Distribution
	for i, users := range []int{n.A, n.B, n.C, n.D, n.F} {
		if got := d.tables["Users and grades"][i]["Users"]; got != users {
			t.Errorf("grade %d has %v users, not %d", i, got, users)
		}
	}
	var roles, factors, users []row
	for _, r := range risk.ByRole {
		name := strings.ToUpper(string(r.Role)[:1]) + string(r.Role)[1:]
		if r.Role == domain.RoleHR {
			name = "HR"
		}
		roles = append(roles, row{"Role": name, "Users": r.Users, "Average score": r.AverageScore,
			"Grade": string(domain.GradeOf(r.AverageScore))})
	}
	same(t, "roles", d.tables["Roles"], roles)
	for _, f := range risk.TopFactors {
		factors = append(factors, row{"Factor": f.Label, "Users": f.Users, "Points": f.Delta})
	}
	if len(factors) != len(d.tables["Factors"]) {
		t.Errorf("%d factors, not %d", len(d.tables["Factors"]), len(factors))
	}
	for _, u := range list[api.User](w, w.path("/users"), "sort", "risk_score", "status", "active")[:25] {
		users = append(users, who(u, row{"Score": u.Risk.Score, "Grade": string(u.Risk.Grade)}))
	}
	for _, r := range d.tables["Highest risk"] {
		delete(r, "Role")
		delete(r, "Overdue courses")
		delete(r, "Clicks in a year")
	}
	same(t, "users", d.tables["Highest risk"], users)
}

func TestCompliance(t *testing.T) {
	w := newWorld(t)
	if d := w.document(domain.ComplianceReport, nil); !strings.Contains(d.texts, "follows no framework") {
		t.Errorf("without frameworks it says %q", d.texts)
	}
	w.follow(w.client)
	d := w.document(domain.ComplianceReport, nil)
	d.figure(t, "Frameworks", 3)
	d.figure(t, "Requirements", 6)
	for title, audience := range map[string]string{"HIPAA Security Rule": "All users", "PCI DSS": "All users",
		"HIPAA Security Rule, a deleted collection": "a deleted collection"} {
		rows := d.tables[title]
		if len(rows) != 3 {
			t.Fatalf("%s: %v", title, rows)
		}
		for _, r := range rows {
			delete(r, "Detail")
		}
		same(t, title, rows, []row{
			{"Requirement": "Required courses completed within a year", "Met": true, "Measured": report.Percent(100),
				"Wanted": "at least", "Target": report.Percent(100)},
			{"Requirement": "Click rate of the last 90 days", "Met": false, "Measured": report.Percent(7.5),
				"Wanted": "at most", "Target": report.Percent(5)},
			{"Requirement": "Compliance reports made within 90 days", "Met": true, "Measured": 1,
				"Wanted": "at least", "Target": 1},
		})
		found := false
		for _, r := range d.tables["Frameworks"] {
			found = found || strings.HasPrefix(title, r["Framework"].(string)) && r["Audience"] == audience && r["Share"] == 67.0
		}
		if !found {
			t.Errorf("%s is not in the table of frameworks: %v", title, d.tables["Frameworks"])
		}
	}
}

// TestMonthlyReport: both columns are the numbers of the results of their period,
// counted one by one.
func TestMonthlyReport(t *testing.T) {
	w := twoClients(t)
	w.history(w.client, 120)
	p := domain.MonthlyReport.DefaultPeriod(today)
	d := w.document(domain.MonthlyReport, nil)
	rows := map[any]row{}
	for _, r := range append(d.tables["Counts compared"], d.tables["Rates compared"]...) {
		rows[r["What"]] = r
		if r["Rate"] != nil {
			rows[r["Rate"]] = r
		}
	}
	results := list[api.PhishingResult](w, w.path("/phishing/results"))
	for column, period := range map[string]domain.ReportPeriod{"This period": p, "Period before": p.Previous()} {
		var n counts
		for _, r := range results {
			if r.SentAt != nil && within(period, &r.SentAt.Time) {
				n.add(r)
			}
		}
		score := w.Number(`SELECT average_score FROM risk_history WHERE client_id = $1 AND day <= $2
			ORDER BY day DESC LIMIT 1`, w.client, period.End)
		for what, want := range map[string]any{
			"Simulated mails sent": n.Sent, "Clicked": n.Clicked, "Reported": n.Reported, "Click rate": rate(n.Clicked, n.Sent),
			"Average risk score at the end": score,
		} {
			if got := rows[what][column]; got != want {
				t.Errorf("%s, %s: %v, not %v", column, what, got, want)
			}
		}
		if n.Sent == 0 {
			t.Errorf("%s: the test is of no mails", column)
		}
	}
	if !strings.Contains(d.texts, "compares "+p.Start.Time().Format("January 2006")+" with") {
		t.Errorf("it says %q", d.texts)
	}
}

// TestGlobalHealth: the average is that of the partner's other clients with users,
// whichever of them the key reaches, and of no fewer than three.
func TestGlobalHealth(t *testing.T) {
	w := newWorld(t)
	w.fill(w.client, 20)
	w.fill(w.Client(w.Tenant("Rival"), "Rival's").ID, 30)
	empty := w.Client(w.tenant, "Nobody").ID
	var others []domain.ClientID
	for n := range 3 {
		d := w.document(domain.GlobalHealth, nil)
		if !strings.Contains(d.texts, "too few other clients") {
			t.Errorf("with %d other clients it says %q", n, d.texts)
		}
		for _, r := range d.tables["Areas compared"] {
			if r["Average of others"] != nil {
				t.Errorf("with %d other clients it shows %v", n, r)
			}
		}
		others = append(others, w.Client(w.tenant, fmt.Sprintf("Other %d", n)).ID)
		w.fill(others[n], 10+10*n)
	}
	w.follow(others[0])
	unsent := w.Client(w.tenant, "No mails").ID
	w.users(unsent, 5)
	w.Exec(`UPDATE clients SET users_active = (
		SELECT count(*) FROM users WHERE client_id = $1 AND status = 'active') WHERE id = $1`, unsent)
	w.Clock.Advance(2 * domain.SummaryAge)
	others = append(others, unsent)

	narrow := *w
	narrow.tenant.Ctx = w.As(w.NewKey(w.tenant, []domain.Scope{domain.Read}, []domain.ClientID{w.client}))
	d := narrow.document(domain.GlobalHealth, nil)
	rows := map[any]row{}
	for _, r := range d.tables["Areas compared"] {
		rows[r["Area"]] = r
	}

	clients := map[domain.ClientID]api.Client{}
	for _, c := range list[api.Client](w, "/v2/clients") {
		clients[c.ID] = c
	}
	for area, figure := range map[string]func(c api.Client) float64{
		"Average risk score":              func(c api.Client) float64 { return float64(c.Risk.AverageScore) },
		"Users on track with training":    func(c api.Client) float64 { return c.Training.OnTrackRate },
		"Click rate of the last 90 days":  func(c api.Client) float64 { return c.Phishing.ClickRate90d },
		"Report rate of the last 90 days": func(c api.Client) float64 { return c.Phishing.ReportRate90d },
	} {
		average := 0.0
		for _, id := range others {
			average += figure(clients[id]) / float64(len(others))
		}
		for column, want := range map[string]float64{"This client": figure(clients[w.client]), "Average of others": average} {
			if got := rows[area][column].(float64); got-want > 1e-9 || want-got > 1e-9 || want == 0 {
				t.Errorf("%s of %s: %v, not %v", area, column, got, want)
			}
		}
	}
	if rows["Framework requirements met"]["Average of others"] != nil {
		t.Error("the average of one client's frameworks is shown")
	}
	for _, area := range []string{"High-risk users", "Policies signed", "Unresolved exposures of 100 users"} {
		if rows[area]["Average of others"] == nil {
			t.Errorf("%s is compared with nothing", area)
		}
	}
	w.pdf(domain.GlobalHealth)
	if !strings.Contains(d.texts, "4 other clients") {
		t.Errorf("with the empty client %s it says %q", empty, d.texts)
	}
}
