//go:build slow

package report_test

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/xuri/excelize/v2"

	"partnerapi/domain"
	"partnerapi/platform/report"
)

// TestFilesSayTheirDocuments reads the files of every type back. The other tests
// compare documents with what v2 answers; this one compares the files with the
// documents: pages say every text, figure and cell, in order, and sheets have the
// cells.
func TestFilesSayTheirDocuments(t *testing.T) {
	w := newWorld(t)
	w.Exec("UPDATE users SET email = replace(email, '-manufacturing', ''), manager_email = replace(manager_email, '-manufacturing', '')") // columns may be narrow
	for _, f := range domain.Frameworks {                                                                                                 // those that are not there already
		w.Do("POST", w.path("/frameworks"), w.tenant.Key, row{"framework_id": f.ID})
	}
	for _, typ := range domain.ReportTypes {
		t.Run(string(typ), func(t *testing.T) {
			said, tables := w.said(typ)
			w.with(typ, func(d *report.Document) error {
				pages := report.PagesOf(t, d, nil)
				if typ == domain.ExecutiveSummary && len(pages) != 1 {
					t.Errorf("a summary has %d pages", len(pages))
				}
				all := strings.Join(pages, "\n")
				for i, text := range said {
					at := strings.Index(all, text)
					if at < 0 {
						t.Fatalf("pages do not say %q after %q", text, said[max(0, i-5):i])
					}
					all = all[at+len(text):]
				}
				return nil
			})
			w.with(typ, func(d *report.Document) error {
				var file bytes.Buffer
				if err := report.WriteXLSX(t.Context(), &file, d); err != nil {
					return err
				}
				f, err := excelize.OpenReader(&file)
				if err != nil {
					return err
				}
				defer f.Close()
				checkSheets(t, f, d, tables)
				return nil
			})
		})
	}
}

// said is what pages are to say of a report, without spaces and without charts, and
// the cells of its tables by their titles.
func (w *world) said(typ domain.ReportType) (texts []string, tables map[string][][]any) {
	w.T.Helper()
	tables = map[string][][]any{}
	say := func(text string) { texts = append(texts, report.Squeeze(text)) }
	w.with(typ, func(d *report.Document) error {
		say(d.Title)
		say(d.Client)
		for _, s := range d.Sections {
			for _, b := range s.Blocks {
				switch b := b.(type) {
				case report.Text:
					say(string(b))
				case report.Figures:
					for _, f := range b {
						say(f.Label)
						say(report.FigureText(&f))
						say(f.Note)
					}
				case report.Table:
					var before []any // the cells of the row before
					for cells, err := range b.Rows {
						if err != nil {
							return err
						}
						tables[b.Title] = append(tables[b.Title], cells)
						if len(tables[b.Title]) > 1000 {
							continue // pages leave it out
						}
						from := 0
						if before != nil && slices.Equal(before[:b.GroupBy], cells[:b.GroupBy]) {
							from = b.GroupBy // which pages say once of such rows
						}
						before = cells
						for i := from; i < len(cells); i++ {
							text, err := b.Columns[i].PageText(cells[i])
							if err != nil {
								return err
							}
							say(text)
						}
					}
				}
			}
		}
		return nil
	})
	return texts, tables
}

// checkSheets wants a workbook to have a document's figures, and its tables' cells.
func checkSheets(t *testing.T, f *excelize.File, d *report.Document, tables map[string][][]any) {
	t.Helper()
	summary, err := f.GetRows("Summary")
	if err != nil {
		t.Fatal(err)
	}
	lines, sheets := "", map[string]string{}
	for _, line := range summary {
		lines += strings.Join(line, "|") + "|\n"
		if len(line) == 2 {
			if name, ok := strings.CutPrefix(line[1], "Sheet "); ok {
				sheets[line[0]] = name
			}
		}
	}
	texts := []string{d.Title, d.Client}
	if d.Period != nil {
		texts = append(texts, fmt.Sprintf("Period|%s|%s|", d.Period.Start, d.Period.End))
	}
	for _, s := range d.Sections {
		texts = append(texts, s.Heading)
		for _, b := range s.Blocks {
			figures, _ := b.(report.Figures)
			for _, figure := range figures {
				if !strings.Contains(lines, figure.Label+"|"+report.FigureText(&figure)+"|") {
					t.Errorf("the summary does not have %+v", figure)
				}
			}
		}
	}
	for _, text := range texts {
		if !strings.Contains(lines, text) {
			t.Errorf("the summary does not say %q", text)
		}
	}
	for title, rows := range tables {
		report.CheckRows(t, f, sheets[title], 1, len(rows), func(i int) []any { return rows[i] })
	}
}
