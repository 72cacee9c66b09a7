package v1compat

import (
	"partnerapi/db/reports"
	"partnerapi/domain"
	"partnerapi/idmap"
	"partnerapi/v2/api"
	"partnerapi/v2/op"
	"partnerapi/v2/v2test"
)

// requests is that a report is requested, which v1 cannot.
func requests(client, name string, kind domain.ReportType) func(*caller) answer {
	return happens(func(c *caller) {
		in := &api.RequestReportInput{}
		in.Path.ClientID, in.Body.Type = c.clientID(client), kind
		r, err := op.Call(c.tenant.Ctx, &c.API.Set, api.RequestReport, in)
		if err != nil {
			c.T.Fatal(err)
		}
		c.known[name] = c.numberOf(idmap.Report, idmap.UUID(r.ID))
	})
}

// ends is how making a report of client A ended.
func ends(name string, as domain.ReportStatus) func(*caller) answer {
	return happens(func(c *caller) {
		lease := reports.ReportLease{Client: c.clientID("A"), Report: domain.ReportID(c.uuid(idmap.Report, name))}
		if _, err := reports.FinishReport(c.T.Context(), c.DB, lease, as); err != nil {
			c.T.Fatal(err)
		}
	})
}

func reportsOf(client string) func(*caller) answer {
	return func(c *caller) answer { return c.get("reports", c.client(client)+"/reports?limit=50") }
}

// downloads shows a report, with the beginning of its link instead of all of it.
func downloads(client, report string) func(*caller) answer {
	return func(c *caller) answer {
		a := c.get("download-report", c.client(client)+"/reports/"+c.known[report])
		for _, object := range a.objects {
			if link, ok := object["download_link"].(string); ok {
				object["download_link"] = link[:len(v2test.ReportLink)]
			}
		}
		return a
	}
}

var reportSteps = []step{
	{"no reports", reportsOf("A"), shows()},
	{"one", requests("A", "risk", domain.RiskOverview), done},
	{"another", requests("A", "month", domain.MonthlyReport), done},
	{"of another client", requests("B", "foreign", domain.RiskOverview), done},
	{"the oldest first", reportsOf("A"), shows(
		fields{"report_id": "risk", "report_type": "risk_overview"}, fields{"report_id": "month", "report_type": "monthly_report"})},
	{"none to download yet", downloads("A", "risk"), shows(fields{"report_id": "risk", "report_type": "risk_overview", "download_link": nil})},
	{"one is ready", ends("risk", domain.ReportReady), done},
	{"its link", downloads("A", "risk"), shows(fields{"report_id": "risk", "download_link": v2test.ReportLink})},
	{"no links in the list", reportsOf("A"), shows(fields{"report_id": "risk", "download_link": nil}, fields{"report_id": "month"})},
	{"the other failed", ends("month", domain.ReportFailed), done},
	{"and has no link", downloads("A", "month"), shows(fields{"report_id": "month", "download_link": nil})},
	{"another client's", downloads("A", "foreign"), refuses(domain.NotFound)},
}
