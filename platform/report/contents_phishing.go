package report

import (
	"context"

	"partnerapi/db"
	"partnerapi/db/reports"
	"partnerapi/domain"
)

const (
	howClicksCount = "A mail counts as clicked when its link was followed, its attachment opened, or its form filled " +
		"in. What mail scanners did does not count. A mail counts in the month in which it was sent."
	noMails = "No simulated phishing mail was sent in this period."
)

func (m *Renderer) phishingOverview(ctx context.Context, t *db.Tenant, p domain.ReportPeriod) ([]Section, error) {
	byMonth, err := reports.PhishedMonths(ctx, t, p)
	if err != nil {
		return nil, err
	}
	byCategory, err := reports.PhishedCategories(ctx, t, p)
	if err != nil {
		return nil, err
	}
	repeated, err := reports.CountRepeatClickers(ctx, t, p)
	if err != nil {
		return nil, err
	}

	months := p.Months()
	byMonth = monthly(months, byMonth, func(r *domain.PhishedMonth) *domain.Date { return &r.Month })
	total := phishingTotal(byMonth)
	return []Section{
		section("Summary", one(Text(howClicksCount)), phishingFigures(total),
			one(Figures{badIfAny(countFigure("Repeat clickers", repeated, "clicked two or more times"), repeated),
				countFigure("Attachments opened", total.AttachmentsOpened, ""),
				countFigure("Reported", total.Reported, "in simulations")}),
			donut("What became of the mails", []string{"Not opened", "Opened only", "Clicked"}, []Tone{Neutral, Neutral, Bad},
				total.Sent-total.Opened, total.Opened-total.Clicked, total.Clicked)),
		section("By month",
			lines("Rates by month", "%", months, byMonth, []string{"Click rate", "Report rate"},
				func(r *domain.PhishedMonth) []float64 {
					return []float64{rateIn(r.Clicked, r.Sent), rateIn(r.Reported, r.Sent)}
				}),
			one(Table{
				Title: "Phishing by month", Columns: append([]Column{{Title: "Month"}}, phishingColumns...),
				Rows: cellsOf(listed(byMonth), func(r *domain.PhishedMonth) []any {
					return phishingCells(r.PhishingCounts, monthText(r.Month))
				}),
			})),
		section("By template category",
			bars("Click rate by category", "%", byCategory, category,
				func(r *domain.PhishedCategory) float64 { return rateIn(r.Clicked, r.Sent) }),
			one(Table{
				Title: "Phishing by category", Columns: append([]Column{{Title: "Category"}}, phishingColumns...),
				Empty: noMails,
				Rows: cellsOf(listed(byCategory), func(r *domain.PhishedCategory) []any {
					return phishingCells(r.PhishingCounts, category(r))
				}),
			})),
		section("Repeat clickers", one(Table{
			Title: "Repeat clickers", Empty: "Nobody clicked in two or more mails of this period.",
			Columns: personColumns(Column{Title: "Status"}, Column{Title: "Sent", Kind: IntegerColumn},
				Column{Title: "Clicked", Kind: IntegerColumn}, Column{Title: "Last click", Kind: TimeColumn, Width: 2}),
			Rows: cellsOf(reports.RepeatClickers(ctx, t, p), func(r *domain.RepeatClicker) []any {
				return personCells(&r.Person, word(r.Status), r.Sent, r.Clicked, r.LastClickedAt)
			}),
		})),
	}, nil
}

func (m *Renderer) phishingPerformance(ctx context.Context, t *db.Tenant, p domain.ReportPeriod) ([]Section, error) {
	byMonth, err := reports.PhishedMonths(ctx, t, p)
	if err != nil {
		return nil, err
	}
	return []Section{
		section("Summary", one(Text(howClicksCount+" These figures are of all mails, those to users who are inactive "+
			"now included.")), phishingFigures(phishingTotal(byMonth))),
		section("Every user", noUsers(t.ActiveUsers), one(Table{
			Title: "Phishing by user", Empty: "There are no active users.",
			Columns: personColumns(append(phishingColumns[:5:5], Column{Title: "Click rate", Kind: PercentColumn})...),
			Rows: cellsOf(reports.PhishedUsers(ctx, t, p), func(r *domain.PhishedUser) []any {
				return personCells(&r.Person, r.Sent, r.Opened, r.Clicked, r.Reported, r.CredentialsSubmitted,
					rateOf(r.Clicked, r.Sent))
			}),
		})),
	}, nil
}

func category(r *domain.PhishedCategory) string {
	if r.Category == "" {
		return "(none)"
	}
	return word(r.Category)
}

func phishingTotal(months []domain.PhishedMonth) (total domain.PhishingCounts) {
	for _, m := range months {
		total.Sent += m.Sent
		total.Opened += m.Opened
		total.Clicked += m.Clicked
		total.Reported += m.Reported
		total.CredentialsSubmitted += m.CredentialsSubmitted
		total.AttachmentsOpened += m.AttachmentsOpened
	}
	return total
}

// phishingFigures are the totals of a period; the goals are those of the frameworks
// (decisions 7.7).
func phishingFigures(n domain.PhishingCounts) []Block {
	if n.Sent == 0 {
		return []Block{Text(noMails)}
	}
	return []Block{Figures{
		countFigure("Simulated mails sent", n.Sent, "%d opened", n.Opened),
		clickFigure(n.Clicked, n.Sent, "mail"),
		reportFigure(n.Reported, n.Sent, "mail"),
		badIfAny(countFigure("Credentials submitted", n.CredentialsSubmitted, ""), n.CredentialsSubmitted),
	}}
}

// phishingColumns are the columns of counts behind others.
var phishingColumns = []Column{
	{Title: "Sent", Kind: IntegerColumn}, {Title: "Opened", Kind: IntegerColumn},
	{Title: "Clicked", Kind: IntegerColumn}, {Title: "Reported", Kind: IntegerColumn},
	{Title: "Submitted", Kind: IntegerColumn}, {Title: "Attachments", Kind: IntegerColumn},
	{Title: "Click rate", Kind: PercentColumn}, {Title: "Report rate", Kind: PercentColumn},
}

// phishingCells are the cells of phishingColumns.
func phishingCells(n domain.PhishingCounts, before ...any) []any {
	return append(before, n.Sent, n.Opened, n.Clicked, n.Reported, n.CredentialsSubmitted, n.AttachmentsOpened,
		rateOf(n.Clicked, n.Sent), rateOf(n.Reported, n.Sent))
}
