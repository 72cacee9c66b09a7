package report

import (
	"context"
	"fmt"
	"iter"
	"math"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/language"
	"golang.org/x/text/message"

	"partnerapi/db"
	"partnerapi/db/reports"
	"partnerapi/domain"
)

// reading is the state of reading a report about a client and a period, in the snapshot of ctx. After the first error,
// err, nothing more is read.
type reading struct {
	ctx    context.Context
	tenant *db.Tenant
	period domain.ReportPeriod
	err    error
}

// read returns the result of a query about the client in the period, or the zero value if r has an error.
func read[T any](
	r *reading, of func(ctx context.Context, t *db.Tenant, p domain.ReportPeriod) (T, error),
) (found T) {
	if r.err == nil {
		found, r.err = of(r.ctx, r.tenant, r.period)
	}
	return found
}

// current returns the result of a query about the client's current state, or the zero value if r has an error.
func current[T any](r *reading, of func(t *db.Tenant, ctx context.Context) (T, error)) (found T) {
	if r.err == nil {
		found, r.err = of(r.tenant, r.ctx)
	}
	return found
}

// before returns the result of a query about the client in the period before r's, or the zero value if r has an error.
func before[T any](
	r *reading, of func(ctx context.Context, t *db.Tenant, p domain.ReportPeriod) (T, error),
) T {
	earlier := *r
	earlier.period = r.period.Previous()
	found := read(&earlier, of)
	r.err = earlier.err
	return found
}

// statementRows returns the rows of a table. cells makes each from a row of a statement, which is executed when the
// rows are ranged over.
func statementRows[Row any](r *reading, s reports.Statement[Row], cells func(*Row) []any) iter.Seq2[[]any, error] {
	return func(yield func([]any, error) bool) {
		for row, err := range s.Each(r.ctx, r.tenant, r.period) {
			if err != nil {
				yield(nil, err)
				return
			}
			if !yield(cells(&row), nil) {
				return
			}
		}
	}
}

// listRows returns the rows of a table. cells makes each from an element of a list.
func listRows[Row any](list []Row, cells func(*Row) []any) iter.Seq2[[]any, error] {
	return func(yield func([]any, error) bool) {
		for i := range list {
			if !yield(cells(&list[i]), nil) {
				return
			}
		}
	}
}

// numberColumns returns columns of numbers.
func numberColumns(titles ...string) []Column {
	list := make([]Column, len(titles))
	for i, title := range titles {
		list[i] = Column{Title: title, Kind: NumberColumn}
	}
	return list
}

// personColumns are the columns of a row's user.
var personColumns = []Column{{Title: "Name", Width: 3}, {Title: "Email", Width: 4}, {Title: "Department", Width: 2}}

// personCells returns the cells of personColumns, followed by more.
func personCells(p *domain.Person, more ...any) []any {
	return append([]any{p.Name(), p.Email, valueOrNil(p.Department)}, more...)
}

// valueOrNil returns *value as a cell, or nil if value is nil.
func valueOrNil[T any](value *T) any {
	if value == nil {
		return nil
	}
	return *value
}

// dateOrNil returns a date as a cell, or nil if it is zero.
func dateOrNil(d domain.Date) any {
	if d.IsZero() {
		return nil
	}
	return d
}

// enumText returns an enum value of the API as text, such as "Credit card" for credit_card. A value of one or two
// letters is an abbreviation: "IT" for it.
func enumText[T ~string](value T) string {
	text := strings.ReplaceAll(string(value), "_", " ")
	if len(text) < 3 {
		return strings.ToUpper(text)
	}
	first, size := utf8.DecodeRuneInString(text)
	return string(unicode.ToUpper(first)) + text[size:]
}

// rateCell returns part as a percentage of whole as a cell, or nil if whole is 0.
func rateCell(part, whole int) any {
	if whole == 0 {
		return nil
	}
	return percentOf(domain.Percent(part, whole), whole)
}

// leastForDecimals is the number of things from which their percentages have a decimal.
const leastForDecimals = 100

// percentOf returns a percentage of whole things as a cell or a figure: without decimals if they are fewer than
// leastForDecimals, as a decimal would then say more than is known.
func percentOf(percent float64, whole int) any {
	if whole < leastForDecimals {
		return WholePercent(percent)
	}
	return Percent(percent)
}

// rateValue returns part as a percentage of whole for a chart, or NaN (no value) if whole is 0.
func rateValue(part, whole int) float64 { return chartValue(rateCell(part, whole)) }

var english = message.NewPrinter(language.English)

// countText returns a number with a comma after thousands.
func countText(n int) string { return english.Sprintf("%d", n) }

// rateText returns a percentage with one decimal and a percent sign.
func rateText(percent float64) string { return english.Sprintf("%.1f%%", percent) }

// wholeRateText returns a percentage without decimals, with a percent sign.
func wholeRateText(percent float64) string { return english.Sprintf("%.0f%%", math.Round(percent)) }

// countFigure returns the figure of a number. note and args are the format and the operands of its note.
func countFigure(label string, n int, note string, args ...any) Figure {
	return Figure{Label: label, Value: n, Note: english.Sprintf(note, args...)}
}

// rateFigure returns the figure of part as a percentage of whole. Its tone is Good at the limit good or better, Warning
// at the limit fair or better, otherwise Bad. Higher rates are better if good is greater than fair. of is the singular
// noun of what is counted. If whole is 0, the figure has no value and no tone.
func rateFigure(label string, part, whole int, good, fair float64, of string) Figure {
	f := Figure{Label: label, Note: "no " + pluralOf(of)}
	if whole == 0 {
		return f
	}
	rate := domain.Percent(part, whole)
	f.Value, f.Note = percentOf(rate, whole), countText(part)+" of "+quantity(whole, of)
	higherIsBetter := good > fair
	reaches := func(limit float64) bool { return rate == limit || (rate > limit) == higherIsBetter }
	switch {
	case reaches(good):
		f.Tone = Good
	case reaches(fair):
		f.Tone = Warning
	default:
		f.Tone = Bad
	}
	return f
}

// clickFigure returns the figure of the click rate, for all reports: Good up to 5%, as frameworks ask, Bad above 15%.
func clickFigure(clicked, sent int, of string) Figure {
	return rateFigure("Click rate", clicked, sent, 5, 15, of)
}

// reportFigure returns the figure of the report rate, for all reports: Good from 20%, as frameworks ask, Bad below 10%.
func reportFigure(reported, sent int, of string) Figure {
	return rateFigure("Report rate", reported, sent, 20, 10, of)
}

// signedFigure returns the figure of signed policies, for all reports. It is Good at 100%, and Bad below 90%.
func signedFigure(signed, asked int) Figure {
	return rateFigure("Policies signed", signed, asked, 100, 90, "signature")
}

// badIfAny returns the figure with the tone Bad if n is above 0, otherwise Good.
func badIfAny(f Figure, n int) Figure {
	if f.Tone = Good; n > 0 {
		f.Tone = Bad
	}
	return f
}

// chartOrNil returns the chart, or nil if all its values are 0 or missing.
func chartOrNil(c Chart) Block {
	for v := range c.values() { // without missing values
		if v != 0 {
			return c
		}
	}
	return nil
}

// donutChart returns a chart of the shares of a whole, each with a label, a tone and a number. Negative numbers count
// as 0. It returns nil if all numbers are 0.
func donutChart(title string, labels []string, tones []Tone, numbers ...int) Block {
	values := make([]float64, len(numbers))
	for i, n := range numbers {
		values[i] = float64(max(n, 0))
	}
	return chartOrNil(Chart{Kind: Donut, Title: title, Labels: labels, Series: []Series{{Values: values}}, Tones: tones})
}

// barChart returns a bar chart of the first rows of a list, at most 12. value returns a row's value as a number cell.
// It returns nil if there are fewer than two rows, because one row has nothing to compare it with, or if all values are
// 0 or missing.
func barChart[Row any](title, unit string, list []Row, label func(*Row) string, value func(*Row) any) Block {
	const most = 12
	if len(list) < 2 {
		return nil
	}
	c := Chart{Kind: Bar, Title: title, Unit: unit, Series: []Series{{Name: title}}}
	if len(list) > most {
		c.Title = fmt.Sprintf("%s, the first %d of %d", title, most, len(list))
	}
	for i := range list[:min(len(list), most)] {
		c.Labels = append(c.Labels, label(&list[i]))
		cell := value(&list[i])
		c.Numbers = append(c.Numbers, textOf(cell))
		c.Series[0].Values = append(c.Series[0].Values, chartValue(cell))
	}
	return chartOrNil(c)
}

// chartValue returns the value of a number cell in a chart; NaN (no value) for nil.
func chartValue(cell any) float64 {
	switch v := cell.(type) {
	case int:
		return float64(v)
	case Percent:
		return float64(v)
	case WholePercent:
		return float64(v)
	}
	return math.NaN()
}

// lineChart returns a chart of rows by month, with a line for each name. rows has a row for each month (see
// fillMonths), and values returns a value for each name. lineChart returns nil if all values are 0 or missing.
func lineChart[Row any](
	title, unit string, months []domain.Date, rows []Row, names []string, values func(*Row) []float64,
) Block {
	c := Chart{Kind: Line, Title: title, Unit: unit, By: byMonth}
	for _, name := range names {
		c.Series = append(c.Series, Series{Name: name})
	}
	for i, month := range months {
		c.Labels, c.Keys = append(c.Labels, monthText(month)), append(c.Keys, month)
		for j, value := range values(&rows[i]) {
			c.Series[j].Values = append(c.Series[j].Values, value)
		}
	}
	return chartOrNil(c)
}

// fillMonths returns a row for each month: the row of that month in rows, which are in the order of months, otherwise a
// zero row with the month. month returns a pointer to a row's month.
func fillMonths[Row any](months []domain.Date, rows []Row, month func(*Row) *domain.Date) []Row {
	all := make([]Row, len(months))
	next := 0
	for i, m := range months {
		if next < len(rows) && *month(&rows[next]) == m {
			all[i] = rows[next]
			next++
		}
		*month(&all[i]) = m
	}
	return all
}

// byMonth is the value of By of charts by month.
const byMonth = "Month"

// monthText returns a month such as "Jan 2006".
func monthText(month domain.Date) string { return month.Time().Format("Jan 2006") }

// noUsersNote returns a text that the client has no active employees; nil if users is above 0.
func noUsersNote(users int) Block {
	if users > 0 {
		return nil
	}
	return Text("There are no active employees.")
}

// sentences returns a paragraph of the sentences that are not empty; nil if all are.
func sentences(list ...string) Block {
	text := strings.Join(slices.DeleteFunc(list, func(s string) bool { return s == "" }), " ")
	if text == "" {
		return nil
	}
	return Text(text)
}

// ifAny returns the sentence, whose operands args are, if n is above 0; otherwise an empty one.
func ifAny(n int, sentence string, args ...any) string {
	if n <= 0 {
		return ""
	}
	return english.Sprintf(sentence, args...)
}

// sectionAfter returns the section after those about the employees who need attention (see section). It begins a page
// of a PDF if there are such employees.
func sectionAfter(employees int, heading string, list ...Block) Section {
	s := section(heading, list...)
	s.OnNewPage = employees > 0
	return s
}

// blocks is a list of blocks in the place of one block. section replaces it by its elements.
type blocks []Block

func (blocks) block() {}

// section returns a section with the blocks of list. It leaves out nil, and replaces blocks by its elements.
func section(heading string, list ...Block) Section {
	s := Section{Heading: heading}
	for _, b := range list {
		switch b := b.(type) {
		case nil:
		case blocks:
			s.Blocks = append(s.Blocks, section("", b...).Blocks...)
		default:
			s.Blocks = append(s.Blocks, b)
		}
	}
	return s
}
