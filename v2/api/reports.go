package api

import (
	"partnerapi/domain"
	"partnerapi/v2/op"
)

// Report is a report as v2 shows it.
type Report struct {
	ID        domain.ReportID     `json:"id" doc:"Opaque id of the report."`
	ClientID  domain.ClientID     `json:"client_id" doc:"The client that the report is about."`
	Type      string              `json:"type" doc:"What the report is about. An open list: executive_summary, risk_overview, phishing_overview, training_overview, training_performance, employee_history, course_details, compliance, policy, policy_acknowledgment, dark_web, monthly_report, training_status_report, manager_dept_training_report, phishing_performance, global_health_report."`
	Format    domain.ReportFormat `json:"format" doc:"Format of the file."`
	Status    domain.ReportStatus `json:"status" doc:"pending until the file is made; failed where making it failed three times."`
	Period    *ReportPeriod       `json:"period" doc:"The days that the report covers. Null for a report about the moment at which it is made."`
	CreatedAt domain.Time         `json:"created_at" doc:"When the report was asked for."`
	UpdatedAt domain.Time         `json:"updated_at" since:"2.4" doc:"When its status last changed."`
}

// ReportPeriod is a range of days (UTC), including both.
type ReportPeriod struct {
	StartOn domain.Date `json:"start_on" doc:"First day (UTC)."`
	EndOn   domain.Date `json:"end_on" doc:"Last day (UTC), included."`
}

// ReportDetail is a report with the link to its file.
type ReportDetail struct {
	Report
	DownloadURL *string `json:"download_url" format:"uri" doc:"Address of the file, to be fetched without a key, valid for 24 hours from this call. Null unless the status is ready."`
}

// The operations on reports.
var (
	RequestReport = op.Declare[RequestReportInput, Report](op.Meta{
		ID: "reports.create", Method: "POST", Path: "/clients/:client_id/reports",
		Scope: domain.Write, Since: op.V2_2, Status: 201,
		Summary: "Request a report",
		Description: "Queues a report, which is made in the background: read it until its status is `ready`, then use its " +
			"`download_url`. A client can be reported on five times an hour; more often is 429.",
	})
	ListReports = op.DeclareList[ListReportsInput, Report](op.Meta{
		ID: "reports.list", Starred: true, Method: "GET", Path: "/clients/:client_id/reports",
		Scope: domain.Read, Since: op.V2_1, Status: 200,
		Summary:     "List the reports of a client",
		Description: "Returns the reports of a client, newest first. They are kept for 90 days.",
		Columns:     []string{"id", "type", "format", "status", "period.start_on", "period.end_on"},
	})
	GetReport = op.Declare[GetReportInput, ReportDetail](op.Meta{
		ID: "reports.get", Method: "GET", Path: "/clients/:client_id/reports/:report_id",
		Scope: domain.Read, Since: op.V2_1, Status: 200,
		Summary: "Read a report",
		Description: "Returns one report, with the link to its file once the status is `ready`. The link holds for 24 " +
			"hours and needs no key.",
	})
)

// RequestReportInput asks for a report to be made.
type RequestReportInput struct {
	Path ClientPath
	Body struct {
		Type   domain.ReportType   `json:"type" validate:"required,enum" doc:"What the report is about. Later releases may add types."`
		Period *ReportPeriod       `json:"period,omitzero" doc:"The days to cover, for types that have a period: phishing_overview, phishing_performance, training_overview, training_performance, employee_history, dark_web, executive_summary, monthly_report, global_health_report. Neither end is in the future, and there are at most 366 days. Default: the 90 days that end today; of monthly_report, the last calendar month."`
		Format domain.ReportFormat `json:"format,omitzero" validate:"omitempty,enum" default:"pdf" doc:"Format of the file."`
	}
}

// ListReportsInput asks for a page of a client's reports, newest first.
type ListReportsInput struct {
	Path  ClientPath
	Query struct {
		op.Paging
		Type         domain.ReportType   `query:"type" validate:"omitempty,enum" doc:"Only reports of this type."`
		Status       domain.ReportStatus `query:"status" validate:"omitempty,enum" doc:"Only reports in this state."`
		UpdatedSince *domain.Time        `query:"updated_since" doc:"Only reports that were asked for, made or failed at or after this time."`
	}
}

// GetReportInput asks for one report.
type GetReportInput struct {
	Path struct {
		ClientPath
		ReportID domain.ReportID `path:"report_id" doc:"Opaque id of the report."`
	}
}
