// Package report makes reports: it reads the contents of a report into a document,
// and writes the document as a PDF or as an XLSX file.
package report

import (
	"iter"
	"time"

	"partnerapi/domain"
)

// Document is the content of a report, independent of its format.
type Document struct {
	Type   domain.ReportType
	Title  string       // "Phishing performance"
	Client string       // the client's name
	Brand  domain.Brand // the client's, resolved
	// Partner is the partner's display name, which the brand of a client may override.
	Partner string
	// Period is nil for a report about the moment at which it is generated.
	Period *domain.ReportPeriod
	// Before is the period that the changes of figures compare with; nil if there are none.
	Before   *domain.ReportPeriod
	MadeAt   time.Time
	Sections []Section
}

// Section is a part of a document under a heading. In an XLSX file each of its tables and
// charts is a sheet, and its figures and texts are on the first sheet.
type Section struct {
	Heading string
	// OnNewPage is true for a section that begins a page of a PDF.
	OnNewPage bool
	Blocks    []Block
}

// Block is a piece of a section: Text, Figures, Chart or Table.
type Block interface{ block() }

// Text is a paragraph.
type Text string

// Figures are single numbers, on a page side by side, at most four in a row.
type Figures []Figure

// Figure is a number with its label.
type Figure struct {
	Label string
	// Value is nil for none, an int, a Percent, a WholePercent or a string.
	Value any
	// Note is written small below the value, and says what is counted; it may be empty.
	Note string
	Tone Tone
	// Change compares the value with that of the period before.
	Change Change
}

// Change is the change of a figure since the period before. Text is empty if there is nothing to compare with. Verdict
// is Good for a change to the better, Bad for one to the worse, and Neutral for one that is neither.
type Change struct {
	Text    string
	Verdict Tone
}

// Percent is a percentage, from 0 to 100. The type distinguishes it from other numbers.
type Percent float64

// WholePercent is a percentage of fewer than 100 things, which is shown without decimals.
type WholePercent float64

// Whole is a number that is shown without decimals.
type Whole float64

// Word is a word of the report itself, not a text of the client. An XLSX file has it as programs read it; pages may
// word it differently (onPage).
type Word string

// Tone says whether a figure is good or bad news.
type Tone int

// The tones.
const (
	Neutral Tone = iota
	Good
	Warning
	Bad
)

// ChartKind is the form of a chart.
type ChartKind int

// The forms: a trend, a comparison, a share of a whole.
const (
	Line ChartKind = iota
	Bar
	Donut
)

// Chart is a chart of numbers. In an XLSX file it is a sheet of its numbers with a native chart.
type Chart struct {
	Kind  ChartKind
	Title string
	// Unit follows a number: "%", or empty.
	Unit   string
	Labels []string
	// By is the title of the column of labels, such as "Day"; empty means "Name". Keys are
	// the labels as cells of a sheet, each a domain.Date or an int; nil if the labels are
	// texts. If By is byMonth, a key is the first day of the month.
	By   string
	Keys []any
	// Series have a value for each label; a Donut has one series.
	Series []Series
	// Tones are the tones of a Donut's labels; nil for its own color for each label.
	Tones []Tone
	// Numbers are the texts of the values of a Bar chart with one series; nil to format the values.
	Numbers []string
	// Grades is true for a Line chart of risk scores, which are drawn on the bands of the grades.
	Grades bool
}

// Series is a named list of numbers; NaN means no value.
type Series struct {
	Name   string
	Values []float64
}

// Table is rows under a header.
type Table struct {
	// Title is unique in the document; the XLSX sheet is named after it.
	Title   string
	Columns []Column
	// GroupBy is the number of first columns whose cells a PDF shows only once for consecutive rows that agree in
	// all of these columns.
	GroupBy int
	// Line, if not nil, formats a row as text: a PDF then shows the rows as a paragraph instead of a table.
	Line func(cells []any) string
	// Rows can be ranged over once. A cell is nil, or of the type of its column's kind
	// (see ColumnKind). Reading rows may fail.
	Rows iter.Seq2[[]any, error]
	// Empty is shown instead of a table without rows.
	Empty string
}

// Column is a column of a table.
type Column struct {
	Title string
	Kind  ColumnKind
	// Width is the share of a text column in the page's width that the other columns leave; 0 means 1.
	Width int
}

// ColumnKind is the type of a column's cells.
type ColumnKind int

// The kinds, with the Go type of a cell.
const (
	TextColumn   ColumnKind = iota // string or Word
	NumberColumn                   // int, float64 (shown with one decimal), Whole, Percent or WholePercent
	DateColumn                     // domain.Date
	TimeColumn                     // time.Time
	YesNoColumn                    // bool
)

func (Text) block()    {}
func (Figures) block() {}
func (Chart) block()   {}
func (Table) block()   {}
