package report

import (
	"context"
	"errors"
	"fmt"
	"io"

	"partnerapi/db"
	"partnerapi/domain"
)

// Attachments reads the files of reports that are sent by mail.
type Attachments struct {
	db    *db.DB
	store *Store
}

// NewAttachments returns the attachments of a database's reports, whose files are in store.
func NewAttachments(d *db.DB, store *Store) *Attachments { return &Attachments{d, store} }

// maxAttachment is the maximum size of a file in a mail, in bytes.
const maxAttachment = 20 << 20

// ReportPDF reads the file of a client's report. The error is NotFound if the client was archived, or if the report has
// expired or has no file. A file over maxAttachment is an error too.
func (a *Attachments) ReportPDF(ctx context.Context, client domain.ClientID, id domain.ReportID) ([]byte, error) {
	t, err := a.db.AnyTenant(ctx, client)
	if err != nil {
		return nil, err
	}
	r, err := t.Report(ctx, id)
	if err != nil {
		return nil, err
	}
	file, err := a.store.Open(ctx, r)
	if errors.Is(err, ErrNoFile) {
		return nil, domain.ErrNotFound(id.Noun())
	}
	if err != nil {
		return nil, err
	}
	defer file.Close()

	pdf, err := io.ReadAll(io.LimitReader(file, maxAttachment+1))
	if err == nil && len(pdf) > maxAttachment {
		err = fmt.Errorf("report %s is larger than a mail takes", id)
	}
	return pdf, err
}
