package domain

import (
	"cmp"
	"slices"
	"time"
)

// HighRiskBelow is the score below which a user is of high risk: graded D or F.
const HighRiskBelow = 600

// AverageScore returns the average score of a number of users, given the sum of their scores, rounded half up. Without
// users it returns the baseline of a standard user (decisions 3.7, 6).
func AverageScore(sum, users int) int {
	if users == 0 {
		return RoleStandard.Baseline()
	}
	return (2*sum + users) / (2 * users)
}

// ClientRisk is the risk of all active users of a client.
type ClientRisk struct {
	AverageScore  int
	Grade         Grade
	HighRiskUsers int
	Distribution  GradeDistribution
	// ByRole has an element for each role of a user, in the order of Role.Values.
	ByRole []RoleRisk
	// TopFactors has an element for each factor that affects a user's score, the largest total first.
	TopFactors []FactorTotal
	// History has the last average of each day of the last 90 days, the oldest first. Days without one are omitted.
	History    []AverageOn
	ComputedAt time.Time
}

// GradeDistribution counts users by grade.
type GradeDistribution struct {
	A int `json:"A" doc:"Number of users with a score of 800 or higher."`
	B int `json:"B" doc:"Number of users with a score from 700 to 799."`
	C int `json:"C" doc:"Number of users with a score from 600 to 699."`
	D int `json:"D" doc:"Number of users with a score from 400 to 599."`
	F int `json:"F" doc:"Number of users with a score below 400."`
}

// Add adds a number of users to the count of a grade.
func (d *GradeDistribution) Add(grade Grade, users int) {
	switch grade {
	case GradeA:
		d.A += users
	case GradeB:
		d.B += users
	case GradeC:
		d.C += users
	case GradeD:
		d.D += users
	default:
		d.F += users
	}
}

// RoleRisk is the risk of the users of one role.
type RoleRisk struct {
	Role         Role `json:"role" doc:"The risk role."`
	Users        int  `json:"users" doc:"Number of active users with this role."`
	AverageScore int  `json:"average_score" doc:"Rounded average score of the active users with this role."`
}

// FactorTotal is the sum of a factor over the scores of all users, and the number of users whom it affects.
type FactorTotal struct {
	Factor
	Users int `json:"users" doc:"Number of users affected by the factor."`
}

// AverageOn is the average score on a day, and the number of users.
type AverageOn struct {
	Date         Date `json:"date" doc:"The day (UTC)."`
	AverageScore int  `json:"average_score" doc:"Rounded average score of the active users on that day."`
	ActiveUsers  *int `json:"active_users" since:"2.4" doc:"Number of active users at the last count of the day. Null for days before counting began."`
}

// FactorTotals returns the factors that affect users, ordered by descending absolute value of their total and then in
// the order of factorTable. totals and users are in the order of factorTable.
func FactorTotals(totals Deltas, users [NumFactors]int) []FactorTotal {
	out := make([]FactorTotal, 0, NumFactors)
	for i, factor := range factorTable {
		if users[i] > 0 {
			factor.Delta = totals[i]
			out = append(out, FactorTotal{Factor: factor, Users: users[i]})
		}
	}
	slices.SortStableFunc(out, func(a, b FactorTotal) int { return cmp.Compare(magnitude(b.Delta), magnitude(a.Delta)) })
	return out
}

// magnitude returns the absolute value of n.
func magnitude(n int) int { return max(n, -n) }
