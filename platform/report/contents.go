package report

import (
	"fmt"
	"iter"
	"math"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/language"
	"golang.org/x/text/message"

	"partnerapi/domain"
)

// cellsOf are the rows of a table, made of what a sequence yields.
func cellsOf[Row any](seq iter.Seq2[Row, error], cells func(*Row) []any) iter.Seq2[[]any, error] {
	return func(yield func([]any, error) bool) {
		for row, err := range seq {
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

// listed is a list as a sequence.
func listed[Row any](list []Row) iter.Seq2[Row, error] {
	return func(yield func(Row, error) bool) {
		for _, row := range list {
			if !yield(row, nil) {
				return
			}
		}
	}
}

// personCount is how many columns say whom a row is about.
const personCount = 3

// personColumns are the columns that say whom a row is about, and more.
func personColumns(more ...Column) []Column {
	person := []Column{{Title: "Name", Width: 3}, {Title: "Email", Width: 4}, {Title: "Department", Width: 2}}
	return append(person, more...)
}

// personCells are the cells of personColumns.
func personCells(p *domain.Person, more ...any) []any {
	return append([]any{p.Name(), p.Email, optional(p.Department)}, more...)
}

func optional(text *string) any {
	if text == nil {
		return nil
	}
	return *text
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

// rateOf is a percentage as a cell, nil of nothing.
func rateOf(part, whole int) any {
	if whole == 0 {
		return nil
	}
	return domain.Percent(part, whole)
}

// rateIn is a percentage in a chart, no value of nothing.
func rateIn(part, whole int) float64 {
	if whole == 0 {
		return math.NaN()
	}
	return domain.Percent(part, whole)
}

var english = message.NewPrinter(language.English)

func countText(n int) string { return english.Sprintf("%d", n) }

func rateText(rate float64) string { return english.Sprintf("%.1f%%", rate) }

// countFigure is a number, with a note of further ones.
func countFigure(label string, n int, note string, numbers ...any) Figure {
	return Figure{Label: label, Value: n, Note: english.Sprintf(note, numbers...)}
}

// rateFigure is a percentage, toned by how it compares to what is good and what is
// fair, of which the good is the higher where more is better. It is a part of things
// that are named in the singular.
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

// badIfAny tones a figure of what there should be none of.
func badIfAny(f Figure, n int) Figure {
	if f.Tone = Good; n > 0 {
		f.Tone = Bad
	}
	return f
}

// drawn is a chart, or nothing where it would be empty.
func drawn(c Chart) []Block {
	for _, series := range c.Series {
		for _, value := range series.Values {
			if value != 0 && !math.IsNaN(value) {
				return []Block{c}
			}
		}
	}
	return nil
}

// donut draws the shares of a whole: a label, a tone and a number each.
func donut(title string, labels []string, tones []Tone, numbers ...int) []Block {
	values := make([]float64, len(numbers))
	for i, n := range numbers {
		values[i] = float64(max(n, 0))
	}
	return drawn(Chart{Kind: Donut, Title: title, Labels: labels, Series: []Series{{Values: values}}, Tones: tones})
}

// bars draws the first rows of a list, one bar each. One bar is no comparison.
func bars[Row any](title, unit string, list []Row, label func(*Row) string, value func(*Row) float64) []Block {
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
	return drawn(c)
}

// lines draws rows by month, a line for each of the names.
func lines[Row any](
	title, unit string, months []domain.Date, rows []Row, names []string, values func(*Row) []float64,
) []Block {
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
	return drawn(c)
}

// monthly has a row for each month, the zero one where there is none.
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

// noUsers says that there are no users, where that is so.
func noUsers(users int) []Block {
	if users > 0 {
		return nil
	}
	return []Block{Text("The client has no active users.")}
}

// section is a part of a document, made of blocks that some helpers return as lists.
func section(heading string, blocks ...[]Block) Section {
	s := Section{Heading: heading}
	for _, list := range blocks {
		s.Blocks = append(s.Blocks, list...)
	}
	return s
}

func one(b Block) []Block { return []Block{b} }
