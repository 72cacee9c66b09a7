package domain

import (
	"encoding/hex"
	"fmt"
	"net/url"
	"reflect"
	"slices"
	"strings"
)

// Brand is what people see of the organization that emails, pages and reports come from (decisions 7.12). An empty
// field inherits (ResolveBrand).
type Brand struct {
	DisplayName    string      `json:"display_name"`
	Logo           []byte      `json:"logo"` // as ParseLogo returns it
	AccentColor    AccentColor `json:"accent_color"`
	SenderName     string      `json:"sender_name"`
	SenderEmail    string      `json:"sender_email"`
	ReplyTo        string      `json:"reply_to"`
	SupportContact Contact     `json:"support_contact"`
	PostalLine     string      `json:"postal_line"`
}

// BrandOwner is whose brand it is: a client or, if that is zero, a partner. The zero BrandOwner is the service.
type BrandOwner struct {
	Partner PartnerID
	Client  ClientID
}

// BrandSource is where the value of a brand's field comes from.
type BrandSource string

// The sources, in the order in which they are consulted. NoBrand is the source of a field without a
// value.
const (
	ClientBrand  BrandSource = "client"
	PartnerBrand BrandSource = "partner"
	ServiceBrand BrandSource = "service"
	DefaultBrand BrandSource = "default"
	NoBrand      BrandSource = "none"
)

// BrandLevel is the brand of one source.
type BrandLevel struct {
	Source BrandSource
	Brand
}

// ResolvedBrand is a brand whose empty fields are filled.
type ResolvedBrand struct {
	Brand
	// Sources are the sources of the fields, by their names in JSON.
	Sources map[string]BrandSource
	// PartnerName is the display name without the client's own.
	PartnerName string
}

// ResolveBrand fills each field with its value from the first of levels that has one.
func ResolveBrand(levels ...BrandLevel) ResolvedBrand {
	resolved := ResolvedBrand{Sources: map[string]BrandSource{}}
	to := reflect.ValueOf(&resolved.Brand).Elem()
	for i, name := range BrandFields() {
		resolved.Sources[name] = NoBrand
		for _, level := range levels {
			if from := reflect.ValueOf(level.Brand).Field(i); from.Len() > 0 {
				to.Field(i).Set(from)
				resolved.Sources[name] = level.Source
				break
			}
		}
	}
	for _, level := range levels {
		if level.Source != ClientBrand && resolved.PartnerName == "" {
			resolved.PartnerName = level.DisplayName
		}
	}
	return resolved
}

// BrandFields returns the names of a brand's fields in JSON, in order.
func BrandFields() (names []string) {
	for f := range reflect.TypeFor[Brand]().Fields() {
		names = append(names, f.Tag.Get("json"))
	}
	return names
}

// AccentColor is a color as #rrggbb, in lower case. Empty means none.
type AccentColor string

// UnmarshalText parses a color in upper or lower case, or the empty text. The error is a Fault.
func (c *AccentColor) UnmarshalText(text []byte) error {
	color := AccentColor(strings.ToLower(string(text)))
	if color != "" {
		if _, _, _, ok := color.RGB(); !ok {
			return Fault("must be a color as #rrggbb, such as #1f5fbf")
		}
	}
	*c = color
	return nil
}

// RGB returns red, green and blue, and whether the color has the form #rrggbb.
func (c AccentColor) RGB() (red, green, blue uint8, ok bool) {
	digits, found := strings.CutPrefix(string(c), "#")
	rgb, err := hex.DecodeString(digits)
	if !found || err != nil || len(rgb) != 3 {
		return 0, 0, 0, false
	}
	return rgb[0], rgb[1], rgb[2], true
}

// MailDomains are the domains that senders' addresses may have, in the form of CleanEmail.
type MailDomains []string

// ParseMailDomains parses the names of domains. The error names the first that is invalid.
func ParseMailDomains(names []string) (domains MailDomains, err error) {
	for _, name := range names {
		email, ok := CleanEmail("a@" + strings.TrimSpace(name))
		if !ok {
			return nil, fmt.Errorf("%q is not a domain, such as mail.example.com", name)
		}
		domains = append(domains, strings.TrimPrefix(email, "a@"))
	}
	return domains, nil
}

// Check returns an error unless the domain of an address, in the form of CleanEmail, is one of the domains.
func (d MailDomains) Check(email string) error {
	switch {
	case len(d) == 0:
		return Fault("requires --mail-domains, the domains that this service may send from")
	case !slices.Contains(d, email[strings.LastIndexByte(email, '@')+1:]):
		return Fault("must use one of the domains in --mail-domains: " + strings.Join(d, ", "))
	}
	return nil
}

// maxContact is the greatest length of a Contact, in bytes.
const maxContact = 300

// Contact is an email address, a phone number or an https URL, where people ask for help. Empty means none.
type Contact string

// UnmarshalText parses a contact, or the empty text. It stores an email address in the form of CleanEmail. The error is
// a Fault.
func (c *Contact) UnmarshalText(text []byte) error {
	contact := Contact(strings.TrimSpace(string(text)))
	if email, ok := CleanEmail(string(contact)); ok {
		contact = Contact(email)
	}
	if contact != "" && contact.Link() == "" {
		return Fault("must be an email address, a phone number such as +1 206 555 0100, or a URL that begins with https://")
	}
	*c = contact
	return nil
}

// Link returns the URL that opens the contact: mailto:, tel: or https:. It returns "" if the contact has none of the
// three forms.
func (c Contact) Link() string {
	text := string(c)
	if len(text) > maxContact {
		return ""
	}
	if email, ok := CleanEmail(text); ok {
		return (&url.URL{Scheme: "mailto", Opaque: url.PathEscape(email)}).String()
	}
	if number := phoneNumber(text); number != "" {
		return "tel:" + number
	}
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "https" || u.Hostname() == "" || u.User != nil ||
		strings.ContainsFunc(text, func(r rune) bool { return r == ' ' || !isVisible(r) }) {
		return ""
	}
	return u.String()
}

// phoneNumber returns the digits of a phone number, with its leading +. It returns "" for another text, and for a
// number that has not 5 to 15 digits (ITU-T E.164).
func phoneNumber(text string) string {
	if strings.Trim(text, "0123456789 +-.()/") != "" || strings.LastIndexByte(text, '+') > 0 {
		return ""
	}
	number := strings.Map(func(r rune) rune {
		if strings.ContainsRune(" -.()/", r) {
			return -1
		}
		return r
	}, text)
	if digits := len(strings.TrimPrefix(number, "+")); digits < 5 || digits > 15 {
		return ""
	}
	return number
}
