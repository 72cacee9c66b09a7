package domain_test

import (
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"partnerapi/domain"
)

var roles = []domain.Role{domain.RoleStandard, domain.RoleHR, domain.RoleFinance, domain.RoleExecutive, domain.RoleAdmin}

func anyEvents(t *rapid.T, name string) []domain.Date {
	return ago(rapid.SliceOfN(rapid.IntRange(-3, 370), 0, 8).Draw(t, name)...)
}

func anySignals(t *rapid.T) domain.RiskSignals {
	count := rapid.IntRange(0, 12)
	return domain.RiskSignals{
		Clicks:             anyEvents(t, "clicks"),
		Attachments:        anyEvents(t, "attachments"),
		Credentials:        anyEvents(t, "credentials"),
		Reports:            anyEvents(t, "reports"),
		RealPhishing:       anyEvents(t, "real phishing"),
		RealPending:        anyEvents(t, "real pending"),
		RealHarmless:       anyEvents(t, "real harmless"),
		Completions:        anyEvents(t, "completions"),
		Dormant:            rapid.Bool().Draw(t, "dormant"),
		UnresolvedCritical: count.Draw(t, "critical"),
		UnresolvedHigh:     count.Draw(t, "high"),
		UnresolvedMedium:   count.Draw(t, "medium"),
	}
}

func badEvents(s *domain.RiskSignals) []*[]domain.Date {
	return []*[]domain.Date{&s.Clicks, &s.Attachments, &s.Credentials}
}

func goodEvents(s *domain.RiskSignals) []*[]domain.Date {
	return []*[]domain.Date{&s.Reports, &s.RealPhishing, &s.RealPending, &s.RealHarmless, &s.Completions}
}

func allEvents(s *domain.RiskSignals) []*[]domain.Date {
	return append(badEvents(s), goodEvents(s)...)
}

func exposures(s *domain.RiskSignals) []*int {
	return []*int{&s.UnresolvedCritical, &s.UnresolvedHigh, &s.UnresolvedMedium}
}

// insert puts an event anywhere into a list that nothing else shares.
func insert(t *rapid.T, events *[]domain.Date) {
	at := rapid.IntRange(0, len(*events)).Draw(t, "at")
	*events = slices.Insert(slices.Clone(*events), at, ago(rapid.IntRange(-3, 370).Draw(t, "age"))...)
}

// TestScoreIsExactlyItsParts holds that baseline and factors give the score,
// and that each factor is what the formula says to within its rounding.
func TestScoreIsExactlyItsParts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		role, s := rapid.SampledFrom(roles).Draw(t, "role"), anySignals(t)
		a := domain.Assess(role, s, today)
		sum := a.Baseline
		for _, factor := range a.Deltas.Factors() {
			sum += factor.Delta
		}
		if sum != a.Score || a.Score < 0 || a.Score > 1000 || a.Grade != domain.GradeOf(a.Score) {
			t.Fatalf("%d with parts of %d, grade %s", a.Score, sum, a.Grade)
		}
		if bounds := a.Deltas[domain.NumFactors-1]; bounds != 0 && a.Score != 0 && a.Score != 1000 {
			t.Fatalf("bounds of %d at %d", bounds, a.Score)
		}
		for i, want := range formula(role, s) {
			if got := float64(a.Deltas[i]); math.Abs(got-want) > 0.5+1e-6 {
				t.Fatalf("%s is %v, want %v rounded", domain.FactorKey("").Values()[i], got, want)
			}
		}
	})
}

// formula is the model as it would be written down, unrounded and without
// bounds.
func formula(role domain.Role, s domain.RiskSignals) []float64 {
	decayed := func(events []domain.Date, halfLife float64) (n float64) {
		for _, day := range events {
			if age := math.Max(0, float64(day.DaysUntil(today))); age <= 365 {
				n += math.Pow(2, -age/halfLife)
			}
		}
		return n
	}
	points := []float64{
		math.Max(-300, -60*math.Pow(decayed(s.Clicks, 90), 1.25)),
		math.Max(-240, -80*decayed(s.Attachments, 90)),
		math.Max(-150, -50*decayed(s.Credentials, 90)),
		math.Min(120, 20*decayed(s.Reports, 90)),
		math.Min(100, 25*(decayed(s.RealPhishing, 90)+decayed(s.RealPending, 90)/2)),
		math.Min(150, 12*decayed(s.Completions, 180)),
		0,
		math.Max(-200, -70*math.Sqrt(float64(s.UnresolvedCritical))),
		math.Max(-80, -20*float64(s.UnresolvedHigh)),
		math.Max(-25, -5*float64(s.UnresolvedMedium)),
	}
	if s.Dormant {
		points[6] = -75
	}
	multiplier := map[domain.Role]float64{
		domain.RoleStandard: 1, domain.RoleHR: 1.15, domain.RoleFinance: 1.25, domain.RoleExecutive: 1.3, domain.RoleAdmin: 1.4,
	}[role]
	for i, p := range points {
		if p < 0 {
			points[i] = p * multiplier
		}
	}
	return points
}

func TestNoBadSignalRaisesAScore(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		role, before := rapid.SampledFrom(roles).Draw(t, "role"), anySignals(t)
		for i := range badEvents(&before) {
			after := before
			insert(t, badEvents(&after)[i])
			notAbove(t, role, after, before)
		}
		for i := range exposures(&before) {
			after := before
			*exposures(&after)[i]++
			notAbove(t, role, after, before)
		}
		before.Dormant = false
		after := before
		after.Dormant = true
		notAbove(t, role, after, before)
	})
}

func TestNoGoodSignalLowersAScore(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		role, before := rapid.SampledFrom(roles).Draw(t, "role"), anySignals(t)
		for i := range goodEvents(&before) {
			after := before
			insert(t, goodEvents(&after)[i])
			notAbove(t, role, before, after)
		}
		for i := range exposures(&before) {
			after := before
			*exposures(&after)[i]-- // resolved
			notAbove(t, role, before, after)
		}
	})
}

func TestNoAgeingOfBadSignalsLowersAScore(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		role, before := rapid.SampledFrom(roles).Draw(t, "role"), anySignals(t)
		for i, events := range badEvents(&before) {
			if len(*events) == 0 {
				continue
			}
			after := before
			aged := slices.Clone(*events)
			at := rapid.IntRange(0, len(aged)-1).Draw(t, "which")
			aged[at] = aged[at].AddDays(-rapid.IntRange(1, 30).Draw(t, "days"))
			*badEvents(&after)[i] = aged
			notAbove(t, role, before, after)
		}
		for _, events := range goodEvents(&before) {
			*events = nil
		}
		now, later := domain.Assess(role, before, today), domain.Assess(role, before, today.AddDays(1))
		if later.Score < now.Score {
			t.Fatalf("%d fell to %d overnight", now.Score, later.Score)
		}
	})
}

func TestNoRoleScoresAboveStandard(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := anySignals(t)
		standard := domain.Assess(domain.RoleStandard, s, today)
		for _, role := range roles {
			if a := domain.Assess(role, s, today); a.Score > standard.Score {
				t.Fatalf("%s scores %d, standard %d", role, a.Score, standard.Score)
			}
		}
	})
}

func TestScoreKnowsNoOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		role, before := rapid.SampledFrom(roles).Draw(t, "role"), anySignals(t)
		after := before
		for _, events := range allEvents(&after) {
			*events = rapid.Permutation(*events).Draw(t, "order")
		}
		if a, b := domain.Assess(role, before, today), domain.Assess(role, after, today); a != b {
			t.Fatalf("%+v, in another order %+v", a, b)
		}
	})
}

// notAbove holds that the first signals do not score above the second.
func notAbove(t *rapid.T, role domain.Role, low, high domain.RiskSignals) {
	t.Helper()
	a, b := domain.Assess(role, low, today), domain.Assess(role, high, today)
	if a.Score > b.Score {
		t.Fatalf("%+v scores %d, above %d of %+v", low, a.Score, b.Score, high)
	}
}
