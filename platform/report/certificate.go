package report

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"strings"

	"codeberg.org/go-pdf/fpdf"

	"partnerapi/domain"
)

// certificatesAtOnce bounds the certificates that a process writes concurrently: each may copy the extra font.
const certificatesAtOnce = 2

// CertificatePDF returns the certificate of a completed course as a PDF file. The error is ctx's if ctx ends while other
// certificates are written.
func (a *Attachments) CertificatePDF(ctx context.Context, c domain.Certificate) ([]byte, error) {
	select {
	case a.certificates <- struct{}{}:
		defer func() { <-a.certificates }()
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	var pdf bytes.Buffer
	if err := a.renderer.WriteCertificate(&pdf, c); err != nil {
		return nil, err
	}
	if pdf.Len() > maxAttachment {
		return nil, fmt.Errorf("a certificate has %d bytes, more than the %d that an email may carry", pdf.Len(), maxAttachment)
	}
	return pdf.Bytes(), nil
}

// The measures of a certificate, A4 on its side, in millimeters.
const (
	certificateWidth, certificateHeight = pageHeight, pageWidth
	// certificateText is the maximum width of its texts.
	certificateText                           = 220.0
	certificateLogoWidth, certificateLogoLine = 70.0, 18.0
)

// The styles of a certificate.
var (
	certificateHeading = style{size: 26, bold: true, color: ink}
	certificateName    = style{size: 32, bold: true, color: ink}
	certificateCourse  = style{size: 19, bold: true, color: ink}
	certificateLine    = style{size: 12.5, color: gray}
	certificateFoot    = style{size: 10, color: gray}
)

// WriteCertificate writes a certificate as a PDF file of one page. If the fonts lack a character of the user's name, the
// page shows the user's email address instead: a misspelled name would make the certificate worthless.
func (m *Renderer) WriteCertificate(w io.Writer, c domain.Certificate) error {
	pdf := fpdf.New("L", "mm", "A4", "")
	pdf.SetAutoPageBreak(false, 0)
	pdf.AddPage()
	l := &layout{typefaces: newTypefaces(m.extra), pdf: pdf}
	name := l.clean(c.Name)
	if l.lacking {
		name = l.clean(c.Email)
	}

	accent := accentsOf(c.Brand).bar
	l.frame(10, 1.6, accent)
	l.frame(13.5, 0.3, faint)
	l.certificateBrand(c.Brand)
	l.center(c.Heading, 66, certificateHeading, 18)
	l.fill((certificateWidth-30)/2, 72, 30, 1.2, accent)
	l.center(c.Presented, 86, certificateLine, 9)
	l.center(name, 102, certificateName, 14)
	l.center(c.Completed, 117, certificateLine, 9)
	for i, line := range l.wrap(c.Course, certificateText, certificateCourse, 2) {
		l.center(line, 131+9*float64(i), certificateCourse, certificateCourse.size)
	}
	l.center(c.On, 157, certificateLine, 9)
	l.fill((certificateWidth-certificateText)/2, 172, certificateText, 0.25, faint)
	l.center(c.Client+"  ·  "+c.Partner, 181, certificateFoot, 7)

	pdf.SetTitle(c.Heading, true /* UTF-8 */)
	pdf.SetSubject(c.Course, true /* UTF-8 */)
	pdf.SetAuthor(c.Brand.DisplayName, true /* UTF-8 */)
	pdf.SetLang(c.Language.Tag())
	pdf.SetCreationDate(c.At)
	pdf.SetModificationDate(c.At)
	pdf.SetCatalogSort(true)
	if err := pdf.Output(w); err != nil {
		return fmt.Errorf("write a certificate: %w", err)
	}
	return nil
}

// frame draws a frame of a thickness at a distance from the edges of a certificate.
func (l *layout) frame(at, thick float64, c color) {
	width, height := certificateWidth-2*at, certificateHeight-2*at
	l.fill(at, at, width, thick, c)
	l.fill(at, at+height-thick, width, thick, c)
	l.fill(at, at, thick, height, c)
	l.fill(at+width-thick, at, thick, height, c)
}

// certificateBrand draws the logo of a brand at the top of a certificate or, without one, the brand's name.
func (l *layout) certificateBrand(b domain.Brand) {
	mediaType, size, err := domain.LogoType(b.Logo)
	if err != nil {
		l.center(b.DisplayName, 40, brandStyle, 8)
		return
	}
	const name = "logo"
	scale := min(1/logoDensity, certificateLogoWidth/float64(size.X), certificateLogoLine/float64(size.Y))
	width, height := float64(size.X)*scale, float64(size.Y)*scale
	options := fpdf.ImageOptions{ImageType: strings.TrimPrefix(mediaType, "image/")}
	l.pdf.RegisterImageOptionsReader(name, options, bytes.NewReader(b.Logo))
	l.pdf.ImageOptions(name, (certificateWidth-width)/2, 28+(certificateLogoLine-height)/2, width, height, false, options, 0, "")
}

// center writes a text on one line in the middle of a certificate, with its baseline at y. If it is too wide, it is written
// smaller, down to a size of least points; if that is still too wide, it is cut.
func (l *layout) center(text string, y float64, s style, least float64) {
	for text = l.clean(text); s.size > least && l.width(text, s) > certificateText; {
		s.size--
	}
	text = l.fit(text, certificateText, s)
	l.write(text, (certificateWidth-l.width(text, s))/2, y, s)
}
