package domain_test

import (
	"encoding/json"
	"testing"

	"partnerapi/domain"
)

var today = domain.Date{}.AddDays(740000)

// ago returns the days that are the given numbers of days before today.
func ago(ages ...int) []domain.Date {
	days := make([]domain.Date, len(ages))
	for i, age := range ages {
		days[i] = today.AddDays(-age)
	}
	return days
}

// deltas in tests name the factors that are not 0.
type deltas map[domain.FactorKey]int

func TestAssess(t *testing.T) {
	const (
		admin, executive, hr = domain.RoleAdmin, domain.RoleExecutive, domain.RoleHR
		finance, standard    = domain.RoleFinance, domain.RoleStandard
	)
	many := ago(make([]int, 100)...)
	for _, c := range []struct {
		name    string
		role    domain.Role
		signals domain.RiskSignals
		score   int
		grade   domain.Grade
		factors deltas
	}{
		{"nothing is known", standard, domain.RiskSignals{}, 750, domain.GradeB, deltas{}},
		{"nothing, hr", hr, domain.RiskSignals{}, 720, domain.GradeB, deltas{}},
		{"nothing, finance", finance, domain.RiskSignals{}, 700, domain.GradeB, deltas{}},
		{"nothing, executive", executive, domain.RiskSignals{}, 700, domain.GradeB, deltas{}},
		{"nothing, admin", admin, domain.RiskSignals{}, 680, domain.GradeC, deltas{}},
		{"no such role", "janitor", domain.RiskSignals{Clicks: ago(0)}, 690, domain.GradeC, deltas{"phishing_clicks": -60}},

		// 2^1.25 = 2.3784, 0.5^1.25 = 0.42045, 3^1.25 = 3.9482.
		{"a click", standard, domain.RiskSignals{Clicks: ago(0)}, 690, domain.GradeC, deltas{"phishing_clicks": -60}},
		{"two clicks", standard, domain.RiskSignals{Clicks: ago(0, 0)}, 607, domain.GradeC, deltas{"phishing_clicks": -143}},
		{"three clicks", standard, domain.RiskSignals{Clicks: ago(0, 0, 0)}, 513, domain.GradeD, deltas{"phishing_clicks": -237}},
		{"four clicks meet the cap", standard, domain.RiskSignals{Clicks: ago(0, 0, 0, 0)}, 450, domain.GradeD, deltas{"phishing_clicks": -300}},
		{"a click, 90 days ago", standard, domain.RiskSignals{Clicks: ago(90)}, 725, domain.GradeB, deltas{"phishing_clicks": -25}},
		{"two clicks, 90 days ago", standard, domain.RiskSignals{Clicks: ago(90, 90)}, 690, domain.GradeC, deltas{"phishing_clicks": -60}},
		{"a click tomorrow", standard, domain.RiskSignals{Clicks: ago(-1)}, 690, domain.GradeC, deltas{"phishing_clicks": -60}},

		// 60 * (2^(-72k/90))^1.25 = 60 / 2^k: 30, 15 and 7.5, times the role's.
		{"a click, 72 days ago", standard, domain.RiskSignals{Clicks: ago(72)}, 720, domain.GradeB, deltas{"phishing_clicks": -30}},
		{"72 days, hr", hr, domain.RiskSignals{Clicks: ago(72)}, 685, domain.GradeC, deltas{"phishing_clicks": -35}},           // -34.5
		{"72 days, finance", finance, domain.RiskSignals{Clicks: ago(72)}, 662, domain.GradeC, deltas{"phishing_clicks": -38}}, // -37.5
		{"a click, 144 days ago", standard, domain.RiskSignals{Clicks: ago(144)}, 735, domain.GradeB, deltas{"phishing_clicks": -15}},
		{"144 days, executive", executive, domain.RiskSignals{Clicks: ago(144)}, 680, domain.GradeC, deltas{"phishing_clicks": -20}}, // -19.5
		{"a click, 216 days ago", standard, domain.RiskSignals{Clicks: ago(216)}, 742, domain.GradeB, deltas{"phishing_clicks": -8}}, // -7.5
		{"216 days, admin", admin, domain.RiskSignals{Clicks: ago(216)}, 669, domain.GradeC, deltas{"phishing_clicks": -11}},         // -10.5
		{"two clicks, 306 days ago", standard, domain.RiskSignals{Clicks: ago(306, 306)}, 742, domain.GradeB, deltas{"phishing_clicks": -8}},

		// 80 * 2^(-365/90) = 4.81.
		{"the last day that counts", standard, domain.RiskSignals{Attachments: ago(365)}, 745, domain.GradeB, deltas{"attachments_opened": -5}},
		{"the first that does not", standard, domain.RiskSignals{Attachments: ago(366)}, 750, domain.GradeB, deltas{}},
		// 12 * (0.5 + 2^(-365/180)) = 8.94.
		{"old courses", standard, domain.RiskSignals{Completions: ago(180, 365, 366, 4000)}, 759, domain.GradeB, deltas{"courses_completed": 9}},

		{"credentials, which are a click too", hr, domain.RiskSignals{Clicks: ago(0), Credentials: ago(0)}, 593, domain.GradeD,
			deltas{"phishing_clicks": -69, "credential_submissions": -58}}, // -57.5
		{"half a point, finance", finance, domain.RiskSignals{Credentials: ago(0)}, 637, domain.GradeC, deltas{"credential_submissions": -63}}, // -62.5
		{"half a point, executive", executive, domain.RiskSignals{Dormant: true, UnresolvedMedium: 1}, 595, domain.GradeD,
			deltas{"dormant_on_training": -98, "basic_breaches": -7}}, // -97.5, -6.5
		{"half a point, good", standard, domain.RiskSignals{RealPending: ago(0)}, 763, domain.GradeB, deltas{"real_phish_reported": 13}}, // 12.5
		{"good signals know no role", admin, domain.RiskSignals{Reports: ago(0), Completions: ago(0)}, 712, domain.GradeB,
			deltas{"phishing_reports": 20, "courses_completed": 12}},
		{"real phishing by outcome", standard, domain.RiskSignals{RealPhishing: ago(0), RealPending: ago(0), RealHarmless: ago(0, 0)},
			788, domain.GradeB, deltas{"real_phish_reported": 38}}, // 37.5

		// 70 * sqrt(2) = 98.995, times 1.3 = 128.69.
		{"two passwords, executive", executive, domain.RiskSignals{UnresolvedCritical: 2}, 571, domain.GradeD, deltas{"password_breaches_active": -129}},
		{"a password, hr", hr, domain.RiskSignals{UnresolvedCritical: 1}, 639, domain.GradeC, deltas{"password_breaches_active": -81}}, // -80.5
		{"eight passwords", standard, domain.RiskSignals{UnresolvedCritical: 8}, 552, domain.GradeD, deltas{"password_breaches_active": -198}},
		{"nine meet the cap", standard, domain.RiskSignals{UnresolvedCritical: 9}, 550, domain.GradeD, deltas{"password_breaches_active": -200}},
		{"counts below 0", standard, domain.RiskSignals{UnresolvedCritical: -1, UnresolvedHigh: -1, UnresolvedMedium: -1}, 750, domain.GradeB, deltas{}},

		{"the worst admin", admin, domain.RiskSignals{
			Clicks: many, Attachments: many, Credentials: many, Dormant: true,
			UnresolvedCritical: 100, UnresolvedHigh: 100, UnresolvedMedium: 100,
		}, 0, domain.GradeF, deltas{
			"phishing_clicks": -420, "attachments_opened": -336, "credential_submissions": -210, "dormant_on_training": -105,
			"password_breaches_active": -280, "pii_breaches": -112, "basic_breaches": -35, "bounds": 818,
		}},
		{"the best standard user", standard, domain.RiskSignals{Reports: many, RealPhishing: many, Completions: many}, 1000, domain.GradeA,
			deltas{"phishing_reports": 120, "real_phish_reported": 100, "courses_completed": 150, "bounds": -120}},
	} {
		a := domain.Assess(c.role, c.signals, today)
		if a.Score != c.score || a.Grade != c.grade {
			t.Errorf("%s: %d %s, want %d %s", c.name, a.Score, a.Grade, c.score, c.grade)
		}
		factors := a.Deltas.Factors()
		for _, factor := range factors {
			if factor.Delta != c.factors[factor.Key] {
				t.Errorf("%s: %s is %d, want %d", c.name, factor.Key, factor.Delta, c.factors[factor.Key])
			}
		}
		if len(factors) != len(c.factors) {
			t.Errorf("%s: %v, want %v", c.name, factors, c.factors)
		}
	}
}

func TestGradeOf(t *testing.T) {
	for score, want := range map[int]domain.Grade{
		1000: "A", 800: "A", 799: "B", 700: "B", 699: "C", 600: "C", 599: "D", 400: "D", 399: "F", 0: "F",
	} {
		if got := domain.GradeOf(score); got != want {
			t.Errorf("GradeOf(%d) = %s, want %s", score, got, want)
		}
	}
}

func TestTallies(t *testing.T) {
	a := domain.Assess(domain.RoleStandard, domain.RiskSignals{
		Clicks:       ago(0, 365, 366, -3),
		Attachments:  ago(1, 2, 3, 4),
		Credentials:  ago(365, 400),
		Reports:      ago(10, 20, 30, 40, 50),
		RealPhishing: ago(1, 366),
		RealPending:  ago(1, 2),
		RealHarmless: ago(1, 2, 3),
		Completions:  ago(1, 2, 3, 4, 5, 6, 7),
		Dormant:      true,

		UnresolvedCritical: 90, UnresolvedHigh: 91, UnresolvedMedium: 92,
		SeenPasswordActive: 8, SeenPasswordResolved: 9, SeenPII: 10, SeenBasic: 11,
	}, today)
	got, err := json.Marshal(a.Tallies)
	want := `{"courses_completed":7,"phishing_clicks":3,"phishing_reports":5,"credential_submissions":1,"attachments_opened":4,` +
		`"real_phish_reported":6,"password_breaches_active":8,"password_breaches_resolved":9,"pii_breaches":10,"basic_breaches":11,` +
		`"dormant_on_training":true}`
	if err != nil || string(got) != want {
		t.Errorf("%s, %v; want %s", got, err, want)
	}
}

func TestFactorsOfDeltas(t *testing.T) {
	var all domain.Deltas
	for i := range all {
		all[i] = i + 1
	}
	factors := all.Factors()
	keys := domain.FactorKey("").Values()
	if len(factors) != len(keys) || all.Sum() != domain.NumFactors*(domain.NumFactors+1)/2 {
		t.Fatalf("%d factors of %d, sum %d", len(factors), len(keys), all.Sum())
	}
	for i, factor := range factors {
		if string(factor.Key) != keys[i] || factor.Delta != i+1 || factor.Label == "" {
			t.Errorf("factor %d is %+v, want the key %s", i, factor, keys[i])
		}
	}
	if none := (domain.Deltas{}).Factors(); none == nil || len(none) != 0 {
		t.Errorf("no deltas give %#v, want an empty list, for JSON", none)
	}
	if again := all.Factors(); again[0].Delta != 1 || (domain.Deltas{5}).Factors()[0].Delta != 5 {
		t.Errorf("the deltas of one user reach another: %v", again)
	}
}

func TestDormantOnTraining(t *testing.T) {
	for _, c := range []struct {
		name       string
		incomplete bool
		completed  []domain.Date
		age        int
		want       bool
	}{
		{"all is done", false, nil, 1000, false},
		{"new", true, nil, 60, false},
		{"no longer new", true, nil, 61, true},
		{"still active", true, ago(500, 180), 1000, false},
		{"no longer active", true, ago(500, 181), 1000, true},
		{"completed in the future", true, ago(-1), 1000, false},
	} {
		if got := domain.DormantOnTraining(c.incomplete, c.completed, today.AddDays(-c.age), today); got != c.want {
			t.Errorf("%s: %v", c.name, got)
		}
	}
}
