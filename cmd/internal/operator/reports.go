package operator

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"partnerapi/cmd/internal/cli"
	"partnerapi/cmd/internal/config"
	"partnerapi/cmd/internal/database"
	"partnerapi/cmd/internal/output"
	"partnerapi/db"
	"partnerapi/domain"
)

// Reports is the command reports, which makes reports.
type Reports struct {
	Make makeReportCmd `cmd:"" help:"Create a report about a client without using the API." example:"reports make 'Hillside Dental' executive_summary --out summary.pdf"`
}

type makeReportCmd struct {
	database.Flags
	config.FontFlag
	Client string            `arg:"" help:"The client's ID, UUID or name."`
	Type   domain.ReportType `arg:"" help:"The report type, such as executive_summary."`
	Format string            `env:"-" enum:",pdf,xlsx" default:"" placeholder:"pdf|xlsx" help:"File format: pdf or xlsx. Default: xlsx if the file name ends in .xlsx; otherwise, pdf."`
	Start  domain.Date       `env:"-" placeholder:"DATE" help:"The first day of the period (UTC), such as 2027-01-31. Default period: the 90 days that end today or, for monthly_report, the last calendar month."`
	End    domain.Date       `env:"-" placeholder:"DATE" help:"The last day of the period."`
	Out    string            `env:"-" required:"" type:"path" placeholder:"FILE" help:"File to write. An existing file is replaced."`
}

// Validate rejects an unknown type, and --start or --end without the other.
func (c makeReportCmd) Validate() error {
	if types := c.Type.Values(); !slices.Contains(types, string(c.Type)) {
		return fmt.Errorf("there is no report type %q; use one of %s%s", c.Type, strings.Join(types, ", "),
			output.DidYouMean(string(c.Type), types))
	}
	if c.Start.IsZero() != c.End.IsZero() {
		return errors.New("--start and --end must be used together")
	}
	return nil
}

// Run renders the report, from the standby if there is one, and writes its file, which gets its name when it is
// complete. A report on Dark Web Monitoring of a client without it is an error.
func (c makeReportCmd) Run(ctx context.Context, s cli.Env) error {
	return c.With(ctx, s, func(d *db.DB) error {
		r, err := c.newReport(d.Now())
		if err != nil {
			return err
		}
		client, err := database.FindClient(ctx, d, domain.PartnerID{}, c.Client)
		if err != nil {
			return err
		}
		t, err := d.AnyTenant(ctx, client.ID)
		if err != nil {
			return err
		}
		renderer, err := c.Renderer()
		if err != nil {
			return err
		}
		if r.Type == domain.DarkWebReport && !t.DarkWebMonitoring {
			return fmt.Errorf("%s has no Dark Web Monitoring, so there is nothing to report", t.Name)
		}
		r.Client = t.ID

		fmt.Fprintf(s.Err, "creating %s for %s\n", r.Type, t.Name)
		start := time.Now()
		var size int64
		err = d.FromReplica(ctx, func(ctx context.Context) (err error) {
			size, err = output.WriteFile(c.Out, func(file *bufio.Writer) error { return renderer.Write(ctx, file, t, r) })
			return err
		})
		if err != nil {
			return fmt.Errorf("the report was not created: %w", err)
		}
		fmt.Fprintf(s.Err, "created in %v\n", time.Since(start).Round(10*time.Millisecond))
		_, err = fmt.Fprintf(s.Out, "%s: %d bytes\n", c.Out, size)
		return err
	})
}

// newReport returns the requested report, without its client. Without --start, the period is the default of the type,
// or nil if the type has no period. An invalid period is an error that names the flag.
func (c makeReportCmd) newReport(now time.Time) (domain.Report, error) {
	r := domain.Report{
		ID: db.NewID[domain.ReportKind](), Type: c.Type, Format: c.format(),
		Status: domain.ReportPending, CreatedAt: now, UpdatedAt: now,
	}
	today := domain.DateOf(now)
	if c.Start.IsZero() {
		if r.Type.HasPeriod() {
			r.Period = new(r.Type.DefaultPeriod(today))
		}
		return r, nil
	}
	r.Period = &domain.ReportPeriod{Start: c.Start, End: c.End}
	for _, fault := range r.Type.CheckPeriod(*r.Period, today) { // the first one is the error
		flag := map[string]string{"period.start_on": "--start", "period.end_on": "--end"}[fault.Field]
		return r, fmt.Errorf("%s %s", cmp.Or(flag, "the period"), strings.ReplaceAll(fault.Message, "end_on", "--end"))
	}
	return r, nil
}

// format returns the format of the flag, otherwise of the file name.
func (c makeReportCmd) format() domain.ReportFormat {
	switch {
	case c.Format != "":
		return domain.ReportFormat(c.Format)
	case strings.EqualFold(filepath.Ext(c.Out), ".xlsx"):
		return domain.XLSX
	}
	return domain.PDF
}
