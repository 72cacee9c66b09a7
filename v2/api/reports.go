package api

import (
	"partnerapi/domain"
	"partnerapi/v2/op"
)

// Report is a report as v2 shows it.
type Report struct {
	ID        domain.ReportID     `json:"id" doc:"Opaque ID of the report."`
	ClientID  domain.ClientID     `json:"client_id" doc:"The client that the report is about."`
	Type      string              `json:"type" doc:"What the report is about. Later releases may add types to this list: executive_summary, risk_overview, phishing_overview, training_overview, training_performance, employee_history, course_details, compliance, policy, policy_acknowledgment, dark_web, monthly_report, training_status_report, manager_dept_training_report, phishing_performance, global_health_report."`
	Format    domain.ReportFormat `json:"format" doc:"Format of the file."`
	Status    domain.ReportStatus `json:"status" doc:"Status of the file. pending: the file has not been generated yet; failed: generation failed three times."`
	Period    *ReportPeriod       `json:"period" doc:"The days that the report covers. Null if the report shows the state at the time it was generated."`
	CreatedAt domain.Time         `json:"created_at" doc:"When the report was requested."`
	UpdatedAt domain.Time         `json:"updated_at" since:"2.4" doc:"When the status last changed."`
}

// ReportPeriod is a range of days (UTC), including both.
type ReportPeriod struct {
	StartOn domain.Date `json:"start_on" doc:"First day (UTC)."`
	EndOn   domain.Date `json:"end_on" doc:"Last day (UTC), inclusive."`
}

// ReportDetail is a report with the link to its file.
type ReportDetail struct {
	Report
	DownloadURL *string `json:"download_url" format:"uri" doc:"URL of the file, valid for 24 hours after this call. The download requires no API key. Null unless status is ready."`
}

// The operations on reports.
var (
	RequestReport = op.Declare[RequestReportInput, Report](op.Meta{
		ID: "reports.create", Method: "POST", Path: "/clients/:client_id/reports",
		Scope: domain.Write, Since: op.V2_2, Status: 201,
		Summary: "Request a report",
		Description: "Queues a report, which the service generates in the background; if you request more than five an hour for a client, " +
			"the operation returns 429. Poll the report until its status is `ready`, then download the file from `download_url`.",
	})
	ListReports = op.DeclareList[ListReportsInput, Report](op.Meta{
		ID: "reports.list", Starred: true, Method: "GET", Path: "/clients/:client_id/reports",
		Scope: domain.Read, Since: op.V2_1, Status: 200,
		Summary:     "List reports",
		Description: "Returns the client's reports, newest first. Reports are kept for 90 days.",
		Columns:     []string{"id", "type", "format", "status", "period.start_on", "period.end_on"},
	})
	GetReport = op.Declare[GetReportInput, ReportDetail](op.Meta{
		ID: "reports.get", Method: "GET", Path: "/clients/:client_id/reports/:report_id",
		Scope: domain.Read, Since: op.V2_1, Status: 200,
		Summary: "Get a report",
		Description: "Returns the report, with a download link once its status is `ready`. The link is valid for 24 hours and " +
			"requires no API key.",
	})
)

// RequestReportInput requests a report.
type RequestReportInput struct {
	Path ClientPath
	Body struct {
		Type   domain.ReportType   `json:"type" validate:"required,enum" doc:"What the report is about. Later releases may add types."`
		Period *ReportPeriod       `json:"period,omitzero" doc:"The days to cover, for types with a period: phishing_overview, phishing_performance, training_overview, training_performance, employee_history, dark_web, executive_summary, monthly_report, global_health_report. The period cannot include future days or exceed 366 days. Default: the 90 days that end today or, for monthly_report, the last calendar month."`
		Format domain.ReportFormat `json:"format,omitzero" validate:"omitempty,enum" default:"pdf" doc:"Format of the file."`
	}
}

// ListReportsInput asks for a page of a client's reports, newest first.
type ListReportsInput struct {
	Path  ClientPath
	Query struct {
		op.Paging
		Type         domain.ReportType   `query:"type" validate:"omitempty,enum" doc:"Only reports of this type."`
		Status       domain.ReportStatus `query:"status" validate:"omitempty,enum" doc:"Only reports with this status."`
		UpdatedSince *domain.Time        `query:"updated_since" doc:"Only reports that were requested or whose status changed at or after this time."`
	}
}

// GetReportInput asks for one report.
type GetReportInput struct {
	Path struct {
		ClientPath
		ReportID domain.ReportID `path:"report_id" doc:"Opaque ID of the report."`
	}
}
