package v2

import (
	"context"

	"partnerapi/db"
	"partnerapi/domain"
	"partnerapi/v2/api"
)

func reportOf(r domain.Report) api.Report {
	out := api.Report{
		ID: r.ID, ClientID: r.Client, Type: string(r.Type), Format: r.Format, Status: r.Status,
		CreatedAt: domain.At(r.CreatedAt), UpdatedAt: domain.At(r.UpdatedAt),
	}
	if r.Period != nil {
		out.Period = &api.ReportPeriod{StartOn: r.Period.Start, EndOn: r.Period.End}
	}
	return out
}

// ReportLinks returns the address of a ready report's file, valid for domain.ReportLinkLife.
type ReportLinks func(domain.Report) string

// WithReportLinks links to the files of reports. Without it no report has a download_url.
func WithReportLinks(links ReportLinks) Option { return func(a *API) { a.reportLinks = links } }

// newReport returns the report to insert: a PDF unless the body has a format. Its period is that of the body, otherwise
// the default one; nil if the type has none. It returns InvalidRequest for a period that the type does not allow.
func newReport(today domain.Date, in *api.RequestReportInput) (domain.Report, error) {
	r := domain.Report{
		ID: db.NewID[domain.ReportKind](), Client: in.Path.ClientID, Type: in.Body.Type, Format: in.Body.Format,
		Status: domain.ReportPending,
	}
	if r.Format == "" {
		r.Format = domain.PDF
	}
	switch {
	case in.Body.Period != nil:
		period, err := reportPeriod(in.Body.Period, r.Type, today)
		r.Period = &period
		return r, err
	case r.Type.HasPeriod():
		r.Period = new(r.Type.DefaultPeriod(today))
	}
	return r, nil
}

// reportPeriod returns the period for a report of the type; InvalidRequest if a bound is missing or not allowed.
func reportPeriod(p *api.ReportPeriod, t domain.ReportType, today domain.Date) (domain.ReportPeriod, error) {
	out := domain.ReportPeriod{Start: p.StartOn, End: p.EndOn}
	var faults []domain.FieldError
	for _, bound := range []struct {
		field string
		day   domain.Date
	}{{"period.start_on", p.StartOn}, {"period.end_on", p.EndOn}} {
		if bound.day.IsZero() && t.HasPeriod() {
			faults = append(faults, domain.FieldError{Field: bound.field, Message: "is required"})
		}
	}
	if faults == nil {
		faults = t.CheckPeriod(out, today) // also refuses every period of a type without one
	}
	return out, domain.ErrInvalidFields(faults) // nil without faults
}

func (a *API) requestReport(ctx context.Context, in *api.RequestReportInput) (*api.Report, error) {
	r, err := newReport(domain.DateOf(a.db.Now()), in)
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
	return new(reportOf(r)), err
}

func (a *API) listReports(
	ctx context.Context, in *api.ListReportsInput, w domain.Window,
) (domain.Slice[domain.Report], error) {
	t, err := a.db.Tenant(ctx, in.Path.ClientID)
	if err != nil {
		return domain.Slice[domain.Report]{}, err
	}
	q := in.Query
	return t.Reports(ctx, domain.ReportFilter{Type: q.Type, Status: q.Status, UpdatedSince: toTime(q.UpdatedSince)}, w)
}

func (a *API) getReport(ctx context.Context, in *api.GetReportInput) (*api.ReportDetail, error) {
	t, err := a.db.Tenant(ctx, in.Path.ClientID)
	if err != nil {
		return nil, err
	}
	r, err := t.Report(ctx, in.Path.ReportID)
	out := &api.ReportDetail{Report: reportOf(r)}
	if r.Status == domain.ReportReady && a.reportLinks != nil {
		out.DownloadURL = new(a.reportLinks(r))
	}
	return out, err
}
