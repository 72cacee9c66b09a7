package db

import (
	"context"
	"time"

	"partnerapi/db/pg"
	"partnerapi/domain"
)

// historyDays is how many days a client's risk looks back, today included.
const historyDays = 90

// clientRiskRow is what a client's risk is made of, as it was stored with the
// client's summary.
type clientRiskRow struct {
	SummarizedAt  time.Time
	AverageScore  int
	HighRiskUsers int
	Grades        []gradeCount
	FactorTotals  []int `bun:",array"`
	FactorUsers   []int `bun:",array"`
	History       []domain.AverageOn
}

// gradeCount counts the active users of a role and a grade, and adds up their
// scores.
type gradeCount struct {
	Role   domain.Role  `json:"role"`
	Grade  domain.Grade `json:"grade"`
	Users  int          `json:"users"`
	Scores int          `json:"scores"`
}

// Risk reads the risk of the client's active users together: one snapshot, as of
// the client's summary (decisions 4). A client that was never summarized has that
// of a client without users.
func (t *Tenant) Risk(ctx context.Context) (domain.ClientRisk, error) {
	row, err := pg.One[clientRiskRow](ctx, t.db, "read a client's risk", pg.Prepared(pg.SQL(`
		SELECT c.summarized_at, c.average_score, c.high_risk_users, coalesce(r.grades, '[]') AS grades,
			coalesce(r.factor_totals, '{}') AS factor_totals, coalesce(r.factor_users, '{}') AS factor_users,
			coalesce((
				SELECT json_agg(h ORDER BY h.date) FROM (
					SELECT day AS date, average_score FROM risk_history WHERE client_id = c.id AND day > ?1
				) AS h), '[]') AS history
		FROM clients AS c LEFT JOIN client_risks AS r ON r.client_id = c.id WHERE c.id = ?0`,
		t.ID, domain.DateOf(t.db.Now()).AddDays(-historyDays))))
	return row.risk(), err
}

func (r *clientRiskRow) risk() domain.ClientRisk {
	risk := domain.ClientRisk{
		AverageScore: r.AverageScore, Grade: domain.GradeOf(r.AverageScore), HighRiskUsers: r.HighRiskUsers,
		ByRole: []domain.RoleRisk{}, History: r.History, ComputedAt: r.SummarizedAt,
	}
	var totals domain.Deltas
	var users [domain.NumFactors]int
	copy(totals[:], r.FactorTotals) // a newer model may know more
	copy(users[:], r.FactorUsers)
	risk.TopFactors = domain.FactorTotals(totals, users)

	byRole := map[domain.Role]gradeCount{}
	for _, g := range r.Grades {
		risk.Distribution.Add(g.Grade, g.Users)
		sum := byRole[g.Role]
		byRole[g.Role] = gradeCount{Users: sum.Users + g.Users, Scores: sum.Scores + g.Scores}
	}
	for _, name := range domain.Role("").Values() {
		role := domain.Role(name)
		if sum := byRole[role]; sum.Users > 0 {
			risk.ByRole = append(risk.ByRole, domain.RoleRisk{
				Role: role, Users: sum.Users, AverageScore: domain.AverageScore(sum.Scores, sum.Users),
			})
		}
	}
	return risk
}
