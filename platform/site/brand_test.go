package site_test

import (
	"bytes"
	"image"
	"image/color"
	"image/png"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"partnerapi/domain"
	"partnerapi/platform/site"
)

// TestBrand verifies that the service's brand replaces the name, the mark and the accent color of the pages, below the
// path of the public address too, and that a brand that changes does so at the next request.
func TestBrand(t *testing.T) {
	t.Parallel()
	logo := image.NewRGBA(image.Rect(0, 0, 400, 64))
	logo.Set(0, 0, color.White)
	var file bytes.Buffer
	if err := png.Encode(&file, logo); err != nil {
		t.Fatal(err)
	}
	brand := &domain.Brand{}
	c := config(t, twoGuides)
	c.PublicURL, c.Brand = "https://example.com/api", func() *domain.Brand { return brand }
	s := site.New(c)
	page := func() string { return get(t, s, "/docs/guide/one").Body.String() }
	if got := page(); !strings.Contains(got, "<title>One · "+domain.ServiceName+"</title>") || strings.Contains(got, "/docs/brand-") || !strings.Contains(got, domain.ServiceName+"</a>") {
		t.Errorf("without a brand the page is\n%s", got)
	}

	brand = &domain.Brand{DisplayName: "Fern & Co", Logo: file.Bytes(), AccentColor: "#004400"}
	got := page()
	found := regexp.MustCompile(`<img src="/api(/docs/logo-\w+)" alt="Fern &amp; Co" width="180" height="28"></a>`).FindStringSubmatch(got)
	style := regexp.MustCompile(`<link rel="stylesheet" href="/api(/docs/brand-\w+\.css)">`).FindStringSubmatch(got)
	if !strings.Contains(got, "<title>One · Fern &amp; Co</title>") || found == nil || style == nil || strings.Contains(got, domain.ServiceName) {
		t.Fatalf("with a brand the page is\n%s", got)
	}
	w := get(t, s, found[1])
	if w.Code != http.StatusOK || w.Header().Get("Content-Type") != "image/png" || !bytes.Equal(w.Body.Bytes(), file.Bytes()) {
		t.Errorf("got status %d, type %s and %d bytes, want the logo", w.Code, w.Header().Get("Content-Type"), w.Body.Len())
	}
	if w := get(t, s, style[1]); w.Code != http.StatusOK || w.Body.String() != ":root { --brand: #004400; --on-brand: #ffffff; }\n" {
		t.Errorf("got status %d and the styles %s", w.Code, w.Body)
	}

	brand = &domain.Brand{DisplayName: "Fern & Co"}
	if got := page(); !strings.Contains(got, ">Fern &amp; Co</a>") || strings.Contains(got, "/docs/logo-") {
		t.Errorf("with a name alone the page is\n%s", got)
	}
}
