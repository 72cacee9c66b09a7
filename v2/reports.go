package v2

import (
	"context"

	"partnerapi/db"
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

	// UpdatedAt is for v1.
	UpdatedAt domain.Time `json:"-"`
}

// ReportPeriod is a range of days (UTC), both ends counted.
type ReportPeriod struct {
	StartOn domain.Date `json:"start_on" doc:"First day (UTC)."`
	EndOn   domain.Date `json:"end_on" doc:"Last day (UTC), included."`
}

// ReportDetail is a report with the link to its file.
type ReportDetail struct {
	Report
	DownloadURL *string `json:"download_url" format:"uri" doc:"Address of the file, to be fetched without a key, valid for 24 hours from this call. Null unless the status is ready."`
}

func reportOf(r domain.Report) Report {
	out := Report{
		ID: r.ID, ClientID: r.Client, Type: string(r.Type), Format: r.Format, Status: r.Status,
		CreatedAt: domain.At(r.CreatedAt), UpdatedAt: domain.At(r.UpdatedAt),
	}
	if r.Period != nil {
		out.Period = &ReportPeriod{StartOn: r.Period.Start, EndOn: r.Period.End}
	}
	return out
}

// ReportLinks returns the address of the file of a report that is ready, valid from
// now on for domain.ReportLinkLife.
type ReportLinks func(domain.Report) string

// WithReportLinks shows where the files of reports are. Without it no report has a
// download_url.
func WithReportLinks(links ReportLinks) Option { return func(a *API) { a.reportLinks = links } }

func (a *API) declareReports() {
	a.RequestReport = op.Add(&a.Set, op.Meta{
		ID: "reports.create", Method: "POST", Path: "/clients/:client_id/reports",
		Scope: domain.Write, Since: op.V2_2, Status: 201,
		Summary: "Request a report",
		Description: "Queues a report, which is made in the background: read it until its status is `ready`, then use its " +
			"`download_url`. A client can be reported on five times an hour; more often is 429.",
	}, a.requestReport)
	a.ListReports = op.AddList(&a.Set, op.Meta{
		ID: "reports.list", Starred: true, Method: "GET", Path: "/clients/:client_id/reports",
		Scope: domain.Read, Since: op.V2_1, Status: 200,
		Summary:     "List the reports of a client",
		Description: "Returns the reports of a client, newest first. They are kept for 90 days.",
		Columns:     []string{"id", "type", "format", "status", "period.start_on", "period.end_on"},
	}, a.listReports, reportOf)
	a.GetReport = op.Add(&a.Set, op.Meta{
		ID: "reports.get", Method: "GET", Path: "/clients/:client_id/reports/:report_id",
		Scope: domain.Read, Since: op.V2_1, Status: 200,
		Summary: "Read a report",
		Description: "Returns one report, with the link to its file once the status is `ready`. The link holds for 24 " +
			"hours and needs no key.",
	}, a.getReport)
}

// RequestReport asks for a report to be made.
type RequestReport struct {
	Path clientPath
	Body struct {
		Type   domain.ReportType   `json:"type" validate:"required,enum" doc:"What the report is about. Later releases may add types."`
		Period *ReportPeriod       `json:"period,omitzero" doc:"The days to cover, for types that have a period: phishing_overview, phishing_performance, training_overview, training_performance, employee_history, dark_web, executive_summary, monthly_report, global_health_report. Neither end is in the future, and there are at most 366 days. Default: the 90 days that end today; of monthly_report, the last calendar month."`
		Format domain.ReportFormat `json:"format,omitzero" validate:"omitempty,enum" default:"pdf" doc:"Format of the file."`
	}
}

// report is what is asked for, on a day; InvalidRequest for a period that the type
// does not take.
func (in *RequestReport) report(today domain.Date) (domain.Report, error) {
	r := domain.Report{
		ID: db.NewID[domain.ReportKind](), Client: in.Path.ClientID, Type: in.Body.Type, Format: in.Body.Format,
		Status: domain.ReportPending,
	}
	if r.Format == "" {
		r.Format = domain.PDF
	}
	switch asked := in.Body.Period; {
	case asked != nil:
		period, faults := asked.period(r.Type, today)
		if len(faults) > 0 {
			return r, domain.ErrInvalidFields(faults)
		}
		r.Period = &period
	case r.Type.HasPeriod():
		r.Period = new(r.Type.DefaultPeriod(today))
	}
	return r, nil
}

// period is the period for a report of the type, and what is wrong with it.
func (p *ReportPeriod) period(t domain.ReportType, today domain.Date) (domain.ReportPeriod, []domain.FieldError) {
	out := domain.ReportPeriod{Start: p.StartOn, End: p.EndOn}
	var faults []domain.FieldError
	for _, end := range []struct {
		field string
		day   domain.Date
	}{{"period.start_on", p.StartOn}, {"period.end_on", p.EndOn}} {
		if end.day.IsZero() && t.HasPeriod() {
			faults = append(faults, domain.FieldError{Field: end.field, Message: "is required"})
		}
	}
	if faults != nil {
		return out, faults
	}
	return out, t.CheckPeriod(out, today)
}

func (a *API) requestReport(ctx context.Context, in *RequestReport) (*Report, error) {
	r, err := in.report(domain.DateOf(a.db.Now()))
	if err != nil {
		return nil, err
	}
	err = a.db.Change(ctx, func(ctx context.Context, c *db.Change) error {
		t, err := c.LockTenant(ctx, in.Path.ClientID)
		if err != nil {
			return err
		}
		if r.Type == domain.DarkWebReport && !t.DarkWebMonitoring {
			return domain.ErrNoDarkWeb()
		}
		r.CreatedAt, r.UpdatedAt = c.At, c.At
		return t.InsertReport(ctx, c, r)
	})
	if err != nil {
		return nil, err
	}
	return new(reportOf(r)), nil
}

// ListReports asks for a page of a client's reports, newest first.
type ListReports struct {
	Path  clientPath
	Query struct {
		op.Paging
		Type         domain.ReportType   `query:"type" validate:"omitempty,enum" doc:"Only reports of this type."`
		Status       domain.ReportStatus `query:"status" validate:"omitempty,enum" doc:"Only reports in this state."`
		UpdatedSince *domain.Time        `query:"updated_since" doc:"Only reports that were asked for, made or failed at or after this time."`
	}
}

func (a *API) listReports(
	ctx context.Context, in *ListReports, w domain.Window,
) (domain.Slice[domain.Report], error) {
	t, err := a.db.Tenant(ctx, in.Path.ClientID)
	if err != nil {
		return domain.Slice[domain.Report]{}, err
	}
	q := in.Query
	return t.Reports(ctx, domain.ReportFilter{
		Type: q.Type, Status: q.Status, UpdatedSince: bound(q.UpdatedSince),
	}, w)
}

// GetReport asks for one report.
type GetReport struct {
	Path struct {
		clientPath
		ReportID domain.ReportID `path:"report_id" doc:"Opaque id of the report."`
	}
}

func (a *API) getReport(ctx context.Context, in *GetReport) (*ReportDetail, error) {
	t, err := a.db.Tenant(ctx, in.Path.ClientID)
	if err != nil {
		return nil, err
	}
	r, err := t.Report(ctx, in.Path.ReportID)
	if err != nil {
		return nil, err
	}
	out := &ReportDetail{Report: reportOf(r)}
	if r.Status == domain.ReportReady && a.reportLinks != nil {
		out.DownloadURL = new(a.reportLinks(r))
	}
	return out, nil
}
