package mail

import (
	"cmp"
	htmltemplate "html/template"
	"image"
	netmail "net/mail"
	"strings"

	"partnerapi/domain"
)

const (
	// logoName is the name of a logo in a message. The layout shows it as cid:logo@inline.
	logoName = "logo"
	// logoWidth and logoHeight bound a logo in an email, in pixels.
	logoWidth, logoHeight = 240, 56
)

// header is the brand at the head of an email, with the colors of its button.
type header struct {
	Name                     string
	Logo                     File
	Size                     image.Point // of the logo
	Accent, OnAccent, Border string
}

// HasLogo reports whether there is a logo.
func (h header) HasLogo() bool { return len(h.Logo.Data) > 0 }

// footer is what the end of an email says of its brand. Empty parts are omitted.
type footer struct {
	Question, Contact, Note, Postal string
	Link                            htmltemplate.URL // of the contact: mailto:, tel: or https:
}

// setBrand sets the parts that follow from a brand. A logo without a name, which would have no alternative text, or that
// cannot be read is omitted.
func (p *content) setBrand(r *renderer, b domain.Brand) {
	accent := cmp.Or(b.AccentColor, domain.Accent)
	p.Header = header{
		Name: Quote(b.DisplayName), Accent: string(accent), OnAccent: accent.TextColor(), Border: accent.BorderOnWhite(),
	}
	if mediaType, size, err := domain.LogoType(b.Logo); err == nil && p.Header.Name != "" {
		p.Header.Logo = File{Name: logoName, Type: mediaType, Data: b.Logo, Inline: true}
		p.Header.Size = LogoSize(size)
	}
	if b.SupportContact != "" {
		p.Footer.Question, p.Footer.Contact = r.render("contact"), string(b.SupportContact)
		p.Footer.Link = htmltemplate.URL(b.SupportContact.Link())
	}
	p.Footer.Postal = Quote(b.PostalLine)
}

// LogoSize returns the size in which emails and pages show a logo: its own, unless it is too large.
func LogoSize(logo image.Point) image.Point { return domain.FitLogo(logo, logoWidth, logoHeight) }

// Preview returns the HTML of a message with its inline files, for a browser.
func (m Message) Preview() string {
	html := m.HTML
	for _, f := range m.Files {
		if f.Inline {
			html = strings.ReplaceAll(html, `src="cid:`+f.Name+inlineDomain+`"`, `src="`+domain.LogoURL(f.Type, f.Data)+`"`)
		}
	}
	return html
}

// sender returns the sender of an email with a brand. Its address is the brand's if the service may send for the
// domain, and the service's own otherwise.
func (c *Composer) sender(b domain.Brand) netmail.Address {
	from := c.from
	from.Name = cmp.Or(OneLine(b.SenderName), from.Name, OneLine(b.DisplayName))
	if b.SenderEmail != "" && c.Senders.Check(b.SenderEmail) == nil {
		from.Address = b.SenderEmail
	}
	return from
}
