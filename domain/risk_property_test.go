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

// numBad is how many lists of events, of those that allEvents has, are of bad signals: they come first.
const numBad = 3

func allEvents(s *domain.RiskSignals) []*[]domain.Date {
	return []*[]domain.Date{
		&s.Clicks, &s.Attachments, &s.Credentials,
		&s.Reports, &s.RealPhishing, &s.RealPending, &s.RealHarmless, &s.Completions,
	}
}

func exposures(s *domain.RiskSignals) []*int {
	return []*int{&s.UnresolvedCritical, &s.UnresolvedHigh, &s.UnresolvedMedium}
}

// insert puts an event anywhere into a list that nothing else shares.
func insert(t *rapid.T, events *[]domain.Date) {
	at := rapid.IntRange(0, len(*events)).Draw(t, "at")
	*events = slices.Insert(slices.Clone(*events), at, ago(rapid.IntRange(-3, 370).Draw(t, "age"))...)
}

// TestScore: baseline and factors give the score, each factor is what the formula says to within
// its rounding, the order of events does not matter, and no role scores above standard.
func TestScore(t *testing.T) {
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
		notAbove(t, role, s, domain.RoleStandard, s)
		for _, events := range allEvents(&s) {
			*events = rapid.Permutation(*events).Draw(t, "order")
		}
		if b := domain.Assess(role, s, today); a != b {
			t.Fatalf("%+v, in another order %+v", a, b)
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

// TestSignalsMoveTheScoreOneWay: one more bad signal never raises a score, one more good signal
// never lowers it.
func TestSignalsMoveTheScoreOneWay(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		role, before := rapid.SampledFrom(roles).Draw(t, "role"), anySignals(t)
		for i := range allEvents(&before) {
			after := before
			if insert(t, allEvents(&after)[i]); i < numBad {
				notAbove(t, role, after, role, before)
			} else {
				notAbove(t, role, before, role, after)
			}
		}
		for i := range exposures(&before) {
			after := before
			*exposures(&after)[i]++
			notAbove(t, role, after, role, before)
		}
		before.Dormant = false
		after := before
		after.Dormant = true
		notAbove(t, role, after, role, before)
	})
}

func TestNoAgeingOfBadSignalsLowersAScore(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		role, before := rapid.SampledFrom(roles).Draw(t, "role"), anySignals(t)
		for i, events := range allEvents(&before)[:numBad] {
			if len(*events) == 0 {
				continue
			}
			after := before
			aged := slices.Clone(*events)
			at := rapid.IntRange(0, len(aged)-1).Draw(t, "which")
			aged[at] = aged[at].AddDays(-rapid.IntRange(1, 30).Draw(t, "days"))
			*allEvents(&after)[i] = aged
			notAbove(t, role, before, role, after)
		}
		for _, events := range allEvents(&before)[numBad:] {
			*events = nil
		}
		now, later := domain.Assess(role, before, today), domain.Assess(role, before, today.AddDays(1))
		if later.Score < now.Score {
			t.Fatalf("%d fell to %d overnight", now.Score, later.Score)
		}
	})
}

// notAbove holds that the first role and signals do not score above the second.
func notAbove(t *rapid.T, lowRole domain.Role, low domain.RiskSignals, highRole domain.Role, high domain.RiskSignals) {
	t.Helper()
	a, b := domain.Assess(lowRole, low, today), domain.Assess(highRole, high, today)
	if a.Score > b.Score {
		t.Fatalf("%s with %+v scores %d, above %d of %s with %+v", lowRole, low, a.Score, b.Score, highRole, high)
	}
}
