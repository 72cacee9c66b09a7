package report

import (
	"bytes"
	"context"
	"errors"
	"image"
	"image/png"
	"strings"
	"testing"
	"time"

	"github.com/ledongthuc/pdf"

	"partnerapi/domain"
)

// aCertificate returns a certificate of a user with a name.
func aCertificate(name string) domain.Certificate {
	return domain.Certificate{
		Language: domain.Spanish, Heading: "Certificado de finalización", Presented: "Se certifica que", Name: name,
		Completed: "ha completado el curso", Course: "Phishing: cómo reconocerlo", On: "el 15 de junio de 2026 (UTC)",
		Client: "Clínica Ruiz", Partner: "Northlight", Email: "ada@example.test", Brand: domain.Brand{DisplayName: "Northlight IT", AccentColor: "#0b6e4f"},
		At: time.Date(2026, 6, 15, 12, 0, 0, 0, time.UTC),
	}
}

// TestCertificate verifies that a certificate is one page with all its texts, the brand and its properties; that it is cut
// to the page whatever the length of its texts; that a name whose letters no font has becomes the email address; and that
// the same certificate gives the same bytes.
func TestCertificate(t *testing.T) {
	t.Parallel()
	var logo bytes.Buffer
	must(0, png.Encode(&logo, image.NewNRGBA(image.Rect(0, 0, 2000, 300))))
	for name, want := range map[string]string{
		"Álvaro Núñez": "ÁlvaroNúñez", "王伟": "ada@example.test", strings.Repeat("Wolfeschlegel", 40): "WolfeschlegelWolfeschlegel",
	} {
		c := aCertificate(name)
		if name == "王伟" {
			c.Course, c.Brand.Logo = strings.Repeat("Long title ", 100), must(domain.ParseLogo(logo.Bytes()))
		}
		file := must(NewAttachments(nil, nil, NewRenderer(nil)).CertificatePDF(t.Context(), c))
		if again := must(NewAttachments(nil, nil, NewRenderer(nil)).CertificatePDF(t.Context(), c)); !bytes.Equal(file, again) {
			t.Errorf("%.20s: the same certificate gives other bytes", name)
		}
		r := must(pdf.NewReader(bytes.NewReader(file), int64(len(file))))
		text := strings.ReplaceAll(must(r.Page(1).GetPlainText(nil)), " ", "")
		for _, part := range []string{want, "Certificadodefinalización", "Secertificaque", "hacompletadoelcurso", "el15dejuniode2026(UTC)", "ClínicaRuiz"} {
			if !strings.Contains(text, part) {
				t.Errorf("%.20s: the page lacks %q: %s", name, part, text)
			}
		}
		info := r.Trailer().Key("Info")
		if r.NumPage() != 1 || len(file) > 400_000 || info.Key("Author").Text() != "Northlight IT" || info.Key("Title").Text() != c.Heading {
			t.Errorf("%.20s: got %d pages, %d bytes, %v", name, r.NumPage(), len(file), info)
		}
	}
}

// TestCertificatesAtOnce verifies that a certificate waits while others are written, no longer than its context.
func TestCertificatesAtOnce(t *testing.T) {
	t.Parallel()
	a := NewAttachments(nil, nil, NewRenderer(nil))
	for range certificatesAtOnce {
		a.certificates <- struct{}{}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := a.CertificatePDF(ctx, aCertificate("Ada")); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want %v", err, context.Canceled)
	}
	<-a.certificates
	if _, err := a.CertificatePDF(t.Context(), aCertificate("Ada")); err != nil {
		t.Error(err)
	}
}
