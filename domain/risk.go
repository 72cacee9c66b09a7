package domain

import (
	"math"
	"slices"
)

// RiskModelVersion is the version of the model in this file. It must change with every change that can give another
// score for the same signals: stored scores of another version are computed again.
const RiskModelVersion = 2

// The least and the greatest risk score; a greater score is better.
const (
	minScore = 0
	maxScore = 1000
)

// Grade is a risk score as a letter; A is the best.
type Grade string

// The grades, best first.
const (
	GradeA Grade = "A"
	GradeB Grade = "B"
	GradeC Grade = "C"
	GradeD Grade = "D"
	GradeF Grade = "F"
)

// Values lists the grades, best first.
func (Grade) Values() []string { return texts(GradeA, GradeB, GradeC, GradeD, GradeF) }

// GradesUpward lists the grades, worst first. GradeFloors lists the least scores of all grades but the worst, in the
// same order.
var (
	GradesUpward = []Grade{GradeF, GradeD, GradeC, GradeB, GradeA}
	GradeFloors  = []int{400, 600, 700, 800}
)

// GradeOf returns the grade of the score of a user, or of an average score: the best grade whose floor it reaches.
func GradeOf(score int) Grade {
	n := 0
	for n < len(GradeFloors) && score >= GradeFloors[n] {
		n++
	}
	return GradesUpward[n]
}

// Scores returns the range of the grade's scores: the least one, and the one beyond the greatest.
func (g Grade) Scores() (least, beyond int) {
	n := slices.Index(GradesUpward, g)
	least, beyond = minScore, maxScore+1
	if n > 0 {
		least = GradeFloors[n-1]
	}
	if n < len(GradeFloors) {
		beyond = GradeFloors[n]
	}
	return least, beyond
}

// FactorKey is the key of a Factor, such as phishing_clicks.
type FactorKey string

// The index of each factor in Deltas.
const (
	clicksAt = iota
	attachmentsAt
	credentialsAt
	reportsAt
	realPhishAt
	coursesAt
	dormantAt
	passwordBreachesAt
	piiBreachesAt
	basicBreachesAt
	boundsAt

	// NumFactors is the number of factors.
	NumFactors
)

// factorTable holds the key and the label of each factor, by its index in Deltas.
var factorTable = [NumFactors]Factor{
	clicksAt:           {Key: "phishing_clicks", Label: "Simulated phishing links clicked"},
	attachmentsAt:      {Key: "attachments_opened", Label: "Simulated phishing attachments opened"},
	credentialsAt:      {Key: "credential_submissions", Label: "Credentials entered on simulated phishing pages"},
	reportsAt:          {Key: "phishing_reports", Label: "Simulated phishing reported"},
	realPhishAt:        {Key: "real_phish_reported", Label: "Real phishing reported"},
	coursesAt:          {Key: "courses_completed", Label: "Courses completed"},
	dormantAt:          {Key: "dormant_on_training", Label: "Training left unfinished"},
	passwordBreachesAt: {Key: "password_breaches_active", Label: "Passwords exposed in breaches"},
	piiBreachesAt:      {Key: "pii_breaches", Label: "Personal data exposed in breaches"},
	basicBreachesAt:    {Key: "basic_breaches", Label: "Account data exposed in breaches"},
	boundsAt:           {Key: "bounds", Label: "Limit of the scale"}, // the change by the clamp to 0..1000
}

// Values lists the keys of the factors in the order of Deltas.
func (FactorKey) Values() []string {
	keys := make([]string, NumFactors)
	for i, factor := range factorTable {
		keys[i] = string(factor.Key)
	}
	return keys
}

// Factor is the number of points that one kind of signal adds to a score, with the weight of the user's role applied.
type Factor struct {
	Key   FactorKey `json:"key" doc:"Key of the factor, such as phishing_clicks."`
	Label string    `json:"label" doc:"Display name of the factor."`
	Delta int       `json:"delta" doc:"Points that the factor adds to the score; negative if the factor lowers the score."`
}

// Deltas holds the points that each factor adds to a score, in the order of FactorKey.Values. A user's are between -420
// and 818. Sums over several users are Deltas too.
type Deltas [NumFactors]int

// Factors lists the factors with a delta other than 0, in the order of Deltas.
func (d Deltas) Factors() []Factor {
	factors := make([]Factor, 0, NumFactors)
	for i, delta := range d {
		if delta != 0 {
			factor := factorTable[i]
			factor.Delta = delta
			factors = append(factors, factor)
		}
	}
	return factors
}

// Sum returns the sum of all deltas.
func (d Deltas) Sum() (sum int) {
	for _, delta := range d {
		sum += delta
	}
	return sum
}

// RiskSignals is everything that a user's score is computed from, but for the role. Lists hold the UTC day of each
// event, in any order; they may contain events that are too old to count.
//
// A simulated email is in several lists if several events happened to it: after a submission of credentials it is in
// Credentials and in Clicks, and, if it was reported, in Reports as well. Automated opens and clicks (decisions 7.3)
// are in no list.
type RiskSignals struct {
	Clicks      []Date
	Attachments []Date
	Credentials []Date
	Reports     []Date

	// Real emails that the user reported, by their classification.
	RealPhishing []Date
	RealPending  []Date // not classified yet
	RealHarmless []Date // spam or safe: counted in the tallies, but without weight

	Completions []Date // of courses
	Dormant     bool   // see DormantOnTraining

	// Numbers of exposures without a resolved_at, of any age, by severity.
	UnresolvedCritical int
	UnresolvedHigh     int
	UnresolvedMedium   int

	// Numbers of exposures first seen within 12 months. They are in the tallies, and do not affect the score.
	SeenPasswordActive   int // critical, unresolved
	SeenPasswordResolved int // critical, resolved
	SeenPII              int // high, unresolved
	SeenBasic            int // medium, unresolved
}

// Tallies are the numbers of events of the last 12 months that a user's risk shows beside the score.
type Tallies struct {
	CoursesCompleted         int  `json:"courses_completed" doc:"Number of courses completed."`
	PhishingClicks           int  `json:"phishing_clicks" doc:"Number of simulated emails clicked."`
	PhishingReports          int  `json:"phishing_reports" doc:"Number of simulated emails reported."`
	CredentialSubmissions    int  `json:"credential_submissions" doc:"Number of simulated emails that led to submitted credentials."`
	AttachmentsOpened        int  `json:"attachments_opened" doc:"Number of simulated emails whose attachment was opened."`
	RealPhishReported        int  `json:"real_phish_reported" doc:"Number of reported emails that are not simulations, regardless of classification."`
	PasswordBreachesActive   int  `json:"password_breaches_active" doc:"Number of unresolved exposures of passwords and other secrets that give access."`
	PasswordBreachesResolved int  `json:"password_breaches_resolved" doc:"Number of resolved exposures of passwords and other secrets that give access."`
	PIIBreaches              int  `json:"pii_breaches" doc:"Number of unresolved exposures of sensitive personal data."`
	BasicBreaches            int  `json:"basic_breaches" doc:"Number of unresolved exposures of basic account data."`
	DormantOnTraining        bool `json:"dormant_on_training" doc:"Whether the user has an incomplete course and has not completed any course for 180 days. Always false for the first 60 days after the user is created."`
}

// Assessment is a user's risk on one day. Score is exactly Baseline + Deltas.Sum().
type Assessment struct {
	Score    int // 0..1000
	Grade    Grade
	Baseline int // the score of the role without any signals
	Role     Role
	Tallies  Tallies
	Deltas   Deltas
}

// roleRisks holds what depends on the role: the score of a user without any signals, and the weight of bad signals in
// percent. The weight is not a factor such as 1.15, because 50 times the float64 nearest to 1.15 is below 57.5 and
// would be rounded to 57.
var roleRisks = map[Role]struct {
	baseline int
	percent  float64
}{
	RoleStandard:  {750, 100},
	RoleHR:        {720, 115},
	RoleFinance:   {700, 125},
	RoleExecutive: {700, 130},
	RoleAdmin:     {680, 140},
}

// orStandard returns the role, or RoleStandard if the role is unknown.
func (r Role) orStandard() Role {
	if _, ok := roleRisks[r]; ok {
		return r
	}
	return RoleStandard
}

// Baseline returns the score of a user of this role without any signals. An unknown role counts as standard.
func (r Role) Baseline() int { return roleRisks[r.orStandard()].baseline }

// delta returns the rounded delta of a factor for a user of this role. points is within the factor's bounds; negative
// points are multiplied by the weight of the role.
func (r Role) delta(points float64) int {
	if points < 0 {
		points = points * roleRisks[r.orStandard()].percent / 100
	}
	return roundHalfAway(points)
}

// roundHalfAway rounds to the nearest integer, halves away from zero. A magnitude up to 1e-9 below a half counts as
// that half, because float64 weights can be slightly too low: a click of 216 days ago has the weight n = 2^(-216/90),
// and 60·n^1.25 is exactly 7.5, but the float64 result is slightly less. roundHalfAway is monotonic.
func roundHalfAway(points float64) int {
	const slack = 1e-9
	return int(math.Copysign(math.Floor(math.Abs(points)+0.5+slack), points))
}

// The periods of the model, in days.
const (
	oldestEvent      = 365 // older events do not count
	conductHalfLife  = 90  // of clicks, submissions and reports
	trainingHalfLife = 180 // of completed courses
	// Dormancy is the number of days without a completed course after which a user is dormant.
	Dormancy = 180
	// SettlingIn is the number of days for which a new user is never dormant.
	SettlingIn = 60
)

// ageWeights holds the weight of an event of each age in days, in units of 1/fullWeight. Sums of integers are exact, so
// a score depends neither on the order of the signals nor on the machine.
type ageWeights [oldestEvent + 1]uint64

// fullWeight leaves room for a million events of today in a uint64.
const fullWeight = 1 << 44

var (
	conductWeights  = decayWeights(conductHalfLife)
	trainingWeights = decayWeights(trainingHalfLife)
)

// decayWeights returns weights that start with fullWeight and halve every halfLife days.
func decayWeights(halfLife float64) (table ageWeights) {
	for age := range table {
		table[age] = uint64(math.Round(fullWeight * math.Exp2(-float64(age)/halfLife)))
	}
	return table
}

// count returns the number of events that are at most oldestEvent days old, and the sum of their weights in units of
// 1/fullWeight. Events in the future count as events of today.
func (w *ageWeights) count(events []Date, today Date) (n int, weight uint64) {
	for _, day := range events {
		if age := max(day.DaysUntil(today), 0); age <= oldestEvent {
			n++
			weight += w[age]
		}
	}
	return n, weight
}

// DormantOnTraining reports whether a user neglects training: the user has an incomplete course, completed none in the
// last 180 days, and was created more than 60 days ago.
func DormantOnTraining(incomplete bool, completions []Date, created, today Date) bool {
	if !incomplete || created.DaysUntil(today) <= SettlingIn {
		return false
	}
	for _, day := range completions {
		if day.DaysUntil(today) <= Dormancy {
			return false
		}
	}
	return true
}

// Assess scores a user by the model of decisions 6. It never fails; negative numbers of unresolved exposures count as
// 0.
//
// Every step from a signal to the score is monotonic, in floating point as well, because products and square roots are
// correctly rounded. math.Pow is not: n^1.25 is therefore computed as n times the square root of the square root of n.
func Assess(role Role, s RiskSignals, today Date) Assessment {
	a := Assessment{Baseline: role.Baseline(), Role: role}
	a.addConduct(s, today)
	a.addTraining(s, today)
	a.addExposures(s)

	raw := a.Baseline + a.Deltas.Sum()
	a.Score = min(max(raw, minScore), maxScore)
	a.Deltas[boundsAt] = a.Score - raw // what the limits of the scale changed
	a.Grade = GradeOf(a.Score)
	return a
}

// addConduct sets the deltas and tallies of the user's clicks, opened attachments, submitted credentials and reports,
// of simulated and real emails.
func (a *Assessment) addConduct(s RiskSignals, today Date) {
	// count adds the number of recent events to tally, and returns their weight, 1 for an event of today.
	count := func(events []Date, tally *int) float64 {
		n, weight := conductWeights.count(events, today)
		*tally += n
		return float64(weight) / fullWeight
	}
	t := &a.Tallies
	clicks := count(s.Clicks, &t.PhishingClicks)
	attachments := count(s.Attachments, &t.AttachmentsOpened)
	credentials := count(s.Credentials, &t.CredentialSubmissions)
	reports := count(s.Reports, &t.PhishingReports)
	// Reports of unclassified emails weigh half. Those of harmless emails are only tallied.
	realPhish := count(s.RealPhishing, &t.RealPhishReported) + count(s.RealPending, &t.RealPhishReported)/2
	count(s.RealHarmless, &t.RealPhishReported)

	a.Deltas[clicksAt] = a.Role.delta(max(-60*clicks*math.Sqrt(math.Sqrt(clicks)), -300)) // -60·clicks^1.25
	a.Deltas[attachmentsAt] = a.Role.delta(max(-80*attachments, -240))
	a.Deltas[credentialsAt] = a.Role.delta(max(-50*credentials, -150))
	a.Deltas[reportsAt] = a.Role.delta(min(20*reports, 120))
	a.Deltas[realPhishAt] = a.Role.delta(min(25*realPhish, 100))
}

// addTraining sets the deltas and tallies of completed courses and of dormancy (decisions 6).
func (a *Assessment) addTraining(s RiskSignals, today Date) {
	completed, weight := trainingWeights.count(s.Completions, today)
	a.Tallies.CoursesCompleted = completed
	a.Deltas[coursesAt] = a.Role.delta(min(12*float64(weight)/fullWeight, 150))

	a.Tallies.DormantOnTraining = s.Dormant
	if s.Dormant {
		a.Deltas[dormantAt] = a.Role.delta(-75)
	}
}

// addExposures sets the deltas and tallies of the user's exposures in breaches. Critical exposures are those of
// passwords, high ones of personal data, medium ones of basic data.
func (a *Assessment) addExposures(s RiskSignals) {
	critical, high, medium := max(s.UnresolvedCritical, 0), max(s.UnresolvedHigh, 0), max(s.UnresolvedMedium, 0)
	a.Deltas[passwordBreachesAt] = a.Role.delta(max(-70*math.Sqrt(float64(critical)), -200))
	a.Deltas[piiBreachesAt] = a.Role.delta(max(-20*float64(high), -80))
	a.Deltas[basicBreachesAt] = a.Role.delta(max(-5*float64(medium), -25))

	t := &a.Tallies
	t.PasswordBreachesActive = s.SeenPasswordActive
	t.PasswordBreachesResolved = s.SeenPasswordResolved
	t.PIIBreaches = s.SeenPII
	t.BasicBreaches = s.SeenBasic
}
