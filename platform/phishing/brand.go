package phishing

import (
	"context"
	"html/template"
	"image"
	"io"
	"time"

	"partnerapi/domain"
	"partnerapi/platform/mail"
)

// pageBrand is the brand of a lesson; other pages have none. The links are safe: the logo is a PNG or JPEG file, and the
// contact leads to mailto:, tel: or https:.
type pageBrand struct {
	Name, Contact            string
	Accent, OnAccent, Border string // empty for none; the colors of a text and of a border on it
	Logo, ContactLink        template.URL
	LogoSize                 image.Point
}

func newPageBrand(brand domain.Brand) pageBrand {
	b := pageBrand{
		Name: brand.DisplayName, Accent: string(brand.AccentColor), OnAccent: brand.AccentColor.TextColor(),
		Border: brand.AccentColor.BorderOnWhite(), Contact: string(brand.SupportContact), ContactLink: template.URL(brand.SupportContact.Link()),
	}
	if mediaType, size, err := domain.LogoType(brand.Logo); err == nil {
		b.Logo = template.URL(domain.LogoURL(mediaType, brand.Logo))
		b.LogoSize = mail.LogoSize(size)
	}
	return b
}

// brandOf reads the brand of a client. If that fails, the page has none.
func (p *Pages) brandOf(ctx context.Context, client domain.ClientID) domain.Brand {
	ctx, cancel := context.WithTimeout(ctx, p.timeout)
	defer cancel()
	brand, err := p.db.Brand(ctx, domain.BrandOwner{Client: client})
	if err != nil {
		p.log.ErrorContext(ctx, "a page is shown without a brand", "client", client.UUID(), "error", err)
	}
	return brand.Brand
}

// WriteLesson writes the page after a click on a simulation with a brand, in English, for a preview.
func WriteLesson(w io.Writer, s domain.Simulation, brand domain.Brand, now time.Time) error {
	words := textsByLanguage[domain.English]
	data := page{Lang: domain.English.Tag(), Title: words.Titles["lesson"], Words: words, Brand: newPageBrand(brand)}
	data.explain(s, domain.English, now)
	return pageTemplates.ExecuteTemplate(w, "lesson", data)
}
