package report_test

import (
	"fmt"
	"math"
	"reflect"
	"strings"
	"testing"

	"partnerapi/domain"
	"partnerapi/platform/report"
	"partnerapi/v2/api"
)

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
		summarized = append(summarized, row{"Framework": title, "Met": e.Met, "Of": e.Total, "Share": report.WholePercent(e.Percentage)})
		frameworks = append(frameworks, row{"Framework": f.Framework.Name, "Category": f.Framework.Category, "Audience": audience,
			"Met": e.Met, "Of": e.Total, "Share": report.WholePercent(e.Percentage), "Evaluated (UTC)": e.EvaluatedAt.Time})
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
				if *v == math.Trunc(*v) {
					return report.WholePercent(*v)
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

	w.client = w.AddClient(w.tenant, "New").ID
	if d := w.document(domain.ComplianceReport, nil); !strings.Contains(d.texts, "No framework is assigned") {
		t.Errorf("without frameworks it says %q", d.texts)
	}
}
