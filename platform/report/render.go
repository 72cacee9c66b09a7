package report

import (
	"context"
	"fmt"
	"io"
	"slices"

	"partnerapi/db"
	"partnerapi/domain"
)

// Renderer renders reports to files. It is safe for concurrent use.
type Renderer struct{ extra *Font }

// NewRenderer returns a Renderer that writes PDFs with an extra font, which may be nil (see WritePDF).
func NewRenderer(extra *Font) *Renderer { return &Renderer{extra} }

// Write writes the file of a report of a client in the report's format.
func (m *Renderer) Write(ctx context.Context, w io.Writer, t *db.Tenant, r domain.Report) error {
	return m.With(ctx, t, r.Type, r.Period, func(d *Document) error {
		if r.Format == domain.XLSX {
			return WriteXLSX(ctx, w, d)
		}
		return WritePDF(ctx, w, d, m.extra)
	})
}

// contents defines the contents of reports of a type. sections reads them, except the rows
// of most tables, which are read when they are ranged over. For a type without a period, the
// reading's period is the last 365 days (decisions 8.9).
type contents struct {
	title    string
	sections func(*reading) []Section
}

// types are the contents of each type (decisions 8.10).
var types = map[domain.ReportType]contents{
	domain.PhishingOverview:     {"Phishing overview", phishingOverview},
	domain.PhishingPerformance:  {"Phishing performance", phishingPerformance},
	domain.TrainingOverview:     {"Training overview", trainingOverview},
	domain.TrainingPerformance:  {"Training performance", trainingPerformance},
	domain.TrainingStatus:       {"Training status", trainingStatus},
	domain.ManagerTraining:      {"Training by manager and department", teamTraining},
	domain.CourseDetails:        {"Course details", courseDetails},
	domain.EmployeeHistory:      {"Employee history", employeeHistory},
	domain.PolicyReport:         {"Policies", policies},
	domain.PolicyAcknowledgment: {"Policy acknowledgment", policyAcknowledgment},
	domain.DarkWebReport:        {"Dark web exposures", darkWeb},
	domain.ExecutiveSummary:     {"Executive summary", executiveSummary},
	domain.RiskOverview:         {"Risk overview", riskOverview},
	domain.ComplianceReport:     {"Compliance", compliance},
	domain.MonthlyReport:        {"Monthly report", monthlyReport},
	domain.GlobalHealth:         {"Health compared with other clients", globalHealth},
}

// With makes a document about a client and calls write with it. It first refreshes stored results that the type shows,
// and then reads the document in one snapshot of the database. The rows of tables may be read when write ranges over
// them, one table after another, and not after write returns. While write runs, a connection is in use: write must not
// wait for the network. A nil period is the type's default period. A type without a period is read for the last 365
// days. The error is Forbidden for a dark_web report without Dark Web Monitoring, NotFound for an archived client.
func (m *Renderer) With(
	ctx context.Context, t *db.Tenant, typ domain.ReportType, period *domain.ReportPeriod, write func(*Document) error,
) error {
	content, ok := types[typ]
	if !ok {
		return fmt.Errorf("make a report of the unknown type %q", typ)
	}
	if refresh, ok := refreshes[typ]; ok {
		if err := refresh(t, ctx); err != nil {
			return err
		}
	}
	return t.Snapshot(ctx, func(ctx context.Context, t *db.Tenant) error {
		at := t.Now()
		d := &Document{Type: typ, Title: content.title, Client: t.Name, MadeAt: at}
		p := domain.YearTo(domain.DateOf(at))
		if typ.HasPeriod() {
			if p = typ.DefaultPeriod(domain.DateOf(at)); period != nil {
				p = *period
			}
			d.Period = &p
		}

		brand, err := t.DB().Brand(ctx, domain.BrandOwner{Client: t.ID})
		if err != nil {
			return err
		}
		d.Brand, d.Partner = brand.Brand, brand.PartnerName
		r := &reading{ctx: ctx, tenant: t, period: p}
		if d.Sections = content.sections(r); r.err != nil {
			return r.err
		}
		if d.compares() {
			d.Before = new(p.Previous())
		}
		return write(d)
	})
}

// compares reports whether a figure of the document has a change since the period before.
func (d *Document) compares() bool {
	for _, s := range d.Sections {
		for _, b := range s.Blocks {
			figures, _ := b.(Figures)
			if slices.ContainsFunc(figures, func(f Figure) bool { return f.Change.Text != "" }) {
				return true
			}
		}
	}
	return false
}
