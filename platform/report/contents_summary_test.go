package report_test

import (
	"fmt"
	"strings"
	"testing"

	"partnerapi/domain"
	"partnerapi/platform/report"
	"partnerapi/v2/api"
)

func (w *world) get(path string, into any) { w.Get(path, w.tenant.Key).Want(200).Into(into) }

// TestExecutiveSummary: figures are those of the client and of its summaries.
func TestExecutiveSummary(t *testing.T) {
	w := newWorld(t)
	d := w.document(domain.ExecutiveSummary, nil)

	var client api.Client
	w.get(w.path(""), &client)
	d.figure(t, "Average risk score", client.Risk.AverageScore)
	d.figure(t, "High-risk employees", client.Risk.HighRiskUsers)
	d.figure(t, "On track", client.Training.OnTrackRate)
	d.figure(t, "With overdue courses", client.Training.OverdueUsers)
	d.figure(t, "Click rate", client.Phishing.ClickRate90d)
	d.figure(t, "Report rate", client.Phishing.ReportRate90d)

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
	if !strings.Contains(d.texts, fmt.Sprintf("Collect %d missing policy signatures.", asked-signed)) {
		t.Errorf("the next steps do not name the missing signatures: %s", d.texts)
	}

	w.Exec("UPDATE clients SET dark_web_monitoring = false WHERE id = $1", w.client)
	w.document(domain.ExecutiveSummary, nil).figure(t, "Exposures found", "–")
}

// TestRiskOverview: tables are those of GET risk, and users those of their list.
func TestRiskOverview(t *testing.T) {
	w := newWorld(t)
	d := w.document(domain.RiskOverview, nil)

	var risk api.ClientRisk
	w.get(w.path("/risk"), &risk)
	d.figure(t, "Average risk score", risk.AverageScore)
	d.figure(t, "High-risk employees", risk.HighRiskUsers)
	n := risk.Distribution
	for i, users := range []int{n.A, n.B, n.C, n.D, n.F} {
		if got := d.tables["Users and grades"][i]["Users"]; got != users {
			t.Errorf("grade %d has %v users, not %d", i, got, users)
		}
	}
	var roles, factors, users []row
	for _, r := range risk.ByRole {
		roles = append(roles, row{"Role": capital(r.Role), "Users": r.Users, "Average score": r.AverageScore,
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

// TestMonthlyReport: both columns are the numbers of the results of their period,
// counted one by one.
func TestMonthlyReport(t *testing.T) {
	w := newWorld(t)
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
	if d.Before == nil || *d.Before != p.Previous() || !strings.Contains(d.texts, "▲ Better: ") {
		t.Errorf("got a comparison with %v and the text %q", d.Before, d.texts)
	}
}

// TestGlobalHealth: the average is that of the partner's other clients with users,
// whichever of them the key reaches, and of no fewer than three.
func TestGlobalHealth(t *testing.T) {
	w := newWorld(t)
	small := *w
	small.use(w.keys.Other)
	small.client = list[api.Client](&small, "/v2/clients")[0].ID
	for n := 1; n <= domain.LeastPeers; n++ { // other clients
		d, few := small.document(domain.GlobalHealth, nil), n < domain.LeastPeers
		if strings.Contains(d.texts, "too few other clients") != few {
			t.Errorf("with %d other clients it says %q", n, d.texts)
		}
		for _, r := range d.tables["Areas compared"] {
			shown, area := r["Average of others"] != nil, r["Area"]
			if shown && (few || area == "Framework requirements met") || !shown && !few && area == "Average risk score" {
				t.Errorf("with %d other clients it shows %v", n, r)
			}
		}
		small.AddUser(small.tenant, small.AddClient(small.tenant, fmt.Sprintf("Other %d", n)).ID, "only@example.com")
		small.Clock.Advance(2 * domain.SummaryAge)
	}

	narrow := *w
	narrow.tenant.Ctx = w.As(w.AddKey(w.tenant, []domain.Scope{domain.Read}, []domain.ClientID{w.client}))
	d := narrow.document(domain.GlobalHealth, nil)
	rows := map[any]row{}
	for _, r := range d.tables["Areas compared"] {
		rows[r["Area"]] = r
	}

	clients := map[domain.ClientID]api.Client{}
	var others []domain.ClientID
	for _, c := range list[api.Client](w, "/v2/clients") {
		if clients[c.ID] = c; c.ID != w.client && c.Users.Active > 0 {
			others = append(others, c.ID)
		}
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
			got, decimals := rows[area][column].(float64)
			if !decimals {
				got = float64(rows[area][column].(report.Whole))
			}
			if got-want > 1e-9 || want-got > 1e-9 || want == 0 {
				t.Errorf("%s of %s: %v, not %v", area, column, got, want)
			}
		}
	}
	for _, area := range []string{"High-risk users", "Policies signed", "Unresolved exposures of 100 users"} {
		if rows[area]["Average of others"] == nil {
			t.Errorf("%s is compared with nothing", area)
		}
	}
	if !strings.Contains(d.texts, fmt.Sprintf("%d other clients", len(others))) {
		t.Errorf("it says %q", d.texts)
	}
}
