package report

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math"
	"time"

	"partnerapi/domain"
)

// must returns a value, and panics with an error: of what does not fail here.
func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

// rowsOf are the rows of a table.
func rowsOf(list ...[]any) iter.Seq2[[]any, error] {
	return func(yield func([]any, error) bool) {
		for _, row := range list {
			if !yield(row, nil) {
				return
			}
		}
	}
}

// numbered are n rows, of what row says.
func numbered(n int, row func(i int) []any) iter.Seq2[[]any, error] {
	return func(yield func([]any, error) bool) {
		for i := range n {
			if !yield(row(i), nil) {
				return
			}
		}
	}
}

var madeAt = time.Date(2026, 11, 22, 3, 4, 5, 0, time.UTC)

func day(year, month, day int) domain.Date {
	return domain.DateOf(time.Date(year, time.Month(month), day, 0, 0, 0, 0, time.UTC))
}

// userColumns has a column of every kind.
var userColumns = []Column{
	{Title: "Name", Width: 4}, {Title: "Email", Width: 5}, {Title: "Score", Kind: NumberColumn},
	{Title: "Weight", Kind: NumberColumn}, {Title: "On track", Kind: NumberColumn},
	{Title: "Due", Kind: DateColumn, Width: 2}, {Title: "Completed", Kind: TimeColumn, Width: 3},
	{Title: "Signed", Kind: YesNoColumn},
}

// userRow is the row of a user.
func userRow(i int) []any {
	return []any{
		fmt.Sprintf("User %d Example", i), fmt.Sprintf("user.%d@example.com", i), 1000 - i%1000, float64(i%97) + 0.5,
		Percent(i % 101), day(2026, 1, 1).AddDays(i % 300), madeAt.Add(time.Duration(i) * -time.Hour), i%2 == 0,
	}
}

// awkwardRows have names that are long, in other scripts, or look like formulas.
func awkwardRows() iter.Seq2[[]any, error] {
	when := madeAt.Add(-90 * time.Minute)
	return rowsOf(
		[]any{"Ελένη Παπαδοπούλου", "eleni@example.gr", 812, 1.5, Percent(99.5), day(2026, 2, 28), when, true},
		[]any{"Алексей Щербаков", "aleksej@example.ru", 1234567, -0.5, Percent(0.0), nil, nil, false},
		[]any{"山田 太郎", "taro@example.jp", 0, 0.0, Percent(100.0), day(2024, 2, 29), when, nil},
		[]any{"Nguyễn Thị Ánh \U0001F600", "anh@example.vn", -12, 3.0, Percent(12.3), nil, nil, true},
		[]any{"=HYPERLINK(\"http://example.com\")", "+1@example.com", 1, 1.0, Percent(1.0), nil, nil, true},
		[]any{"-2+3 (\\escaped\\)", "@sum@example.com", 1, 1.0, Percent(1.0), nil, nil, true},
		[]any{
			"Wolfeschlegelsteinhausenbergerdorffwelchevoralternwarengewissenhaftschaferswessenschafewaren" +
				"wohlgepflegeundsorgfaltigkeitbeschutzen Senior the Third of His Name and of Many More Names",
			"a.very.long.address.that.goes.on.and.on@subdomain.of.a.subdomain.example.com",
			999, 1.0, Percent(50.0), nil, nil, false,
		},
		[]any{"line\nbreak\tand\x00control", "", 1, 1.0, Percent(1.0), nil, nil, true},
	)
}

// sample is a document with a block of every kind.
func sample() *Document {
	trend := Chart{Kind: Line, Title: "Average score by week", By: "Day", Series: []Series{{Name: "Average score"}}}
	for i := range 13 {
		monday := day(2026, 8, 24).AddDays(7 * i)
		trend.Labels, trend.Keys = append(trend.Labels, monday.String()[5:]), append(trend.Keys, monday)
		trend.Series[0].Values = append(trend.Series[0].Values, 640+float64(i*i%17)*8)
	}
	trend.Series[0].Values[4] = math.NaN()

	months := []string{"Jun", "Jul", "Aug", "Sep", "Oct", "Nov"}
	return &Document{
		Type: domain.ExecutiveSummary, Title: "Executive summary", Client: "Müller & Söhne, Αθήνα (Москва)",
		Period: &domain.ReportPeriod{Start: day(2026, 8, 25), End: day(2026, 11, 22)}, MadeAt: madeAt,
		Sections: []Section{
			{Heading: "Human risk", Blocks: []Block{
				Text("The average score of your users is 712, which is grade B. Ten users are of high risk; most of " +
					"what lowers scores comes from clicked links in simulated phishing, and from training that is " +
					"left unfinished. A higher score is better, and 1,000 is the best."),
				Figures{
					{Label: "Average score", Value: 712, Note: "Grade B", Tone: Good},
					{Label: "High-risk users", Value: 10, Note: "of 1,204 active users", Tone: Bad},
					{Label: "Training on track", Value: Percent(91.5), Note: "target 95%", Tone: Warning},
					{Label: "Click rate", Value: Percent(8.2), Note: "last 90 days"},
					{Label: "A fifth figure with a label that is too long", Value: "123,456,789,012", Note: ""},
				},
				trend,
			}},
			{Heading: "Phishing", Blocks: []Block{
				Chart{Kind: Bar, Title: "Click rate by month", Unit: "%", Labels: months,
					Series: []Series{{Name: "Click rate", Values: []float64{12, 9.5, 8, 8.2, 4, 4.2}}}},
				Chart{Kind: Donut, Title: "Users by grade", Labels: []string{"A", "B", "C", "D", "F"},
					Series: []Series{{Name: "Users", Values: []float64{310, 602, 180, 8, 2}}}},
				Chart{Kind: Bar, Title: "Mails by month", Labels: months, Series: []Series{
					{Name: "Reported", Values: []float64{20, 30, 40, 50, 60, 70}},
					{Name: "Clicked", Values: []float64{12, 9, 8, 8, 4, 4}},
					{Name: "Nothing", Values: []float64{80, 70, 60, 50, 40, 30}},
				}},
				Chart{Kind: Line, Title: "Nothing yet", Labels: nil, Series: []Series{{Name: "None"}}},
			}},
			{Heading: "Users", Blocks: []Block{
				Table{Title: "Users with awkward names", Columns: userColumns, Rows: awkwardRows()},
				Table{Title: "Nobody", Columns: userColumns, Rows: rowsOf(), Empty: "No user clicked in this period."},
				Table{Title: "All users", Columns: userColumns, Rows: numbered(1500, userRow)},
			}},
			{Heading: "Nothing", Blocks: nil},
		},
	}
}

// What tests of the contents read files with.
var (
	PagesOf   = pagesOf
	Squeeze   = squeeze
	CheckRows = checkRows
	// FigureText is a figure as a page shows it.
	FigureText = (*Figure).text
)

// PageText is a cell as a page shows it.
func (c *Column) PageText(cell any) (string, error) {
	if !c.holds(cell) {
		return "", errors.New("not a cell of the column's kind")
	}
	return textOf(cell), nil
}

// What tests of leases hold against each other.
const (
	LeaseFor      = leaseFor
	MaintainEvery = maintainEvery
)

// Turn maintains reports if it is time.
func (m *Maintainer) Turn(ctx context.Context) error {
	_, err := m.maintainIfDue(ctx)
	return err
}
