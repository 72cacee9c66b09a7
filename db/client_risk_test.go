package db_test

import (
	"reflect"
	"testing"
	"time"

	"partnerapi/domain"
)

// TestClientRisk: a client's risk is one snapshot, of the moment of its summary.
func TestClientRisk(t *testing.T) {
	w := newWorld(t)
	ctx := w.caller()
	client := w.AddClient()
	read := func() domain.ClientRisk {
		t.Helper()
		tenant, err := w.FreshTenant(ctx, client)
		w.Must(err)
		risk, err := tenant.Risk(ctx)
		w.Must(err)
		return risk
	}
	w.Exec("UPDATE clients SET summarized_at = $2 WHERE id = $1", client, noon)
	want := domain.ClientRisk{
		AverageScore: 750, Grade: domain.GradeB, ByRole: []domain.RoleRisk{}, TopFactors: []domain.FactorTotal{},
		History: []domain.AverageOn{}, ComputedAt: noon,
	}
	if got := read(); !reflect.DeepEqual(got, want) {
		t.Errorf("never summarized: %+v", got)
	}

	users := []domain.UserID{
		w.AddUser(client, domain.RoleStandard, 0), w.AddUser(client, domain.RoleStandard, 0),
		w.AddUser(client, domain.RoleFinance, 0), w.AddUser(client, domain.RoleStandard, 0), w.AddUser(client, domain.RoleAdmin, 0),
	}
	w.reportEmail(client, users[0], "phishing", 0)             // 775
	w.AddSimulation(client, users[1], 0, false, "clicked_at")  // 690
	w.AddSimulation(client, users[2], 0, false, "clicked_at")  // 700 - 75
	w.exposure(client, users[2], "a", "critical", 1, false)    // - 88 (87.5)
	w.AddSimulation(client, users[3], 0, false, "reported_at") // inactive: in nothing
	w.Exec("UPDATE users SET status = 'inactive' WHERE id = $1", users[3])
	w.Must(w.Rescore(ctx, client, users))
	for _, day := range []struct{ age, score int }{{0, 700}, {89, 701}, {90, 702}} {
		w.Exec("INSERT INTO risk_history (client_id, day, average_score) VALUES ($1, $2, $3)", client, today.AddDays(-day.age), day.score)
	}

	before := want
	before.History = []domain.AverageOn{{Date: today.AddDays(-89), AverageScore: 701}, {Date: today, AverageScore: 700}}
	if got := read(); !reflect.DeepEqual(got, before) {
		t.Errorf("the summary is fresh: %+v", got)
	}
	w.Clock.Advance(time.Hour)
	want = domain.ClientRisk{
		AverageScore: 671, Grade: domain.GradeC, HighRiskUsers: 1, // (775 + 690 + 537 + 680) / 4 = 670.5
		Distribution: domain.GradeDistribution{B: 1, C: 2, D: 1},
		ByRole:       []domain.RoleRisk{{Role: "admin", Users: 1, AverageScore: 680}, {Role: "finance", Users: 1, AverageScore: 537}, {Role: "standard", Users: 2, AverageScore: 733}},
		TopFactors: []domain.FactorTotal{
			{Factor: domain.Factor{Key: "phishing_clicks", Label: "Simulated phishing links clicked", Delta: -135}, Users: 2},
			{Factor: domain.Factor{Key: "password_breaches_active", Label: "Passwords exposed in breaches", Delta: -88}, Users: 1},
			{Factor: domain.Factor{Key: "real_phish_reported", Label: "Real phishing reported", Delta: 25}, Users: 1},
		},
		History:    []domain.AverageOn{{Date: today.AddDays(-89), AverageScore: 701}, {Date: today, AverageScore: 671, ActiveUsers: new(4)}},
		ComputedAt: w.Clock.Now(),
	}
	if got := read(); !reflect.DeepEqual(got, want) {
		t.Errorf("%+v\nwant %+v", got, want)
	}
	w.Exec("UPDATE users SET status = 'inactive', score = 0") // the parts do not move without the headline
	if got := read(); !reflect.DeepEqual(got, want) {
		t.Errorf("before it is stale: %+v", got)
	}
}
