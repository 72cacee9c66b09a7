package report

import (
	"context"
	"strings"

	"partnerapi/db"
	"partnerapi/db/reports"
	"partnerapi/domain"
)

// breachSource credits the source of what is said of breaches, as its licence asks.
const breachSource = "Data on breaches comes from Have I Been Pwned (https://haveibeenpwned.com), under the licence " +
	"CC BY 4.0 (https://creativecommons.org/licenses/by/4.0/)."

// tallyColumns are the numbers of exposures behind other columns.
var tallyColumns = []Column{
	{Title: "Found in period", Kind: IntegerColumn}, {Title: "Resolved in period", Kind: IntegerColumn},
	{Title: "Unresolved", Kind: IntegerColumn}, {Title: "Resolved", Kind: IntegerColumn},
}

func tallyCells(n domain.ExposureTally, before ...any) []any {
	return append(before, n.Found, n.ResolvedWithin, n.Unresolved, n.Resolved)
}

func (m *Renderer) darkWeb(ctx context.Context, t *db.Tenant, p domain.ReportPeriod) ([]Section, error) {
	if !t.DarkWebMonitoring {
		return nil, domain.ErrNoDarkWeb()
	}
	sum, err := t.DarkWeb(ctx)
	if err != nil {
		return nil, err
	}
	severities, err := reports.ExposuresBySeverity(ctx, t, p)
	if err != nil {
		return nil, err
	}
	byMonth, err := reports.ExposureMonths(ctx, t, p)
	if err != nil {
		return nil, err
	}

	months := p.Months()
	byMonth = monthly(months, byMonth, func(r *domain.ExposureMonth) *domain.Date { return &r.Month })
	const none = "No exposure of an active user is known."
	return []Section{
		section("Summary", noUsers(t.ActiveUsers), darkWebFigures(sum, byMonth),
			one(Text("Unresolved and resolved exposures are all that are known of active users, whenever they were found.")),
			one(Text(breachSource))),
		section("By severity", bySeverity(sum, severities),
			one(Text("Critical: passwords. High: sensitive personal data. Medium: basic account data. Low: spam lists."))),
		section("By month", lines("Exposures by month", "", months, byMonth, []string{"Found", "Resolved"},
			func(r *domain.ExposureMonth) []float64 { return []float64{float64(r.Found), float64(r.Resolved)} }),
			one(Table{
				Title: "Exposures per month",
				Columns: []Column{{Title: "Month"}, {Title: "Found", Kind: IntegerColumn},
					{Title: "Resolved", Kind: IntegerColumn}},
				Rows: cellsOf(listed(byMonth), func(r *domain.ExposureMonth) []any {
					return []any{monthText(r.Month), r.Found, r.Resolved}
				}),
			})),
		section("By breach", one(Table{
			Title: "Exposures by breach", Empty: none,
			Columns: append([]Column{{Title: "Breach", Width: 3}, {Title: "Domain", Width: 3},
				{Title: "Date", Kind: DateColumn, Width: 2}, {Title: "Severity", Width: 2},
				{Title: "Data", Width: 4}}, tallyColumns...),
			Rows: cellsOf(reports.ExposuresByBreach(ctx, t, p), func(r *domain.BreachExposures) []any {
				return tallyCells(r.ExposureTally, r.Title, optional(r.Domain), optionalDate(r.BreachOn), word(r.Severity),
					strings.Join(r.DataClasses, ", "))
			}),
		})),
		section("By user", one(Table{
			Title: "Exposures by user", Empty: none,
			Columns: personColumns(append([]Column{{Title: "Highest unresolved", Width: 2}}, tallyColumns...)...),
			Rows: cellsOf(reports.ExposuresByUser(ctx, t, p), func(r *domain.UserExposures) []any {
				var highest any
				if r.Highest != nil {
					highest = word(*r.Highest)
				}
				return personCells(&r.Person, tallyCells(r.ExposureTally, highest)...)
			}),
		})),
	}, nil
}

func darkWebFigures(sum domain.DarkWeb, months []domain.ExposureMonth) []Block {
	found, resolved := 0, 0
	for _, m := range months {
		found += m.Found
		resolved += m.Resolved
	}
	latest := "none yet"
	if sum.LastFoundAt != nil {
		latest = "the latest on " + domain.DateOf(*sum.LastFoundAt).String()
	}
	return []Block{Figures{
		badIfAny(countFigure("Unresolved exposures", sum.Unresolved, "%d critical", sum.By.Critical), sum.Unresolved),
		badIfAny(countFigure("Affected users", sum.Affected, "with an unresolved exposure"), sum.Affected),
		countFigure("Resolved exposures", sum.Resolved, "%d in this period", resolved),
		countFigure("Found in this period", found, "%s", latest),
	}}
}

func bySeverity(sum domain.DarkWeb, counted []domain.SeverityExposures) []Block {
	rows := make([]domain.SeverityExposures, 0, len(counted))
	for _, name := range domain.Severity("").Values() {
		row := domain.SeverityExposures{Severity: domain.Severity(name)}
		for _, c := range counted {
			if c.Severity == row.Severity {
				row = c
			}
		}
		rows = append(rows, row)
	}
	return append(donut("Unresolved by severity",
		[]string{"Critical", "High", "Medium", "Low"}, []Tone{Bad, Warning, Neutral, Good},
		sum.By.Critical, sum.By.High, sum.By.Medium, sum.By.Low), Table{
		Title: "Exposures by severity", Columns: append([]Column{{Title: "Severity"}}, tallyColumns...),
		Rows: cellsOf(listed(rows), func(r *domain.SeverityExposures) []any {
			return tallyCells(r.ExposureTally, word(r.Severity))
		}),
	})
}
