package v1compat

import (
	"net/http"

	"partnerapi/domain"
	"partnerapi/idmap"
	v2 "partnerapi/v2"
	"partnerapi/v2/op"
)

// Report is a report as v1 shows it.
type Report struct {
	ReportID     idmap.TextRef[domain.ReportKind] `json:"report_id" doc:"Number of the report, as a text."`
	ReportType   string                           `json:"report_type" doc:"What the report is about."`
	CreatedDate  Time                             `json:"created_date" doc:"When the report was asked for."`
	UpdatedAt    Time                             `json:"updated_at" doc:"When the report last changed."`
	DownloadLink string                           `json:"download_link,omitempty" doc:"Address of the file, to be fetched without a key, valid for 24 hours. Left out in lists, and while the report is not ready."`
}

type listReports struct {
	Path  clientPath
	Query struct{ upTo50 }
}

type downloadReport struct {
	Path struct {
		clientPath
		ReportID idmap.Ref[domain.ReportKind] `path:"report_id" doc:"Number of the report."`
	}
	Query struct{ upTo50 }
}

func (f *Facade) reportRoutes(api *v2.API, own *v2.V1) {
	listNext(f, Meta{
		ID: "reports", Method: "GET", Path: "/clients/:client_id/reports", Status: http.StatusOK,
		Summary:     "Get Reports",
		Description: "Returns the reports of a client, by their creation.", Reordered: true,
		GivenUp: []string{"download_link", "updated_at"}, Successor: api.ListReports,
	}, own.OldReports, fromListReports, toReport, nextListReports)
	single(f, Meta{
		ID: "download-report", Method: "GET", Path: "/clients/:client_id/reports/:report_id", Status: http.StatusOK,
		Summary:     "Download Report",
		Description: "Returns a page with the one report, with the link to its file once it is ready.",
		Fails:       []int{http.StatusNotFound}, GivenUp: []string{"updated_at"},
	}, api.GetReport, fromDownloadReport, toDownload)
}

func fromListReports(in *listReports) (*v2.OldReports, *op.Paging) {
	out := &v2.OldReports{}
	out.Path.ClientID = in.Path.ClientID.ID
	return out, &out.Query.Paging
}

func nextListReports(in *v2.OldReports, _ *op.Page[v2.Report]) (any, *op.Paging) {
	out := &v2.ListReports{}
	out.Path.ClientID = in.Path.ClientID
	return out, &out.Query.Paging
}

func toReport(r v2.Report) Report {
	return Report{
		ReportID: idmap.TextRef[domain.ReportKind]{ID: r.ID}, ReportType: r.Type,
		CreatedDate: at(r.CreatedAt), UpdatedAt: at(r.UpdatedAt),
	}
}

func fromDownloadReport(in *downloadReport) *v2.GetReport {
	out := &v2.GetReport{}
	out.Path.ClientID, out.Path.ReportID = in.Path.ClientID.ID, in.Path.ReportID.ID
	return out
}

func toDownload(r *v2.ReportDetail) *Report {
	out := toReport(r.Report)
	out.DownloadLink = orEmpty(r.DownloadURL)
	return &out
}
