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
	Title  string // "Phishing performance"
	Client string // its name
	// Period is nil for a report about the moment at which it is made.
	Period   *domain.ReportPeriod
	MadeAt   time.Time
	Sections []Section
}

// Section is a part of a document under a heading. In an XLSX file its tables are
// sheets, and its figures and texts stand on the first sheet.
type Section struct {
	Heading string
	Blocks  []Block
}

// Block is a piece of a section: Text, Figures, Chart or Table.
type Block interface{ block() }

// Text is a paragraph.
type Text string

// Figures are single numbers that stand side by side, at most four in a row.
type Figures []Figure

// Figure is a number with its label.
type Figure struct {
	Label string
	// Value is nil for none, an int, a Percent or a string.
	Value any
	// Note stands small below the value: a comparison, or what is counted; it may
	// be empty.
	Note string
	Tone Tone
}

// Percent is a percentage, from 0 to 100, where not all values are percentages.
type Percent float64

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

// Chart is a picture of numbers. In an XLSX file it is a sheet of its numbers with
// a native chart.
type Chart struct {
	Kind  ChartKind
	Title string
	// Unit follows a number: "%", or empty.
	Unit   string
	Labels []string
	// By says what Labels are, such as "Day"; empty means "Name". Keys are the labels as
	// cells of a sheet, each a domain.Date or an int; nil if the labels are texts. If By
	// is byMonth, a key is the first day of the month.
	By   string
	Keys []any
	// Series have a value for each label; a Donut has one series.
	Series []Series
	// Tones say which labels of a Donut are good or bad news; nil for a color each.
	Tones []Tone
}

// Series is a named row of numbers; NaN is no value.
type Series struct {
	Name   string
	Values []float64
}

// Table is rows under a header.
type Table struct {
	// Title is unique in the document; the XLSX sheet is named after it.
	Title   string
	Columns []Column
	// Once is the number of first columns whose cells a PDF shows only once for
	// consecutive rows that agree in all of these columns.
	Once int
	// Line formats a row as text, if pages have no room for the table and show its rows
	// as a paragraph; nil for a table.
	Line func(cells []any) string
	// Rows are read once. A cell is nil, or of the type that its column's kind
	// names. Reading them may fail.
	Rows iter.Seq2[[]any, error]
	// Empty is shown instead of a table without rows.
	Empty string
}

// Column is a column of a table.
type Column struct {
	Title string
	Kind  ColumnKind
	// Width is the share of a text column in the page's width that all columns leave
	// over; 0 is 1.
	Width int
}

// ColumnKind is what a column's cells hold.
type ColumnKind int

// The kinds, with the Go type of a cell.
const (
	TextColumn    ColumnKind = iota // string
	IntegerColumn                   // int
	NumberColumn                    // float64, one decimal
	PercentColumn                   // float64, 0 to 100
	DateColumn                      // domain.Date
	TimeColumn                      // time.Time
	YesNoColumn                     // bool
	MixedColumn                     // int or Percent, row by row
)

func (Text) block()    {}
func (Figures) block() {}
func (Chart) block()   {}
func (Table) block()   {}
