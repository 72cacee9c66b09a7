package report

import (
	"slices"

	"partnerapi/db/reports"
	"partnerapi/domain"
)

const (
	howClicksCount = "An email counts as clicked if its link was followed, its attachment was opened or its form was " +
		"submitted. Actions by email scanners are not counted. Each email is counted in the month it was sent."
	noMails = "No simulated emails were sent in this period."
)

// phishingOverview returns the contents of a phishing overview: by month, by template category, and repeat clickers.
func phishingOverview(r *reading) []Section {
	byCategory := read(r, reports.PhishedCategories.All)
	repeatClickers, earlierClickers := read(r, reports.RepeatClickerCount.One), before(r, reports.RepeatClickerCount.One)
	months := r.period.Months()
	byMonth := fillMonths(months, read(r, reports.PhishedMonths.All),
		func(m *domain.PhishedMonth) *domain.Date { return &m.Month })
	total, earlier := phishingTotal(byMonth), phishingTotal(before(r, reports.PhishedMonths.All))
	had := earlier.Sent > 0
	return []Section{
		section("Summary", sentences(phishingText(total), trainRepeatClickers(repeatClickers)),
			phishingFigures(total, earlier), Figures{
				badIfAny(countFigure("Repeat clickers", repeatClickers, "clicked two or more times"), repeatClickers).
					against(countOr(earlierClickers, had), lowerIsBetter),
				countFigure("Attachments opened", total.AttachmentsOpened, "in simulated emails").
					against(countOr(earlier.AttachmentsOpened, had), lowerIsBetter),
				countFigure("Reported", total.Reported, "simulated emails").
					against(countOr(earlier.Reported, had), neither),
			}, Text(howClicksCount), donutChart("What became of the mails", []string{"Not opened", "Opened only", "Clicked"},
				[]Tone{Neutral, Neutral, Bad}, total.Sent-total.Opened, total.Opened-total.Clicked, total.Clicked)),
		section("By month",
			lineChart("Rates by month", "%", months, byMonth, []string{"Click rate", "Report rate"},
				func(m *domain.PhishedMonth) []float64 {
					return []float64{rateValue(m.Clicked, m.Sent), rateValue(m.Reported, m.Sent)}
				}),
			Table{
				Title: "Phishing by month", Columns: slices.Concat([]Column{{Title: "Month"}}, phishingColumns),
				Rows: listRows(byMonth, func(m *domain.PhishedMonth) []any {
					return phishingCells(m.PhishingCounts, monthText(m.Month))
				}),
			}),
		section("By template category",
			barChart("Click rate by category", "%", byCategory, categoryName,
				func(c *domain.PhishedCategory) any { return rateCell(c.Clicked, c.Sent) }),
			Table{
				Title: "Phishing by category", Columns: slices.Concat([]Column{{Title: "Category"}}, phishingColumns),
				Empty: noMails,
				Rows: listRows(byCategory, func(c *domain.PhishedCategory) []any {
					return phishingCells(c.PhishingCounts, categoryName(c))
				}),
			}),
		section("Repeat clickers", Table{
			Title: "Repeat clickers", Empty: "No employee clicked in two or more simulated emails from this period.",
			Columns: slices.Concat(personColumns, []Column{{Title: "Status"}}, numberColumns("Sent", "Clicked"),
				[]Column{{Title: "Last click", Kind: TimeColumn, Width: 2}}),
			Rows: statementRows(r, reports.RepeatClickers, func(u *domain.RepeatClicker) []any {
				return personCells(&u.Person, enumText(u.Status), u.Sent, u.Clicked, u.LastClickedAt)
			}),
		}),
	}
}

// phishingPerformance returns the contents of a report of every active user's simulated emails.
func phishingPerformance(r *reading) []Section {
	total, earlier := phishingTotal(read(r, reports.PhishedMonths.All)), phishingTotal(before(r, reports.PhishedMonths.All))
	return []Section{
		section("Summary", sentences(phishingText(total)), phishingFigures(total, earlier),
			Text(howClicksCount+" The totals include emails to employees who are now inactive.")),
		section("All employees", noUsersNote(r.tenant.ActiveUsers), Table{
			Title: "Phishing by user", Empty: "There are no active employees.",
			Columns: slices.Concat(personColumns, phishingColumns[:5] /* to Submitted */, numberColumns("Click rate")),
			Rows: statementRows(r, reports.PhishedUsers, func(u *domain.PhishedUser) []any {
				return personCells(&u.Person, u.Sent, u.Opened, u.Clicked, u.Reported, u.CredentialsSubmitted,
					rateCell(u.Clicked, u.Sent))
			}),
		}),
	}
}

// phishingText returns a sentence that says how employees acted on simulated emails; empty if none was sent.
func phishingText(n domain.PhishingCounts) string {
	return ifAny(n.Sent, "Employees clicked in %d of %s (%s) and reported %d (%s).", n.Clicked,
		quantity(n.Sent, "simulated email"), textOf(rateCell(n.Clicked, n.Sent)), n.Reported,
		textOf(rateCell(n.Reported, n.Sent)))
}

// categoryName returns the name of a category of templates, or "(none)".
func categoryName(r *domain.PhishedCategory) string {
	if r.Category == "" {
		return "(none)"
	}
	return enumText(r.Category)
}

// phishingTotal returns the sum of the counts of months.
func phishingTotal(months []domain.PhishedMonth) (total domain.PhishingCounts) {
	for _, m := range months {
		total = total.Plus(m.PhishingCounts)
	}
	return total
}

// phishingFigures returns figures of a period's totals, compared with those of the period before, or a text if no email
// was sent.
func phishingFigures(n, earlier domain.PhishingCounts) Block {
	if n.Sent == 0 {
		return Text(noMails)
	}
	submitted := badIfAny(countFigure("Credentials submitted", n.CredentialsSubmitted, "on simulated phishing pages"),
		n.CredentialsSubmitted)
	return append(append(Figures{sentFigure(n, earlier, "%d opened", n.Opened)}, clickFigures(n, earlier)...),
		submitted.against(countOr(earlier.CredentialsSubmitted, earlier.Sent > 0), lowerIsBetter))
}

// sentFigure returns the figure of the simulated emails sent, compared with the period before. note and args are the
// format and the operands of its note.
func sentFigure(n, earlier domain.PhishingCounts, note string, args ...any) Figure {
	return countFigure("Simulated emails sent", n.Sent, note, args...).against(countOr(earlier.Sent, earlier.Sent > 0), neither)
}

// clickFigures returns the figures of the click and the report rate, compared with the period before.
func clickFigures(n, earlier domain.PhishingCounts) Figures {
	const of = "simulated email"
	return Figures{
		clickFigure(n.Clicked, n.Sent, of).against(rateCell(earlier.Clicked, earlier.Sent), lowerIsBetter),
		reportFigure(n.Reported, n.Sent, of).against(rateCell(earlier.Reported, earlier.Sent), higherIsBetter),
	}
}

// phishingColumns are the columns of the counts of emails, and of their rates.
var phishingColumns = numberColumns("Sent", "Opened", "Clicked", "Reported", "Submitted", "Attachments", "Click rate",
	"Report rate")

// phishingCells returns the first cells of a row, followed by the cells of phishingColumns.
func phishingCells(n domain.PhishingCounts, first ...any) []any {
	return append(first, n.Sent, n.Opened, n.Clicked, n.Reported, n.CredentialsSubmitted, n.AttachmentsOpened,
		rateCell(n.Clicked, n.Sent), rateCell(n.Reported, n.Sent))
}
