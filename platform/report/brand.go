package report

import (
	"bytes"
	"context"
	"io"
	"slices"
	"strings"
	"time"

	"codeberg.org/go-pdf/fpdf"

	"partnerapi/domain"
)

const (
	// logoWidth and logoHeight bound the logo on the first page, in millimeters. logoDensity is the pixels of a logo that
	// are a millimeter, unless these bounds make it smaller.
	logoWidth, logoHeight = 60.0, 13.0
	logoDensity           = 4.0
	logoGap               = 4.0
)

// brandStyle is the style of the brand's name on the first page.
var brandStyle = style{size: 11, bold: true, color: ink}

// makers returns the names of those whom the report comes from: the brand's and, if it is another, the partner's.
func (d *Document) makers() (names []string) {
	for _, name := range []string{d.Brand.DisplayName, d.Partner} {
		if name != "" && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// drawBrand draws the logo and the name of the brand at the top of the first page. Without a name it draws nothing.
func (l *layout) drawBrand(b domain.Brand) {
	if b.DisplayName == "" {
		return
	}
	x, height := 0.0, 6.0
	var marks []mark
	if mediaType, size, err := domain.LogoType(b.Logo); err == nil {
		scale := min(1/logoDensity, logoWidth/float64(size.X), logoHeight/float64(size.Y))
		x, height = float64(size.X)*scale+logoGap, max(height, float64(size.Y)*scale)
		marks = append(marks, l.logo(b.Logo, mediaType, float64(size.X)*scale, float64(size.Y)*scale))
	}
	name := l.fit(b.DisplayName, bodyWidth-x, brandStyle)
	l.add(height+3.5, append(marks, l.words(name, x, height/2+1.4, brandStyle))...)
}

// logo returns a mark that draws a logo at the left margin, with its size in millimeters.
func (l *layout) logo(file []byte, mediaType string, width, height float64) mark {
	const name = "logo"
	options := fpdf.ImageOptions{ImageType: strings.TrimPrefix(mediaType, "image/")}
	l.pdf.RegisterImageOptionsReader(name, options, bytes.NewReader(file))
	return func(top float64) { l.pdf.ImageOptions(name, sideMargin, top, width, height, false, options, 0, "") }
}

// WriteSample writes a PDF file of one page with a brand, for a preview.
func (m *Renderer) WriteSample(ctx context.Context, w io.Writer, client string, brand domain.ResolvedBrand, now time.Time) error {
	return WritePDF(ctx, w, &Document{
		Type: domain.ExecutiveSummary, Title: types[domain.ExecutiveSummary].title, Client: client, Brand: brand.Brand, Partner: brand.PartnerName,
		MadeAt: now,
		Sections: []Section{{Heading: "Preview", Blocks: []Block{
			Text("This page shows how the brand looks in reports. The values are invented."),
			Figures{
				{Label: "Average risk score", Value: 742, Note: "grade B", Tone: Good},
				{Label: "On track", Value: Percent(91.7), Note: "220 of 240 employees", Tone: Warning},
				{Label: "Click rate", Value: Percent(4.2), Note: "10 of 240 simulated emails", Tone: Good},
			},
		}}},
	}, m.extra)
}
