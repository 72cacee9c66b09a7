package report_test

import (
	"bytes"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

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
	w := twoClients(t)
	w.history(w.client, 120)
	w.adopt("nist_csf", "hipaa")
	for _, typ := range domain.ReportTypes {
		t.Run(string(typ), func(t *testing.T) {
			said, tables := w.said(typ)
			w.with(typ, func(d *report.Document) error {
				all := strings.Join(report.PagesOf(t, d, report.Options{}), "\n")
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
	w := twoClients(t)
	w.adopt("nist_csf", "hipaa")
	before := map[domain.ReportType]read{}
	for _, typ := range domain.ReportTypes {
		before[typ] = w.document(typ, nil)
	}
	for _, table := range []string{"users", "assignments", "phishing_results", "reported_emails", "policies",
		"policy_signatures", "exposures", "framework_assignments", "groups", "collection_members"} {
		w.Exec(`DO $$ DECLARE row record; BEGIN
			SET LOCAL session_replication_role = replica; -- no triggers
			FOR row IN SELECT ctid FROM ` + table + ` ORDER BY ctid DESC LOOP -- a row that is written goes to the end
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
						if before != nil && slices.Equal(before[:b.Once], cells[:b.Once]) {
							from = b.Once // which pages say once of such rows
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
	for _, s := range d.Sections {
		for _, b := range s.Blocks {
			figures, _ := b.(report.Figures)
			for _, figure := range figures {
				if !strings.Contains(lines, figure.Label+"|"+report.FigureText(&figure)+"|") {
					t.Errorf("the summary does not have %+v", figure)
				}
			}
		}
	}
	for title, rows := range tables {
		report.CheckRows(t, f, sheets[title], 1, len(rows), func(i int) []any { return rows[i] })
	}
}

// adopt assigns frameworks to all users of the client by v2.
func (w *world) adopt(frameworks ...string) {
	w.T.Helper()
	for _, id := range frameworks {
		w.Do("POST", w.path("/frameworks"), w.tenant.Key, row{"framework_id": id}).Want(201)
	}
}

// TestComplianceOfFrameworks: the report shows the evaluations that GET frameworks
// shows, of frameworks that are evaluated of what the client has.
func TestComplianceOfFrameworks(t *testing.T) {
	w := twoClients(t)
	w.adopt("nist_csf", "hipaa", "cis_v8")
	w.Clock.Advance(2 * domain.SummaryAge) // all are stale
	d := w.document(domain.ComplianceReport, nil)

	met, total := 0, 0
	var frameworks []row
	var evaluated []time.Time
	for _, f := range list[api.FrameworkAssignment](w, w.path("/frameworks")) {
		e := f.Evaluation
		met, total = met+e.Met, total+e.Total
		frameworks = append(frameworks, row{"Framework": f.Framework.Name, "Category": f.Framework.Category, "Audience": "All users",
			"Met": e.Met, "Of": e.Total, "Share": float64(e.Percentage)})
		evaluated = append(evaluated, e.EvaluatedAt.Time)
		rows := d.tables[f.Framework.Name]
		if len(rows) != len(e.Requirements) || len(rows) == 0 {
			t.Fatalf("%s has %d requirements, not %d", f.Framework.Name, len(rows), len(e.Requirements))
		}
		for i, r := range e.Requirements {
			if rows[i]["Requirement"] != r.Name || rows[i]["Met"] != r.Met || rows[i]["Detail"] != r.Detail ||
				(rows[i]["Measured"] == nil) != (r.Value == nil) {
				t.Errorf("%s: %v, not %+v", f.Framework.Name, rows[i], r)
			}
		}
	}
	if met == 0 || met == total {
		t.Errorf("the test is of %d requirements of %d", met, total)
	}
	for i, r := range d.tables["Frameworks"] {
		if at := r["Evaluated (UTC)"].(time.Time); !at.Equal(evaluated[i]) || !at.Equal(w.Clock.Now()) {
			t.Errorf("%v was evaluated at %v, not %v", r["Framework"], at, evaluated[i])
		}
		delete(r, "Evaluated (UTC)")
	}
	same(t, "frameworks", d.tables["Frameworks"], frameworks)
	d.figure(t, "Requirements", met)
	summary := w.document(domain.ExecutiveSummary, nil)
	summary.figure(t, "Framework requirements", met)
	for i := range frameworks {
		delete(frameworks[i], "Category")
		delete(frameworks[i], "Audience")
	}
	same(t, "frameworks of the summary", summary.tables["Frameworks"], frameworks)
}
