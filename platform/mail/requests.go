package mail

import (
	"context"
	"fmt"

	"partnerapi/db"
	"partnerapi/db/outbox"
	"partnerapi/domain"
)

// ReportReader reads the files of monthly reports.
type ReportReader interface {
	// ReportPDF reads the file of a client's report. The error is NotFound or a
	// *RefusedError if the file will never exist; any other is temporary.
	ReportPDF(ctx context.Context, client domain.ClientID, report domain.ReportID) ([]byte, error)
}

// Requests writes the mails that operations request.
type Requests struct {
	DB       *db.DB
	Composer *Composer
	Reports  ReportReader // nil refuses the mails of monthly reports
}

// Write implements Writer. A monthly report is attached to its mail. Unwanted and switched-off mails are not composed.
func (r Requests) Write(ctx context.Context, l outbox.Lease) (Draft, error) {
	m, err := outbox.Mail(ctx, r.DB, l.Client, l.ID)
	if err != nil || m.Unwanted != "" || m.SwitchedOff {
		return Draft{Unwanted: m.Unwanted, SwitchedOff: m.SwitchedOff}, err
	}

	draft := Draft{User: m.User, Due: m.DueAt}
	draft.Message, err = r.Composer.Compose(m, r.DB.Now())
	if err == nil && !m.Report.IsZero() {
		var report File
		report, err = r.attach(ctx, m)
		draft.Message.Files = append(draft.Message.Files, report)
	}
	return draft, err
}

// attach returns the file of a monthly report as an attachment. Without r.Reports, the error is a *RefusedError.
func (r Requests) attach(ctx context.Context, m domain.Mail) (File, error) {
	if r.Reports == nil {
		return File{}, &RefusedError{Reason: "no reports are made here"}
	}
	data, err := r.Reports.ReportPDF(ctx, m.Client, m.Report)
	if err != nil {
		return File{}, fmt.Errorf("read a report: %w", err)
	}
	name := "monthly-report-" + m.MonthOf.Time().Format("2006-01") + ".pdf"
	return File{Name: name, Type: "application/pdf", Data: data}, nil
}

// Notices writes the mails to owners and admins of partners.
type Notices struct {
	DB       *db.DB
	Composer *Composer
}

// Write implements Writer. Unwanted and switched-off mails are not composed.
func (n Notices) Write(ctx context.Context, l outbox.Lease) (Draft, error) {
	m, err := outbox.ReadNotice(ctx, n.DB, l)
	if err != nil || m.Unwanted != "" || m.SwitchedOff {
		return Draft{Unwanted: m.Unwanted, SwitchedOff: m.SwitchedOff}, err
	}
	draft := Draft{Due: m.CreatedAt}
	draft.Message, err = n.Composer.ComposeNotice(l.ID, m, n.DB.Now())
	return draft, err
}
