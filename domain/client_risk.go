package domain

import (
	"cmp"
	"slices"
	"time"
)

// HighRiskBelow is the score below which a user is of high risk: graded D or F.
const HighRiskBelow = 600

// AverageScore is the average of the scores of a number of users, given their sum:
// rounded half up, and the baseline of a standard user where there are none
// (decisions 3.7, 6).
func AverageScore(sum, users int) int {
	if users == 0 {
		return RoleStandard.Baseline()
	}
	return (2*sum + users) / (2 * users)
}

// ClientRisk is the risk of a client's active users together.
type ClientRisk struct {
	AverageScore  int
	Grade         Grade
	HighRiskUsers int
	Distribution  GradeDistribution
	// ByRole has the roles that users have, in the order of Role.Values.
	ByRole []RoleRisk
	// TopFactors lists every factor that affects a user's score, the largest total
	// first.
	TopFactors []FactorTotal
	// History has the last average of each of the last 90 days on which one was
	// computed, oldest first.
	History    []AverageOn
	ComputedAt time.Time
}

// GradeDistribution counts users by grade.
type GradeDistribution struct {
	A int `json:"A" doc:"Number of users with a score from 800."`
	B int `json:"B" doc:"Number of users with a score from 700 to 799."`
	C int `json:"C" doc:"Number of users with a score from 600 to 699."`
	D int `json:"D" doc:"Number of users with a score from 400 to 599."`
	F int `json:"F" doc:"Number of users with a score below 400."`
}

// Add counts users of this grade.
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
	AverageScore int  `json:"average_score" doc:"Their average score, rounded."`
}

// FactorTotal is what one factor adds to the scores of all users, and how many
// users it touches.
type FactorTotal struct {
	Factor
	Users int `json:"users" doc:"Number of users whom the factor affects."`
}

// AverageOn is the average score on one day, and how many users it covers.
type AverageOn struct {
	Date         Date `json:"date" doc:"The day (UTC)."`
	AverageScore int  `json:"average_score" doc:"Average score of the active users on that day, rounded."`
	ActiveUsers  *int `json:"active_users" since:"2.4" doc:"Number of active users when the day was last counted. Null for days before the first that was counted."`
}

// FactorTotals lists the factors that affect users, by the absolute value of their total,
// largest first, then in canonical order. totals and users are in canonical order.
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

func magnitude(n int) int { return max(n, -n) }
