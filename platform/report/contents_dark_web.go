package report

import (
	"slices"
	"strings"

	"partnerapi/db"
	"partnerapi/db/reports"
	"partnerapi/domain"
)

// breachSource credits the source of the data on breaches, as its license requires.
const breachSource = "Breach data comes from Have I Been Pwned (https://haveibeenpwned.com), licensed under " +
	"CC BY 4.0 (https://creativecommons.org/licenses/by/4.0/)."

// tallyColumns are the columns of the counts of exposures.
var tallyColumns = numberColumns("Found in period", "Resolved in period", "Unresolved", "Resolved")

// tallyCells returns the first cells of a row, followed by the cells of tallyColumns.
func tallyCells(n domain.ExposureTally, first ...any) []any {
	return append(first, n.Found, n.ResolvedWithin, n.Unresolved, n.Resolved)
}

// darkWeb returns the contents of a report of the exposures of active users. If Dark Web Monitoring is off, it sets the
// error Forbidden.
func darkWeb(r *reading) []Section {
	t, months := r.tenant, r.period.Months()
	if !t.DarkWebMonitoring {
		r.err = domain.ErrNoDarkWeb()
		return nil
	}
	sum := current(r, (*db.Tenant).DarkWeb)
	severities := read(r, reports.ExposuresBySeverity.All)
	byMonth := fillMonths(months, read(r, reports.ExposureMonths.All),
		func(m *domain.ExposureMonth) *domain.Date { return &m.Month })
	within, earlier := exposureTotal(byMonth), exposureTotal(before(r, reports.ExposureMonths.All))
	const none = "No active employee has a known exposure."
	return []Section{
		section("Summary", noUsersNote(t.ActiveUsers), sentences(ifAny(sum.Unresolved, "%s %s %s (%d critical).",
			quantity(sum.Affected, "employee"), choose(sum.Affected, "has", "have"),
			quantity(sum.Unresolved, "unresolved exposure"), sum.By.Critical),
			resolveCritical(sum.By.Critical)), darkWebFigures(sum, within, earlier),
			Text("The numbers of unresolved and resolved exposures cover all known exposures of active employees, "+
				"no matter when they were found."),
			Text(breachSource)),
		section("By severity", severityBlocks(sum, severities),
			Text("Critical: passwords and other secrets that give access. High: sensitive personal data. Medium: basic account data. Low: spam lists.")),
		section("By month", lineChart("Exposures by month", "", months, byMonth, []string{"Found", "Resolved"},
			func(m *domain.ExposureMonth) []float64 { return []float64{float64(m.Found), float64(m.Resolved)} }),
			Table{
				Title:   "Exposures per month",
				Columns: slices.Concat([]Column{{Title: "Month"}}, numberColumns("Found", "Resolved")),
				Rows: listRows(byMonth, func(m *domain.ExposureMonth) []any {
					return []any{monthText(m.Month), m.Found, m.Resolved}
				}),
			}),
		section("By breach", Table{
			Title: "Exposures by breach", Empty: none,
			Columns: slices.Concat([]Column{{Title: "Breach", Width: 3}, {Title: "Domain", Width: 3},
				{Title: "Date", Kind: DateColumn, Width: 2}, {Title: "Severity", Width: 2}, {Title: "Data", Width: 4}},
				tallyColumns),
			Rows: statementRows(r, reports.ExposuresByBreach, func(b *domain.BreachExposures) []any {
				return tallyCells(b.ExposureTally, b.Title, valueOrNil(b.Domain), dateOrNil(b.BreachOn), enumText(b.Severity),
					strings.Join(b.DataClasses, ", "))
			}),
		}),
		section("By user", Table{
			Title: "Exposures by user", Empty: none,
			Columns: slices.Concat(personColumns, []Column{{Title: "Highest unresolved", Width: 2}}, tallyColumns),
			Rows: statementRows(r, reports.ExposuresByUser, func(u *domain.UserExposures) []any {
				var highest any
				if u.Highest != nil {
					highest = enumText(*u.Highest)
				}
				return personCells(&u.Person, tallyCells(u.ExposureTally, highest)...)
			}),
		}),
	}
}

// exposureTotal returns the sum of the counts of months.
func exposureTotal(months []domain.ExposureMonth) (total domain.ExposureMonth) {
	for _, m := range months {
		total.Found += m.Found
		total.Resolved += m.Resolved
	}
	return total
}

// darkWebFigures returns figures of all exposures (sum), and of those found or resolved in the period (within), compared
// with the period before.
func darkWebFigures(sum domain.DarkWeb, within, earlier domain.ExposureMonth) Figures {
	latest := "none yet"
	if sum.LastFoundAt != nil {
		latest = "latest: " + dayText(domain.DateOf(*sum.LastFoundAt))
	}
	found := foundFigure("Found in this period", within, earlier)
	found.Note = latest
	return Figures{
		badIfAny(countFigure("Unresolved exposures", sum.Unresolved, "%d critical", sum.By.Critical), sum.Unresolved),
		badIfAny(countFigure("Affected employees", sum.Affected, "with unresolved exposures"), sum.Affected),
		countFigure("Resolved exposures", sum.Resolved, "%d in this period", within.Resolved),
		found,
	}
}

// foundFigure returns the figure of the exposures found in a period, compared with the period before.
func foundFigure(label string, n, earlier domain.ExposureMonth) Figure {
	return countFigure(label, n.Found, "%d resolved in this period", n.Resolved).
		against(countOr(earlier.Found, earlier.Found+earlier.Resolved > 0), lowerIsBetter)
}

// severityBlocks returns a chart of the unresolved exposures by severity, and a table with a row for each severity,
// including severities without exposures.
func severityBlocks(sum domain.DarkWeb, counts []domain.SeverityExposures) Block {
	tallies := map[domain.Severity]domain.ExposureTally{}
	for _, c := range counts {
		tallies[c.Severity] = c.ExposureTally
	}
	return blocks{donutChart("Unresolved by severity",
		[]string{"Critical", "High", "Medium", "Low"}, []Tone{Bad, Warning, Neutral, Good},
		sum.By.Critical, sum.By.High, sum.By.Medium, sum.By.Low), Table{
		Title: "Exposures by severity", Columns: slices.Concat([]Column{{Title: "Severity"}}, tallyColumns),
		Rows: listRows(domain.Severity("").Values(), func(severity *string) []any {
			return tallyCells(tallies[domain.Severity(*severity)], enumText(*severity))
		}),
	}}
}
