package report

import (
	"bytes"
	"image"
	"image/jpeg"
	"image/png"
	"io"
	"strings"
	"testing"

	"github.com/ledongthuc/pdf"
	"github.com/xuri/excelize/v2"

	"partnerapi/domain"
)

// TestBrandOfReport verifies that a report names its brand at the top of the first page, in each footer, and in the
// properties of the file, with a logo in either format, and that the same document gives the same bytes.
func TestBrandOfReport(t *testing.T) {
	t.Parallel()
	m := image.NewNRGBA(image.Rect(0, 0, 300, 90))
	var transparent, photo bytes.Buffer
	must(0, png.Encode(&transparent, m))
	must(0, jpeg.Encode(&photo, m, nil))
	for name, file := range map[string][]byte{"PNG": transparent.Bytes(), "JPEG": photo.Bytes(), "none": nil} {
		d := sample()
		d.Brand, d.Partner = domain.Brand{DisplayName: "Acme Séguridad", AccentColor: "#ffd400"}, "Acme Séguridad"
		if file != nil {
			d.Brand.Logo = must(domain.ParseLogo(file))
		}
		pages := pagesOf(t, d, nil)
		if !strings.HasPrefix(pages[0], "AcmeSéguridad") {
			t.Errorf("%s: the first page begins with %.60q", name, pages[0])
		}
		for i, page := range pages {
			if want := 1; strings.Count(page, "AcmeSéguridad") != want+pgOne(i) {
				t.Errorf("%s: page %d names the brand %d times", name, i+1, strings.Count(page, "AcmeSéguridad"))
			}
		}
		var first, second bytes.Buffer
		must(0, WritePDF(t.Context(), &first, d, nil))
		must(0, WritePDF(t.Context(), &second, d, nil))
		if !bytes.Equal(first.Bytes(), second.Bytes()) {
			t.Errorf("%s: the same document gives other bytes", name)
		}
		if images := strings.Contains(first.String(), "/Subtype /Image"); images != (file != nil) {
			t.Errorf("%s: the file has an image: %t", name, images)
		}
		r := must(pdf.NewReader(bytes.NewReader(first.Bytes()), int64(first.Len())))
		if author := r.Trailer().Key("Info").Key("Author").Text(); author != "Acme Séguridad" {
			t.Errorf("%s: the author is %q", name, author)
		}
	}

	d := sample()
	d.Brand.DisplayName, d.Partner = "Acme IT", "Northlight"
	for i, page := range pagesOf(t, d, nil) {
		if !strings.Contains(page, "AcmeIT·Northlight") {
			t.Errorf("page %d does not name the partner: %s", i+1, page)
		}
	}
	var first bytes.Buffer
	must(0, WritePDF(t.Context(), &first, d, nil))
	r := must(pdf.NewReader(bytes.NewReader(first.Bytes()), int64(first.Len())))
	if author := r.Trailer().Key("Info").Key("Author").Text(); author != "Acme IT, Northlight" {
		t.Errorf("the author is %q", author)
	}
	var file bytes.Buffer
	must(0, WriteXLSX(t.Context(), &file, d))
	book := must(excelize.OpenReader(io.Reader(&file)))
	if p := must(book.GetDocProps()); p.Creator != "Acme IT, Northlight" || p.Title != d.Title {
		t.Errorf("the properties are %+v", p)
	}
}

// pgOne returns 1 for the first page, which also names the brand at its top.
func pgOne(page int) int {
	if page == 0 {
		return 1
	}
	return 0
}
