package report

import (
	"context"

	"partnerapi/db"
	"partnerapi/domain"
)

// highestRisks is how many users a risk overview names.
const highestRisks = 25

func (m *Renderer) riskOverview(ctx context.Context, t *db.Tenant, _ domain.ReportPeriod) ([]Section, error) {
	risk, err := t.Risk(ctx)
	if err != nil {
		return nil, err
	}
	worst, err := t.Users(ctx, domain.UserFilter{Status: domain.Active, Sort: "risk_score"},
		domain.Window{Limit: highestRisks})
	if err != nil {
		return nil, err
	}

	d := risk.Distribution
	return []Section{
		section("Summary", one(Text(standingText(t))), one(Figures{
			scoreFigure(t), highRiskFigure(t), countFigure("Active users", t.ActiveUsers, ""),
			onTrackFigure(t),
		}), scoreChart(t, risk.History)),
		section("Distribution", donut("Users by grade", domain.Grade("").Values(), gradeTones, d.A, d.B, d.C, d.D, d.F),
			bars("Average score by role", "", risk.ByRole,
				func(r *domain.RoleRisk) string { return word(r.Role) },
				func(r *domain.RoleRisk) float64 { return float64(r.AverageScore) }),
			one(gradeTable(d, t.ActiveUsers)), one(roleTable(risk.ByRole))),
		section("What moves the scores", one(Text("Points are added to or taken from the scores of all active users "+
			"together.")), one(factorTable(risk.TopFactors))),
		section("Users of the highest risk", one(worstTable(worst.Rows))),
	}, nil
}

func gradeTable(d domain.GradeDistribution, users int) Table {
	type grade struct {
		grade  domain.Grade
		scores string
		users  int
	}
	list := []grade{
		{domain.GradeA, "800 to 1,000", d.A}, {domain.GradeB, "700 to 799", d.B}, {domain.GradeC, "600 to 699", d.C},
		{domain.GradeD, "400 to 599", d.D}, {domain.GradeF, "0 to 399", d.F},
	}
	return Table{
		Title: "Users and grades",
		Columns: []Column{{Title: "Grade"}, {Title: "Scores", Width: 2}, {Title: "Users", Kind: IntegerColumn},
			{Title: "Share", Kind: PercentColumn}},
		Rows: cellsOf(listed(list), func(g *grade) []any {
			return []any{string(g.grade), g.scores, g.users, rateOf(g.users, users)}
		}),
	}
}

func roleTable(roles []domain.RoleRisk) Table {
	return Table{
		Title: "Roles", Empty: "The client has no active users.",
		Columns: []Column{{Title: "Role", Width: 2}, {Title: "Users", Kind: IntegerColumn},
			{Title: "Average score", Kind: IntegerColumn}, {Title: "Grade"}},
		Rows: cellsOf(listed(roles), func(r *domain.RoleRisk) []any {
			return []any{word(r.Role), r.Users, r.AverageScore, string(domain.GradeOf(r.AverageScore))}
		}),
	}
}

func factorTable(factors []domain.FactorTotal) Table {
	return Table{
		Title: "Factors", Empty: "Nothing has moved the score of an active user.",
		Columns: []Column{{Title: "Factor", Width: 4}, {Title: "Users", Kind: IntegerColumn},
			{Title: "Points", Kind: IntegerColumn}},
		Rows: cellsOf(listed(factors), func(f *domain.FactorTotal) []any { return []any{f.Label, f.Users, f.Delta} }),
	}
}

func worstTable(users []domain.User) Table {
	return Table{
		Title: "Highest risk", Empty: "The client has no active users.",
		Columns: personColumns(Column{Title: "Role"}, Column{Title: "Score", Kind: IntegerColumn}, Column{Title: "Grade"},
			Column{Title: "Overdue courses", Kind: IntegerColumn}, Column{Title: "Clicks in a year", Kind: IntegerColumn}),
		Rows: cellsOf(listed(users), func(u *domain.User) []any {
			person := domain.Person{FirstName: u.FirstName, LastName: u.LastName, Email: u.Email, Department: u.Department}
			return personCells(&person, word(u.Role), u.Score, string(domain.GradeOf(u.Score)), u.Training.Overdue,
				u.Phishing.ClickedYear)
		}),
	}
}
