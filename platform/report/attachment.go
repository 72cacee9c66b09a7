package report

import (
	"context"
	"errors"
	"fmt"
	"io"

	"partnerapi/db"
	"partnerapi/domain"
)

// Attachments are the files that emails carry: reports, which it reads, and certificates, which it writes.
type Attachments struct {
	db       *db.DB
	store    *Store
	renderer *Renderer
	// certificates has an element for each certificate that is being written.
	certificates chan struct{}
}

// NewAttachments returns the attachments of a database's emails. The files of reports are in store.
func NewAttachments(d *db.DB, store *Store, renderer *Renderer) *Attachments {
	return &Attachments{d, store, renderer, make(chan struct{}, certificatesAtOnce)}
}

// maxAttachment is the maximum size of an email's attachment, in bytes.
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
		err = fmt.Errorf("report %s is larger than an email may carry", id)
	}
	return pdf, err
}
