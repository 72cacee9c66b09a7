package report

import (
	"context"
	"slices"

	"partnerapi/db"
	"partnerapi/domain"
)

// highestRisks is the maximum number of users in a risk overview.
const highestRisks = 25

// riskOverview returns the contents of a risk overview: scores by grade, role and factor, and the users of the highest
// risk.
func riskOverview(r *reading) []Section {
	t := r.tenant
	risk := current(r, (*db.Tenant).Risk)
	worst := current(r, func(t *db.Tenant, ctx context.Context) (domain.Slice[domain.User], error) {
		return t.Users(ctx, domain.UserFilter{Status: domain.Active, Sort: "risk_score"}, domain.Window{Limit: highestRisks})
	})

	d := risk.Distribution
	return []Section{
		section("Summary", sentences(standingText(t), trainHighRisk(t.Summary.HighRiskUsers)), Figures{
			scoreFigure(t), highRiskFigure(t), countFigure("Active employees", t.ActiveUsers, ""), onTrackFigure(t),
		}, scoreChart(t, risk.History)),
		section("Distribution", donutChart("Users by grade", domain.Grade("").Values(), gradeTones, d.A, d.B, d.C, d.D, d.F),
			barChart("Average score by role", "", risk.ByRole,
				func(r *domain.RoleRisk) string { return enumText(r.Role) },
				func(r *domain.RoleRisk) any { return r.AverageScore }),
			gradeTable(d, t.ActiveUsers), roleTable(risk.ByRole)),
		section("Score factors", Text("The table shows the total points that each factor adds to or subtracts from the scores "+
			"of active employees."), factorTable(risk.TopFactors)),
		section("Employees with the highest risk", highestRiskTable(worst.Rows)),
	}
}

// gradeTable returns a table of the number of users by grade. users is the number of all users.
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
		Title:   "Users and grades",
		Columns: slices.Concat([]Column{{Title: "Grade"}, {Title: "Scores", Width: 2}}, numberColumns("Users", "Share")),
		Rows: listRows(list, func(g *grade) []any {
			return []any{string(g.grade), g.scores, g.users, rateCell(g.users, users)}
		}),
	}
}

// roleTable returns a table of the average scores by role.
func roleTable(roles []domain.RoleRisk) Table {
	return Table{
		Title: "Roles", Empty: "There are no active employees.",
		Columns: slices.Concat([]Column{{Title: "Role", Width: 2}}, numberColumns("Users", "Average score"),
			[]Column{{Title: "Grade"}}),
		Rows: listRows(roles, func(r *domain.RoleRisk) []any {
			return []any{enumText(r.Role), r.Users, r.AverageScore, string(domain.GradeOf(r.AverageScore))}
		}),
	}
}

// factorTable returns a table of the factors of scores.
func factorTable(factors []domain.FactorTotal) Table {
	return Table{
		Title: "Factors", Empty: "No factor affects the score of any active employee.",
		Columns: slices.Concat([]Column{{Title: "Factor", Width: 4}}, numberColumns("Users", "Points")),
		Rows:    listRows(factors, func(f *domain.FactorTotal) []any { return []any{f.Label, f.Users, f.Delta} }),
	}
}

// highestRiskTable returns a table of users, in the order of the list.
func highestRiskTable(users []domain.User) Table {
	return Table{
		Title: "Highest risk", Empty: "There are no active employees.",
		Columns: slices.Concat(personColumns, []Column{{Title: "Role"}, {Title: "Score", Kind: NumberColumn},
			{Title: "Grade"}}, numberColumns("Overdue courses", "Clicks in a year")),
		Rows: listRows(users, func(u *domain.User) []any {
			person := domain.Person{FirstName: u.FirstName, LastName: u.LastName, Email: u.Email, Department: u.Department}
			return personCells(&person, enumText(u.Role), u.Score, string(domain.GradeOf(u.Score)), u.Training.Overdue,
				u.Phishing.ClickedYear)
		}),
	}
}
