package domain

import "math"

// RiskModelVersion names the model of this file. It changes with any change
// that can give another score for the same signals, so that stored scores of an
// older model are recognised.
const RiskModelVersion = 2

// Risk scores lie between these, and more is better.
const (
	minScore = 0
	maxScore = 1000
)

// Grade is a risk score in a letter, A the best.
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

// GradesUpward lists the grades, worst first. GradeFloors are the least scores of
// all but the worst of them.
var (
	GradesUpward = []Grade{GradeF, GradeD, GradeC, GradeB, GradeA}
	GradeFloors  = []int{400, 600, 700, 800}
)

// GradeOf returns the grade of a score, of a user or an average.
func GradeOf(score int) Grade {
	n := 0
	for n < len(GradeFloors) && score >= GradeFloors[n] {
		n++
	}
	return GradesUpward[n]
}

// FactorKey names one part of a score, such as phishing_clicks.
type FactorKey string

// Where each factor stands in Deltas.
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

	// NumFactors is how many factors there are.
	NumFactors
)

// factorTable gives each place in Deltas its key and label.
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
	boundsAt:           {Key: "bounds", Label: "Limit of the scale"}, // what the clamp to 0..1000 took or gave
}

// Values lists the factors in their canonical order, which is that of Deltas.
func (FactorKey) Values() []string {
	keys := make([]string, NumFactors)
	for i, factor := range factorTable {
		keys[i] = string(factor.Key)
	}
	return keys
}

// Factor is what one kind of signal adds to a score, the weight of the role
// applied.
type Factor struct {
	Key   FactorKey `json:"key" doc:"Key of the factor, such as phishing_clicks."`
	Label string    `json:"label" doc:"The factor, for people."`
	Delta int       `json:"delta" doc:"What the factor adds to the score; negative where it lowers it."`
}

// Deltas holds what every factor adds to a score, in the order of
// FactorKey.Values. A user's are between -420 and 818; totals over users are in
// the same order.
type Deltas [NumFactors]int

// Factors lists the factors that are not 0, in their canonical order.
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

// Sum returns what all factors together add to the baseline.
func (d Deltas) Sum() (sum int) {
	for _, delta := range d {
		sum += delta
	}
	return sum
}

// RiskSignals is all that a user's score is made from. Lists hold the UTC day of
// each event, in any order; events that are too old to count may be left in.
//
// A simulated email counts in every list that it reached: one whose credentials
// were submitted is in Credentials and in Clicks, and in Reports as well if it
// was reported. Automated opens and clicks (decisions 7.3) are in none.
type RiskSignals struct {
	Clicks      []Date
	Attachments []Date
	Credentials []Date
	Reports     []Date

	// Real emails that the user reported, by what they turned out to be.
	RealPhishing []Date
	RealPending  []Date // not classified yet
	RealHarmless []Date // spam or safe: tallied, but without weight

	Completions []Date // of courses
	Dormant     bool   // see DormantOnTraining

	// Exposures without a resolved_at, however old, by severity.
	UnresolvedCritical int
	UnresolvedHigh     int
	UnresolvedMedium   int

	// Exposures first seen within 12 months. They are shown and not weighed.
	SeenPasswordActive   int // critical, unresolved
	SeenPasswordResolved int // critical, resolved
	SeenPII              int // high, unresolved
	SeenBasic            int // medium, unresolved
}

// Tallies are the raw counts behind a score over the trailing 12 months, as a
// user's risk shows them.
type Tallies struct {
	CoursesCompleted         int  `json:"courses_completed" doc:"Number of courses completed."`
	PhishingClicks           int  `json:"phishing_clicks" doc:"Number of simulated mails clicked."`
	PhishingReports          int  `json:"phishing_reports" doc:"Number of simulated mails reported."`
	CredentialSubmissions    int  `json:"credential_submissions" doc:"Number of simulated mails that led to submitted credentials."`
	AttachmentsOpened        int  `json:"attachments_opened" doc:"Number of simulated mails whose attachment was opened."`
	RealPhishReported        int  `json:"real_phish_reported" doc:"Number of real mails reported, whatever they turned out to be."` // whatever they turned out to be
	PasswordBreachesActive   int  `json:"password_breaches_active" doc:"Number of unresolved exposures of passwords."`
	PasswordBreachesResolved int  `json:"password_breaches_resolved" doc:"Number of resolved exposures of passwords."`
	PIIBreaches              int  `json:"pii_breaches" doc:"Number of unresolved exposures of sensitive personal data."`
	BasicBreaches            int  `json:"basic_breaches" doc:"Number of unresolved exposures of basic account data."`
	DormantOnTraining        bool `json:"dormant_on_training" doc:"Whether a course is incomplete and none was completed for 180 days."`
}

// Assessment is a user's risk on one day. Baseline plus the sum of the deltas
// is the score, exactly.
type Assessment struct {
	Score    int // 0..1000
	Grade    Grade
	Baseline int // where users of this role start
	Role     Role
	Tallies  Tallies
	Deltas   Deltas
}

// Baseline returns the score of a user of this role of whom nothing is known. A
// role that is none of the five counts as standard.
func (r Role) Baseline() int {
	switch r {
	case RoleHR:
		return 720
	case RoleFinance, RoleExecutive:
		return 700
	case RoleAdmin:
		return 680
	default:
		return 750
	}
}

// riskPercent returns how heavily bad signals weigh for the role. Percent in
// integers and not 1.15: 50 times the float64 nearest to 1.15 is below 57.5 and
// would be rounded the wrong way.
func (r Role) riskPercent() float64 {
	switch r {
	case RoleHR:
		return 115
	case RoleFinance:
		return 125
	case RoleExecutive:
		return 130
	case RoleAdmin:
		return 140
	default:
		return 100
	}
}

// delta turns points, the cap applied, into what they add to the score of a
// user of this role.
func (r Role) delta(points float64) int {
	if points < 0 {
		points = points * r.riskPercent() / 100
	}
	return roundHalfAway(points)
}

// roundHalfAway rounds to the nearest integer, halves away from zero. A value
// that misses a half by no more than the weights' rounding can explain counts as
// that half: 60 n^1.25 of one click 216 days ago is 7.5, but n is irrational and
// comes out a little low. It is monotonic.
func roundHalfAway(points float64) int {
	const slack = 1e-9
	return int(math.Copysign(math.Floor(math.Abs(points)+0.5+slack), points))
}

// The ages in days that the model knows.
const (
	oldestEvent      = 365 // an older event counts for nothing
	conductHalfLife  = 90  // of clicks, submissions and reports
	trainingHalfLife = 180 // of completed courses
	// Dormancy is after how many days without a completed course a user is dormant.
	Dormancy = 180
	// SettlingIn is how long a new user is not called dormant.
	SettlingIn = 60
)

// ageWeights holds what an event of each age counts, in units of 1/fullWeight.
// Sums of integers are exact, so a score depends on nothing but the signals: not
// on their order, and not on the machine.
type ageWeights [oldestEvent + 1]uint64

// fullWeight leaves room for a million events of today in a uint64.
const fullWeight = 1 << 44

var (
	conductWeights  = halving(conductHalfLife)
	trainingWeights = halving(trainingHalfLife)
)

func halving(halfLife float64) (table ageWeights) {
	for age := range table {
		table[age] = uint64(math.Round(fullWeight * math.Exp2(-float64(age)/halfLife)))
	}
	return table
}

// count adds up events: how many are at most a year old, and what they weigh
// in units of 1/fullWeight. An event in the future counts as one of today.
func (w *ageWeights) count(events []Date, today Date) (n int, weight uint64) {
	for _, day := range events {
		if age := max(day.DaysUntil(today), 0); age <= oldestEvent {
			n++
			weight += w[age]
		}
	}
	return n, weight
}

// DormantOnTraining reports whether a user neglects training: a course is assigned and
// not completed, nothing was completed in the last 180 days, and the user was created
// more than 60 days ago.
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

// Assess scores a user by the model of decisions 6. It never fails; negative numbers
// of unresolved exposures count as 0.
//
// Every step from a signal to the score is monotonic, floating point included:
// products and square roots are rounded correctly, which keeps order, and that
// is why n^1.25 is n times a fourth root and not math.Pow.
func Assess(role Role, s RiskSignals, today Date) Assessment {
	a := Assessment{Baseline: role.Baseline(), Role: role}
	a.addConduct(s, today)
	a.addTraining(s, today)
	a.addExposures(s)

	raw := a.Baseline + a.Deltas.Sum()
	a.Score = min(max(raw, minScore), maxScore)
	a.Deltas[boundsAt] = a.Score - raw
	a.Grade = GradeOf(a.Score)
	return a
}

// addConduct weighs what the user did with emails, simulated and real.
func (a *Assessment) addConduct(s RiskSignals, today Date) {
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
	realPhish := count(s.RealPhishing, &t.RealPhishReported) + count(s.RealPending, &t.RealPhishReported)/2
	count(s.RealHarmless, &t.RealPhishReported)

	a.Deltas[clicksAt] = a.Role.delta(max(-60*clicks*math.Sqrt(math.Sqrt(clicks)), -300))
	a.Deltas[attachmentsAt] = a.Role.delta(max(-80*attachments, -240))
	a.Deltas[credentialsAt] = a.Role.delta(max(-50*credentials, -150))
	a.Deltas[reportsAt] = a.Role.delta(min(20*reports, 120))
	a.Deltas[realPhishAt] = a.Role.delta(min(25*realPhish, 100))
}

// addTraining weighs the courses that the user completed, or did not.
func (a *Assessment) addTraining(s RiskSignals, today Date) {
	completed, weight := trainingWeights.count(s.Completions, today)
	a.Tallies.CoursesCompleted = completed
	a.Deltas[coursesAt] = a.Role.delta(min(12*float64(weight)/fullWeight, 150))

	a.Tallies.DormantOnTraining = s.Dormant
	if s.Dormant {
		a.Deltas[dormantAt] = a.Role.delta(-75)
	}
}

// addExposures weighs the user's data that is known to be in breaches.
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
