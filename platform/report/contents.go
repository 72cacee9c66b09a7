package report

import (
	"context"
	"fmt"
	"iter"
	"math"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/language"
	"golang.org/x/text/message"

	"partnerapi/db"
	"partnerapi/db/reports"
	"partnerapi/domain"
)

// reading reads the contents of a report on a client and a period, in the snapshot of
// ctx. It keeps the first error, and reads nothing after it.
type reading struct {
	ctx    context.Context
	tenant *db.Tenant
	period domain.ReportPeriod
	err    error
}

// read reads something of the client in the period; the zero value after an error.
func read[T any](
	r *reading, of func(ctx context.Context, t *db.Tenant, p domain.ReportPeriod) (T, error),
) (found T) {
	if r.err == nil {
		found, r.err = of(r.ctx, r.tenant, r.period)
	}
	return found
}

// stand reads a current state of the client; the zero value after an error.
func stand[T any](r *reading, of func(t *db.Tenant, ctx context.Context) (T, error)) (found T) {
	if r.err == nil {
		found, r.err = of(r.tenant, r.ctx)
	}
	return found
}

// each returns the rows of a table, made from those of a statement.
func each[Row any](r *reading, s reports.Statement[Row], cells func(*Row) []any) iter.Seq2[[]any, error] {
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

// listed returns the rows of a table, made from those of a list.
func listed[Row any](list []Row, cells func(*Row) []any) iter.Seq2[[]any, error] {
	return func(yield func([]any, error) bool) {
		for i := range list {
			if !yield(cells(&list[i]), nil) {
				return
			}
		}
	}
}

// columns are columns of a kind.
func columns(kind ColumnKind, titles ...string) []Column {
	list := make([]Column, len(titles))
	for i, title := range titles {
		list[i] = Column{Title: title, Kind: kind}
	}
	return list
}

// personColumns say whom a row is about.
var personColumns = []Column{{Title: "Name", Width: 3}, {Title: "Email", Width: 4}, {Title: "Department", Width: 2}}

// personCells are the cells of personColumns, and more.
func personCells(p *domain.Person, more ...any) []any {
	return append([]any{p.Name(), p.Email, optional(p.Department)}, more...)
}

// optional returns the cell of a value that may be missing; nil if it is.
func optional[T any](value *T) any {
	if value == nil {
		return nil
	}
	return *value
}

func optionalDate(d domain.Date) any {
	if d.IsZero() {
		return nil
	}
	return d
}

// word is a value of the interface as text: it, high and credit_card are IT, High and
// Credit card.
func word[T ~string](value T) string {
	text := strings.ReplaceAll(string(value), "_", " ")
	if len(text) < 3 { // an abbreviation
		return strings.ToUpper(text)
	}
	first, size := utf8.DecodeRuneInString(text)
	return string(unicode.ToUpper(first)) + text[size:]
}

// percentage returns part of whole in percent; nil if whole is 0.
func percentage(part, whole int) *float64 {
	if whole == 0 {
		return nil
	}
	rate := domain.Percent(part, whole)
	return &rate
}

// rateOf is a percentage as a cell.
func rateOf(part, whole int) any { return optional(percentage(part, whole)) }

// rateIn returns a percentage for a chart; NaN (no value) if whole is 0.
func rateIn(part, whole int) float64 {
	if rate := percentage(part, whole); rate != nil {
		return *rate
	}
	return math.NaN()
}

var english = message.NewPrinter(language.English)

func countText(n int) string { return english.Sprintf("%d", n) }

func rateText(rate float64) string { return english.Sprintf("%.1f%%", rate) }

// countFigure is a number, with a note of further ones.
func countFigure(label string, n int, note string, numbers ...any) Figure {
	return Figure{Label: label, Value: n, Note: english.Sprintf(note, numbers...)}
}

// rateFigure returns part of whole as a percentage, whose tone depends on the limits for
// good and for fair. More is better if good is the higher limit. of names the counted
// things in the singular.
func rateFigure(label string, part, whole int, good, fair float64, of string) Figure {
	f := Figure{Label: label, Note: "no " + plurals(of)}
	if whole == 0 {
		return f
	}
	rate := domain.Percent(part, whole)
	f.Value, f.Note = Percent(rate), countText(part)+" of "+plural(whole, of)
	better := func(than float64) bool { return rate == than || rate > than == (good > fair) }
	switch {
	case better(good):
		f.Tone = Good
	case better(fair):
		f.Tone = Warning
	default:
		f.Tone = Bad
	}
	return f
}

// clickFigure, reportFigure and signedFigure are the rates that several reports show,
// toned alike in all of them.
func clickFigure(clicked, sent int, of string) Figure {
	return rateFigure("Click rate", clicked, sent, 5, 15, of)
}

func reportFigure(reported, sent int, of string) Figure {
	return rateFigure("Report rate", reported, sent, 20, 10, of)
}

func signedFigure(signed, asked int) Figure {
	return rateFigure("Policies signed", signed, asked, 100, 90, "signature")
}

// badIfAny sets the tone of a figure: Bad if n is above 0, else Good.
func badIfAny(f Figure, n int) Figure {
	if f.Tone = Good; n > 0 {
		f.Tone = Bad
	}
	return f
}

// unlessEmpty returns the chart, or nil if all its values are 0 or missing.
func unlessEmpty(c Chart) Block {
	for _, series := range c.Series {
		for _, value := range series.Values {
			if value != 0 && !math.IsNaN(value) {
				return c
			}
		}
	}
	return nil
}

// donut draws the shares of a whole: a label, a tone and a number each.
func donut(title string, labels []string, tones []Tone, numbers ...int) Block {
	values := make([]float64, len(numbers))
	for i, n := range numbers {
		values[i] = float64(max(n, 0))
	}
	return unlessEmpty(Chart{Kind: Donut, Title: title, Labels: labels, Series: []Series{{Values: values}}, Tones: tones})
}

// bars draws the first rows of a list, at most 12, one bar each. It returns nil for fewer than two rows, which leave
// nothing to compare, or if all values are 0 or missing.
func bars[Row any](title, unit string, list []Row, label func(*Row) string, value func(*Row) float64) Block {
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
		c.Series[0].Values = append(c.Series[0].Values, value(&list[i]))
	}
	return unlessEmpty(c)
}

// lines draws rows by month, a line for each of the names.
func lines[Row any](
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
	return unlessEmpty(c)
}

// monthly returns a row for each month; a zero one for a month without a row.
func monthly[Row any](months []domain.Date, rows []Row, month func(*Row) *domain.Date) []Row {
	full := make([]Row, len(months))
	next := 0
	for i, m := range months {
		if next < len(rows) && *month(&rows[next]) == m {
			full[i] = rows[next]
			next++
		}
		*month(&full[i]) = m
	}
	return full
}

// byMonth is By of charts by month.
const byMonth = "Month"

func monthText(month domain.Date) string { return month.Time().Format("Jan 2006") }

// noUsers returns a note that there are no users; nil if there are some.
func noUsers(users int) Block {
	if users > 0 {
		return nil
	}
	return Text("The client has no active users.")
}

// blocks are several blocks instead of one.
type blocks []Block

func (blocks) block() {}

// section returns a part of a document, without the nil blocks of list.
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
