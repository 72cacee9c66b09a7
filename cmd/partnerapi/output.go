package main

import (
	"encoding/json"
	"fmt"
	"io"
	"sync"
	"text/tabwriter"

	"partnerapi/domain"
)

// visibleWriter is what commands write to: what comes from outside, such as the answer
// of a mail server, reaches no terminal with control characters (decisions 9). It is
// safe for concurrent use.
type visibleWriter struct {
	to io.Writer

	mu      sync.Mutex
	escaper domain.Escaper
	rest    []byte // the beginning of a character whose rest is to come
}

func newVisible(to io.Writer, isJSON bool) *visibleWriter {
	return &visibleWriter{to: to, escaper: domain.Escaper{JSON: isJSON, Lines: true}}
}

// Write writes text, visible.
func (w *visibleWriter) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	text := p
	if len(w.rest) > 0 {
		text = append(w.rest, p...)
	}
	out, left := w.escaper.Append(make([]byte, 0, len(text)), text)
	w.rest = append([]byte(nil), text[len(text)-left:]...)
	if len(out) == 0 {
		return len(p), nil
	}
	if _, err := w.to.Write(out); err != nil {
		return 0, err
	}
	return len(p), nil
}

// finish writes the beginning of a character whose rest did not come.
func (w *visibleWriter) finish() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.rest) > 0 {
		_, _ = w.to.Write(w.escaper.AppendRest(nil, w.rest)) // as fmt.Fprintln to a terminal
	}
	w.rest = nil
}

// raw is what a writer of streams writes to: for what the program itself draws.
func raw(to io.Writer) io.Writer {
	if w, ok := to.(*visibleWriter); ok {
		return w.to
	}
	return to
}

// jsonTo is a writer of streams for JSON: what has to be escaped in it is, as in JSON.
func jsonTo(to io.Writer) io.Writer {
	if w, ok := to.(*visibleWriter); ok {
		return newVisible(w.to, true)
	}
	return to
}

// asJSON writes one value as JSON for programs.
func asJSON(to io.Writer, value any) error {
	encoder := json.NewEncoder(jsonTo(to))
	encoder.SetIndent("", "  ")
	encoder.SetEscapeHTML(false)
	return encoder.Encode(value)
}

// table aligns what a command lists in columns, a line for each row whatever its cells
// hold.
type table struct {
	w    *tabwriter.Writer
	rows int
}

// flushEvery is how many rows of a table are held to align its columns.
const flushEvery = 1000

// newTable begins a table with the names of its columns.
func newTable(to io.Writer, columns ...any) *table {
	t := &table{w: tabwriter.NewWriter(to, 0, 4, 2, ' ', 0)}
	t.row(columns...)
	return t
}

// row adds a row. What cannot be written, flush reports.
func (t *table) row(cells ...any) {
	end := "\t"
	for i, cell := range cells {
		if i == len(cells)-1 {
			end = "\n"
		}
		fmt.Fprint(t.w, domain.Visible(fmt.Sprint(cell)), end)
	}
	if t.rows++; t.rows%flushEvery == 0 {
		_ = t.w.Flush() // the next write fails too
	}
}

// flush writes the rows.
func (t *table) flush() error { return t.w.Flush() }

// printList prints what a command lists: as a JSON array, or as a table of rows with
// these columns.
func printList[T any](to io.Writer, isJSON bool, list []T, columns []any, row func(T) []any) error {
	if isJSON {
		return asJSON(to, append([]T{}, list...))
	}
	t := newTable(to, columns...)
	for _, item := range list {
		t.row(row(item)...)
	}
	return t.flush()
}
