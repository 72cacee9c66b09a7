package report

import (
	"slices"

	"partnerapi/db/reports"
	"partnerapi/domain"
)

const (
	howClicksCount = "A mail counts as clicked when its link was followed, its attachment opened, or its form filled " +
		"in. What mail scanners did does not count. A mail counts in the month in which it was sent."
	noMails = "No simulated phishing mail was sent in this period."
)

// phishingOverview returns the contents of a phishing overview: by month, by template category, and repeat clickers.
func phishingOverview(r *reading) []Section {
	byCategory := read(r, reports.PhishedCategories.All)
	repeatClickers := read(r, reports.RepeatClickerCount.One)
	months := r.period.Months()
	byMonth := fillMonths(months, read(r, reports.PhishedMonths.All),
		func(m *domain.PhishedMonth) *domain.Date { return &m.Month })
	total := phishingTotal(byMonth)
	return []Section{
		section("Summary", Text(howClicksCount), phishingFigures(total),
			Figures{badIfAny(countFigure("Repeat clickers", repeatClickers, "clicked two or more times"), repeatClickers),
				countFigure("Attachments opened", total.AttachmentsOpened, ""),
				countFigure("Reported", total.Reported, "in simulations")},
			donutChart("What became of the mails", []string{"Not opened", "Opened only", "Clicked"},
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
				func(c *domain.PhishedCategory) float64 { return rateValue(c.Clicked, c.Sent) }),
			Table{
				Title: "Phishing by category", Columns: slices.Concat([]Column{{Title: "Category"}}, phishingColumns),
				Empty: noMails,
				Rows: listRows(byCategory, func(c *domain.PhishedCategory) []any {
					return phishingCells(c.PhishingCounts, categoryName(c))
				}),
			}),
		section("Repeat clickers", Table{
			Title: "Repeat clickers", Empty: "Nobody clicked in two or more mails of this period.",
			Columns: slices.Concat(personColumns, []Column{{Title: "Status"}}, numberColumns("Sent", "Clicked"),
				[]Column{{Title: "Last click", Kind: TimeColumn, Width: 2}}),
			Rows: statementRows(r, reports.RepeatClickers, func(u *domain.RepeatClicker) []any {
				return personCells(&u.Person, enumText(u.Status), u.Sent, u.Clicked, u.LastClickedAt)
			}),
		}),
	}
}

// phishingPerformance returns the contents of a report of every active user's simulated mails.
func phishingPerformance(r *reading) []Section {
	return []Section{
		section("Summary", Text(howClicksCount+" These figures are of all mails, those to users who are inactive "+
			"now included."), phishingFigures(phishingTotal(read(r, reports.PhishedMonths.All)))),
		section("Every user", noUsersNote(r.tenant.ActiveUsers), Table{
			Title: "Phishing by user", Empty: "There are no active users.",
			Columns: slices.Concat(personColumns, phishingColumns[:5] /* to Submitted */, numberColumns("Click rate")),
			Rows: statementRows(r, reports.PhishedUsers, func(u *domain.PhishedUser) []any {
				return personCells(&u.Person, u.Sent, u.Opened, u.Clicked, u.Reported, u.CredentialsSubmitted,
					rateCell(u.Clicked, u.Sent))
			}),
		}),
	}
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

// phishingFigures returns figures of a period's totals, or a text if no mail was sent.
func phishingFigures(n domain.PhishingCounts) Block {
	if n.Sent == 0 {
		return Text(noMails)
	}
	return Figures{
		countFigure("Simulated mails sent", n.Sent, "%d opened", n.Opened),
		clickFigure(n.Clicked, n.Sent, "mail"),
		reportFigure(n.Reported, n.Sent, "mail"),
		badIfAny(countFigure("Credentials submitted", n.CredentialsSubmitted, ""), n.CredentialsSubmitted),
	}
}

// phishingColumns are the columns of the counts of mails, and of their rates.
var phishingColumns = numberColumns("Sent", "Opened", "Clicked", "Reported", "Submitted", "Attachments", "Click rate",
	"Report rate")

// phishingCells returns the first cells of a row, followed by the cells of phishingColumns.
func phishingCells(n domain.PhishingCounts, first ...any) []any {
	return append(first, n.Sent, n.Opened, n.Clicked, n.Reported, n.CredentialsSubmitted, n.AttachmentsOpened,
		rateCell(n.Clicked, n.Sent), rateCell(n.Reported, n.Sent))
}
