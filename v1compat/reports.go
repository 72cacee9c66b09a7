package v1compat

import (
	"net/http"

	"partnerapi/domain"
	"partnerapi/idmap"
	"partnerapi/v2/api"
)

// Report is v1's form of a report.
type Report struct {
	ReportID     idmap.TextRef[domain.ReportKind] `json:"report_id" doc:"Numeric ID of the report, as a string."`
	ReportType   string                           `json:"report_type" doc:"What the report is about."`
	CreatedDate  Time                             `json:"created_date" doc:"When the report was requested."`
	UpdatedAt    Time                             `json:"updated_at" doc:"When the report last changed."`
	DownloadLink string                           `json:"download_link,omitempty" doc:"URL of the file, valid for 24 hours. The download requires no API key. Omitted in lists and until the report is ready."`
}

type listReports struct {
	Path  clientPath
	Query struct{ upTo50 }
}

type downloadReport struct {
	Path struct {
		clientPath
		ReportID idmap.Ref[domain.ReportKind] `path:"report_id" doc:"Numeric ID of the report."`
	}
	Query struct{ upTo50 }
}

// addReportRoutes adds the routes of reports.
func (f *Facade) addReportRoutes() {
	addList[listReports](f, Meta{
		ID: "reports", Method: "GET", Path: "/clients/:client_id/reports", Status: http.StatusOK,
		Summary:     "Get Reports",
		Description: "Returns the client's reports in order of creation.", Reordered: true,
		GivenUp: []string{"download_link"}, Successor: api.ListReports,
	}, api.OldReports, nil, toReport, nil)
	addSingle[downloadReport](f, Meta{
		ID: "download-report", Method: "GET", Path: "/clients/:client_id/reports/:report_id", Status: http.StatusOK,
		Summary:     "Download Report",
		Description: "Returns a page that contains only this report, with the download link once the file is ready.",
		Fails:       []int{http.StatusNotFound},
	}, api.GetReport, toDownload)
}

func toReport(r api.Report) Report {
	return Report{
		ReportID: idmap.TextRef[domain.ReportKind]{ID: r.ID}, ReportType: r.Type,
		CreatedDate: at(r.CreatedAt), UpdatedAt: at(r.UpdatedAt),
	}
}

func toDownload(r *api.ReportDetail) *Report {
	out := toReport(r.Report)
	out.DownloadLink = domain.OrZero(r.DownloadURL)
	return &out
}
