package report_test

import (
	"bytes"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/xuri/excelize/v2"

	"partnerapi/domain"
	"partnerapi/platform/report"
	"partnerapi/v2/api"
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

// TestOrderOfRows: what rows say decides their order, and not where the database
// keeps them or how it looks for them. Many events have the same time.
func TestOrderOfRows(t *testing.T) {
	w := newWorld(t)
	before := map[domain.ReportType]read{}
	for _, typ := range domain.ReportTypes {
		before[typ] = w.document(typ, nil)
	}
	for _, table := range []string{"users", "assignments", "phishing_results", "reported_emails", "policies",
		"policy_signatures", "exposures", "framework_assignments", "groups", "collection_members"} {
		w.Exec(`DO $$ DECLARE row record; BEGIN
			SET LOCAL session_replication_role = replica; -- no triggers
			FOR row IN SELECT ctid FROM ` + table + ` WHERE client_id = '` + w.client.UUID() + `' ORDER BY ctid DESC LOOP -- a row that is written goes to the end
				UPDATE ` + table + ` SET client_id = client_id WHERE ctid = row.ctid;
			END LOOP;
		END $$`)
		w.Exec("VACUUM FULL ANALYZE " + table)
	}
	for _, typ := range domain.ReportTypes {
		for title, rows := range w.document(typ, nil).tables {
			if !reflect.DeepEqual(rows, before[typ].tables[title]) {
				t.Errorf("%s: the rows of %q come in another order", typ, title)
			}
		}
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

// TestCompliance: the report shows the evaluations that GET frameworks shows, of
// frameworks that are evaluated of what the client has.
func TestCompliance(t *testing.T) {
	w := newWorld(t)
	w.Exec("UPDATE framework_assignments SET audience_id = gen_random_uuid() WHERE audience_type = 'collection'") // is deleted
	w.Clock.Advance(2 * domain.SummaryAge)                                                                        // all are stale
	d := w.document(domain.ComplianceReport, nil)

	met, total := 0, 0
	var frameworks, summarized []row
	for _, f := range list[api.FrameworkAssignment](w, w.path("/frameworks")) {
		e, title, audience := f.Evaluation, f.Framework.Name, "All users"
		if f.Audience.Type != domain.FrameworkForAll {
			audience = "a deleted collection"
			if f.Audience.Name != nil {
				audience = *f.Audience.Name
			}
			title += ", " + audience
		}
		met, total = met+e.Met, total+e.Total
		summarized = append(summarized, row{"Framework": title, "Met": e.Met, "Of": e.Total, "Share": report.Percent(e.Percentage)})
		frameworks = append(frameworks, row{"Framework": f.Framework.Name, "Category": f.Framework.Category, "Audience": audience,
			"Met": e.Met, "Of": e.Total, "Share": report.Percent(e.Percentage), "Evaluated (UTC)": e.EvaluatedAt.Time})
		if !e.EvaluatedAt.Time.Equal(w.Clock.Now()) {
			t.Errorf("%s was evaluated at %v", title, e.EvaluatedAt)
		}
		var requirements []row
		for _, r := range e.Requirements {
			number := func(v *float64) any {
				switch {
				case v == nil:
					return nil
				case r.Key == domain.ComplianceReports:
					return int(*v)
				}
				return report.Percent(*v)
			}
			wanted := map[bool]string{true: "at most", false: "at least"}[r.Key == "P2"]
			requirements = append(requirements, row{"Requirement": r.Name, "Met": r.Met, "Measured": number(r.Value), "Wanted": wanted,
				"Target": number(r.Target), "Detail": r.Detail})
		}
		same(t, title, d.tables[title], requirements)
	}
	same(t, "frameworks", d.tables["Frameworks"], frameworks)
	if d.figure(t, "Requirements", met); met == 0 || met == total || !strings.Contains(fmt.Sprint(frameworks), "a deleted collection") {
		t.Errorf("the test is of %d requirements of %d, and of %v", met, total, frameworks)
	}
	summary := w.document(domain.ExecutiveSummary, nil)
	summary.figure(t, "Framework requirements", met)
	same(t, "frameworks of the summary", summary.tables["Frameworks"], summarized)

	w.client = w.Client(w.tenant, "New").ID
	if d := w.document(domain.ComplianceReport, nil); !strings.Contains(d.texts, "follows no framework") {
		t.Errorf("without frameworks it says %q", d.texts)
	}
}
