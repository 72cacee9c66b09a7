package api

import (
	"partnerapi/domain"
	"partnerapi/v2/op"
)

// UserRisk is a user's risk score with its factors.
type UserRisk struct {
	Score      int             `json:"score" doc:"Risk score, from 0 to 1000. Higher scores are safer."`
	Grade      domain.Grade    `json:"grade" doc:"Grade of the score: A (800 to 1000), B (700 to 799), C (600 to 699), D (400 to 599) or F (below 400)."`
	Baseline   int             `json:"baseline" doc:"Starting score for the user's role, before any signals."`
	Role       domain.Role     `json:"role" doc:"The user's risk role, which determines the weights of the signals."`
	Tallies    domain.Tallies  `json:"tallies" doc:"Raw counts for the last 12 months. In the score, recent signals carry more weight."`
	Factors    []domain.Factor `json:"factors" doc:"Contribution of each signal, with the role's multiplier applied. The baseline and all deltas add up to the score."`
	ComputedAt domain.Time     `json:"computed_at" doc:"When the score was computed."`

	// Client is the client whose budget the call counts against.
	Client domain.ClientID `json:"-"`
}

// BudgetClient returns the client whose budget the call counts against.
func (r UserRisk) BudgetClient() domain.ClientID { return r.Client }

// ClientRisk is the risk of a client's active users as a group.
type ClientRisk struct {
	AverageScore  int                      `json:"average_score" doc:"Rounded average score of the active users, from 0 to 1000."`
	Grade         domain.Grade             `json:"grade" doc:"Grade of the average score: A (800 to 1000), B (700 to 799), C (600 to 699), D (400 to 599) or F (below 400)."`
	HighRiskUsers int                      `json:"high_risk_users" doc:"Number of active users graded D or F."`
	Distribution  domain.GradeDistribution `json:"distribution" doc:"Number of active users per grade."`
	ByRole        []domain.RoleRisk        `json:"by_role" doc:"User counts and average scores by risk role."`
	TopFactors    []domain.FactorTotal     `json:"top_factors" doc:"The factors with the largest effect on the scores, largest total first."`
	History       []domain.AverageOn       `json:"history" doc:"Daily averages for the last 90 days, oldest first. Days without an average are omitted."`
	ComputedAt    domain.Time              `json:"computed_at" doc:"When the snapshot was computed; at most 5 minutes ago."`

	// Client is the client whose budget the call counts against.
	Client domain.ClientID `json:"-"`
}

// BudgetClient returns the client whose budget the call counts against.
func (r ClientRisk) BudgetClient() domain.ClientID { return r.Client }

// The operations on risk scores.
var (
	GetClientRisk = op.Declare[GetClientRiskInput, ClientRisk](op.Meta{
		ID: "clients.risk", Tag: "risk", Method: "GET", Path: "/clients/:client_id/risk", Scope: domain.Read, Since: op.V2_1,
		Status: 200, PerClient: 20, Summary: "Get a client's risk",
		Description: "Returns a snapshot of the active users' scores: their average, distribution by grade and role, top factors, and " +
			"daily averages for the last 90 days. The snapshot can be up to 5 minutes old.",
	})
	GetUserRisk = op.Declare[GetUserRiskInput, UserRisk](op.Meta{
		ID: "users.risk", Tag: "risk", Method: "GET", Path: "/users/:user_id/risk", Scope: domain.Read, Since: op.V2_1,
		Status: 200, PerClient: 120, Summary: "Get a user's risk score",
		Description: "Returns the user's score with the baseline, the raw counts and the contribution of each factor. To read the scores " +
			"of many users, list the client's users instead.",
	})
)

// GetUserRiskInput asks for one user's risk.
type GetUserRiskInput struct{ Path UserPath }

// GetClientRiskInput asks for one client's risk.
type GetClientRiskInput struct{ Path ClientPath }
