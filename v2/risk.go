package v2

import (
	"context"

	"partnerapi/domain"
	"partnerapi/v2/op"
)

// UserRisk is a user's score with what it is made of.
type UserRisk struct {
	Score      int             `json:"score"`
	Grade      domain.Grade    `json:"grade"`
	Baseline   int             `json:"baseline" doc:"Where the score of the user's role starts."`
	Role       domain.Role     `json:"role"`
	Tallies    domain.Tallies  `json:"tallies" doc:"Raw counts over the trailing 12 months."`
	Factors    []domain.Factor `json:"factors" doc:"What each signal adds, the role's multiplier applied. Baseline and deltas add up to the score."`
	ComputedAt op.Time         `json:"computed_at"`

	client domain.ClientID
}

// BudgetClient is the client that a call is charged to.
func (r UserRisk) BudgetClient() domain.ClientID { return r.client }

func userRiskOf(r domain.UserRisk) UserRisk {
	return UserRisk{
		Score: r.Score, Grade: r.Grade, Baseline: r.Baseline, Role: r.Role, Tallies: r.Tallies,
		Factors: r.Deltas.Factors(), ComputedAt: op.At(r.ComputedAt),
	}
}

// ClientRisk is the risk of a client's active users together.
type ClientRisk struct {
	AverageScore  int                      `json:"average_score"`
	Grade         domain.Grade             `json:"grade"`
	HighRiskUsers int                      `json:"high_risk_users" doc:"Active users graded D or F."`
	Distribution  domain.GradeDistribution `json:"distribution" doc:"Active users per grade."`
	ByRole        []domain.RoleRisk        `json:"by_role"`
	TopFactors    []domain.FactorTotal     `json:"top_factors" doc:"What moves the scores most, by the size of its total."`
	History       []domain.AverageOn       `json:"history" doc:"Of the last 90 days those on which it was computed, oldest first."`
	ComputedAt    op.Time                  `json:"computed_at"`

	client domain.ClientID
}

// BudgetClient is the client that a call is charged to.
func (r ClientRisk) BudgetClient() domain.ClientID { return r.client }

func (a *API) declareRisk() {
	a.GetClientRisk = op.Add(&a.Set, op.Meta{
		ID: "clients.risk", Method: "GET", Path: "/clients/:client_id/risk", Scope: domain.Read, Since: op.V2_1, Status: 200, PerClient: 20,
		Summary: "Read the risk of a client's users",
	}, a.getClientRisk)
	a.GetUserRisk = op.Add(&a.Set, op.Meta{
		ID: "users.risk", Method: "GET", Path: "/users/:user_id/risk", Scope: domain.Read, Since: op.V2_1, Status: 200, PerClient: 120,
		Summary: "Read a user's risk score and what it is made of",
	}, a.getUserRisk)
}

// GetUserRisk asks for one user's risk.
type GetUserRisk struct {
	Path userPath
}

func (a *API) getUserRisk(ctx context.Context, in *GetUserRisk) (*UserRisk, error) {
	u, err := a.db.User(ctx, in.Path.UserID)
	if err != nil {
		return nil, err
	}
	risk, err := u.Risk(ctx)
	if err != nil {
		return nil, err
	}
	out := userRiskOf(risk)
	out.client = u.Client
	return &out, nil
}

// GetClientRisk asks for one client's risk.
type GetClientRisk struct {
	Path clientPath
}

func (a *API) getClientRisk(ctx context.Context, in *GetClientRisk) (*ClientRisk, error) {
	t, err := a.db.FreshTenant(ctx, in.Path.ClientID)
	if err != nil {
		return nil, err
	}
	r, err := t.Risk(ctx)
	if err != nil {
		return nil, err
	}
	return &ClientRisk{
		AverageScore: r.AverageScore, Grade: r.Grade, HighRiskUsers: r.HighRiskUsers,
		Distribution: r.Distribution, ByRole: r.ByRole, TopFactors: r.TopFactors, History: r.History,
		ComputedAt: op.At(r.ComputedAt), client: t.ID,
	}, nil
}
