package v1compat

import (
	"partnerapi/db/reports"
	"partnerapi/domain"
	"partnerapi/v2/api"
	"partnerapi/v2/op"
)

// asks is that a report is asked for, which v1 cannot.
func asks(client, name string, kind domain.ReportType) func(*actor) answer {
	return each(func(a *actor) {
		in := &api.RequestReportInput{}
		a.scan(&in.Path.ClientID, client)
		in.Body.Type = kind
		r, err := op.Call(a.tenant.Ctx, &a.API.Set, api.RequestReport, in)
		if err != nil {
			a.T.Fatal(err)
		}
		a.known[name] = r.ID.UUID()
	})
}

// ends is how making a report of client A ended.
func ends(name string, as domain.ReportStatus) func(*actor) answer {
	return each(func(a *actor) {
		var client domain.ClientID
		var report domain.ReportID
		a.scan(&client, "A")
		a.scan(&report, name)
		if _, err := reports.FinishReport(a.T.Context(), a.DB, reports.ReportLease{Client: client, Report: report}, as); err != nil {
			a.T.Fatal(err)
		}
	})
}

func reportsOf(client string) func(*actor) answer {
	return func(a *actor) answer { return a.reports(a.known[client]) }
}

func downloads(client, report string) func(*actor) answer {
	return func(a *actor) answer { return a.download(a.known[client], a.someone(report)) }
}

var reportSteps = []step{
	{"no reports", reportsOf("A"), shows()},
	{"one", asks("A", "risk", domain.RiskOverview), done},
	{"another", asks("A", "month", domain.MonthlyReport), done},
	{"of another client", asks("B", "foreign", domain.RiskOverview), done},
	{"the oldest first", reportsOf("A"), shows(
		fields{"id": "risk", "type": "risk_overview", "link": false}, fields{"id": "month", "type": "monthly_report", "link": false})},
	{"none to download yet", downloads("A", "risk"), shows(fields{"id": "risk", "type": "risk_overview", "link": false})},
	{"one is ready", ends("risk", domain.ReportReady), done},
	{"its link", downloads("A", "risk"), shows(fields{"id": "risk", "link": true})},
	{"no links in the list", reportsOf("A"), shows(fields{"id": "risk", "link": false}, fields{"id": "month", "link": false})},
	{"the other failed", ends("month", domain.ReportFailed), done},
	{"and has no link", downloads("A", "month"), shows(fields{"id": "month", "link": false})},
	{"another client's", downloads("A", "foreign"), refuses(domain.NotFound)},
	{"nobody's", downloads("A", "none"), refuses(domain.NotFound)},
	{"a stranger's client", downloads("theirs", "risk"), refuses(domain.NotFound)},
	{"a stranger's list", reportsOf("theirs"), refuses(domain.NotFound)},
}

func reportViews(a *actor, x surface) map[string]answer {
	shown := map[string]answer{}
	for _, client := range []string{"A", "B"} {
		if id, ok := a.known[client]; ok {
			shown["reports of "+client] = x.reports(id)
		}
	}
	for _, report := range []string{"risk", "month"} {
		if id, ok := a.known[report]; ok {
			shown["the report "+report] = x.download(a.known["A"], id)
		}
	}
	return shown
}
