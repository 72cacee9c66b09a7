package mail

import (
	"context"
	"fmt"

	"partnerapi/db"
	"partnerapi/db/outbox"
	"partnerapi/domain"
)

// Attachments are the files that emails carry. An error is NotFound or a *RefusedError if the file will never exist;
// any other is temporary.
type Attachments interface {
	// ReportPDF reads the file of a client's report.
	ReportPDF(ctx context.Context, client domain.ClientID, report domain.ReportID) ([]byte, error)
	// CertificatePDF writes the certificate of a completed course.
	CertificatePDF(ctx context.Context, c domain.Certificate) ([]byte, error)
}

// Requests writes the emails that operations request.
type Requests struct {
	DB          *db.DB
	Composer    *Composer
	Attachments Attachments // nil rejects the emails that have one: certificates and monthly reports
}

// Write implements Writer. It attaches certificates and monthly reports. Unwanted and switched-off emails are not
// composed.
func (r Requests) Write(ctx context.Context, l outbox.Lease) (Draft, error) {
	m, err := outbox.Mail(ctx, r.DB, l.Client, l.ID)
	if err != nil || m.Unwanted != "" || m.SwitchedOff {
		return Draft{Unwanted: m.Unwanted, SwitchedOff: m.SwitchedOff}, err
	}

	draft := Draft{User: m.User, Due: m.DueAt}
	if draft.Message, err = r.Composer.Compose(m, r.DB.Now()); err == nil {
		draft.Message.Files, err = r.attach(ctx, m, draft.Message)
	}
	return draft, err
}

// attach returns the files of a message with the attachment of its type, if there is one. Without r.Attachments, the
// error of such a type is a *RefusedError.
func (r Requests) attach(ctx context.Context, m domain.Mail, to Message) ([]File, error) {
	var (
		name  string
		write func() ([]byte, error)
	)
	switch {
	case !m.Report.IsZero():
		name = "monthly-report-" + m.MonthOf.Time().Format("2006-01")
		write = func() ([]byte, error) { return r.Attachments.ReportPDF(ctx, m.Client, m.Report) }
	case to.Certificate != nil:
		name = "certificate-" + m.CompletedOn.String()
		write = func() ([]byte, error) { return r.Attachments.CertificatePDF(ctx, *to.Certificate) }
	default:
		return to.Files, nil
	}
	if r.Attachments == nil {
		return nil, &RefusedError{Reason: "this process writes no attachments"}
	}
	data, err := write()
	if err != nil {
		return nil, fmt.Errorf("attach %s.pdf: %w", name, err)
	}
	return append(to.Files, File{Name: name + ".pdf", Type: "application/pdf", Data: data}), nil
}

// Notices writes the emails to owners and admins of partners.
type Notices struct {
	DB       *db.DB
	Composer *Composer
}

// Write implements Writer. Unwanted and switched-off emails are not composed.
func (n Notices) Write(ctx context.Context, l outbox.Lease) (Draft, error) {
	m, err := outbox.ReadNotice(ctx, n.DB, l)
	if err != nil || m.Unwanted != "" || m.SwitchedOff {
		return Draft{Unwanted: m.Unwanted, SwitchedOff: m.SwitchedOff}, err
	}
	draft := Draft{Due: m.CreatedAt}
	draft.Message, err = n.Composer.ComposeNotice(l.ID, m, n.DB.Now())
	return draft, err
}
