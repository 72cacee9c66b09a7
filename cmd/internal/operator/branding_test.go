package operator

import (
	"bytes"
	"encoding/json"
	"image"
	"image/png"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"partnerapi/db"
	"partnerapi/db/dbtest/fixture"
	"partnerapi/domain"
)

// brand returns the fields of a brand as branding show has them: the value and where it comes from.
func (c *console) brand(args ...string) map[string]string {
	c.t.Helper()
	var lines []brandLine
	c.Must(json.Unmarshal([]byte(c.must(append([]string{"branding", "show", "--json"}, args...)...)), &lines))
	fields := map[string]string{}
	for _, l := range lines {
		fields[l.Field] = domain.OrZero(l.Value) + " " + string(l.From)
	}
	if len(lines) != len(domain.BrandFields()) {
		c.t.Errorf("%v shows %d fields", args, len(lines))
	}
	return fields
}

// wantBrand compares fields of a brand.
func (c *console) wantBrand(args []string, want map[string]string) {
	c.t.Helper()
	got := c.brand(args...)
	for field, value := range want {
		if got[field] != value {
			c.t.Errorf("%v: got %s %q, want %q", args, field, got[field], value)
		}
	}
}

// TestBranding verifies that brands are set field by field, shown with where each value comes from, and cleared, each
// with an entry of the audit trail.
func TestBranding(t *testing.T) {
	t.Parallel()
	c := newConsole(t)
	client := c.AddClient()
	other := db.NewID[domain.PartnerKind]()
	c.Add("partners", fixture.Row{"id": other, "name": "Other", "name_key": "other"})
	var logo bytes.Buffer
	c.Must(png.Encode(&logo, image.NewGray(image.Rect(0, 0, 40, 20))))
	file := fileOf(t, logo.String())

	c.says([]string{"branding", "set", "partner", "--display-name= Northwind ", "--logo", file, "--accent-color=#FFD400"},
		"set accent_color, display_name, logo in the brand of partner")
	c.must("branding", "set", "Partner", "--client", client.String(), "--sender-name=Acme IT", "--sender-email=It@mail.example.com", "--mail-domains=x.example,mail.example.com")
	c.must("branding", "set", "--service", "--display-name=Platform", "--support-contact=help@platform.example", "--accent-color=#000000")
	c.audited("branding set partner accent_color display_name logo", "branding set client sender_email sender_name",
		"branding set brand accent_color display_name support_contact")

	c.says([]string{"branding", "show", "Partner", "--client", client.UUID()},
		"FIELD", "image/png, 40 × 20 pixels", "#ffd400, text #000000", "It@mail.example.com"[2:])
	c.wantBrand([]string{"Partner", "--client", client.String()}, map[string]string{
		"display_name": "Northwind partner", "accent_color": "#ffd400 partner", "sender_name": "Acme IT client",
		"sender_email": "it@mail.example.com client", "support_contact": "help@platform.example service", "postal_line": " none",
	})
	c.wantBrand([]string{"Other"}, map[string]string{"display_name": "Platform service", "logo": " none", "accent_color": "#000000 service"})
	c.wantBrand([]string{"--service"}, map[string]string{"display_name": "Platform service", "sender_name": " none"})

	c.must("branding", "set", "partner", "--logo=", "--display-name=")
	c.wantBrand([]string{"partner"}, map[string]string{"logo": " none", "display_name": "Platform service", "accent_color": "#ffd400 partner"})
	c.says([]string{"branding", "clear", "partner", "--client", client.String()}, "cleared the brand of "+client.String())
	c.must("branding", "clear", "--service")
	c.audited("branding set partner display_name logo", "branding clear client", "branding clear brand")
	c.wantBrand([]string{"partner", "--client", client.String()}, map[string]string{
		"display_name": "Partner default", "sender_email": " none", "accent_color": "#ffd400 partner"})
	c.refused(false, []string{"branding", "clear", "partner", "--client", client.String()}, client.String()+" has no brand to clear")
}

// TestBrandingRejects verifies that a wrong command line, field or owner changes nothing and is named.
func TestBrandingRejects(t *testing.T) {
	t.Parallel()
	c := newConsole(t)
	client := c.AddClient()
	c.Add("partners", fixture.Row{"id": db.NewID[domain.PartnerKind](), "name": "Other", "name_key": "other"})
	set := []string{"branding", "set"}
	for _, tt := range []struct {
		args  []string
		usage bool
		words string
	}{
		{[]string{"--display-name=A"}, true, "specify either a partner or --service"},
		{[]string{"partner", "--service", "--display-name=A"}, true, "specify either a partner or --service"},
		{[]string{"--service", "--client=x", "--display-name=A"}, true, "--client requires a partner"},
		{[]string{"partner"}, true, "specify a field to set"},
		{[]string{"partner", "--display-name=A", "--mail-domains=local"}, true, `--mail-domains: "local" is not a domain`},
		{[]string{"Other", "--client", client.String(), "--display-name=A"}, false, "belongs to another partner"},
		{[]string{"partner", "--accent-color=red"}, false, "--accent-color must be a color"},
		{[]string{"partner", "--sender-email=a@mail.example.com"}, false, "--sender-email requires --mail-domains"},
		{[]string{"partner", "--sender-email=a@mail.example.com", "--mail-domains=example.com"}, false, "--sender-email must use one of the domains in --mail-domains: example.com"},
		{[]string{"partner", "--reply-to=x"}, false, "--reply-to must be an email address"},
		{[]string{"partner", "--logo", fileOf(t, "GIF89a")}, false, "--logo must be a PNG or JPEG image"},
		{[]string{"partner", "--logo", fileOf(t, string(make([]byte, domain.MaxLogoBytes+9)))}, false, "--logo must be a file of at most 256 kB"},
		{[]string{"partner", "--logo=no-such-file"}, false, "--logo: "},
	} {
		c.refused(tt.usage, append(set, tt.args...), tt.words)
	}
	if n := c.Number("SELECT (SELECT count(*) FROM brands) + (SELECT count(*) FROM audit_entries)"); n != 0 {
		t.Errorf("got %d brands and entries, want none", n)
	}
}

// TestBrandingPreview verifies that a preview has the brand in an email, a page and a report.
func TestBrandingPreview(t *testing.T) {
	t.Parallel()
	c, dir := newConsole(t), t.TempDir()
	client := c.AddClient()
	var logo bytes.Buffer
	c.Must(png.Encode(&logo, image.NewGray(image.Rect(0, 0, 40, 20))))
	c.must("branding", "set", "partner", "--display-name=Northwind", "--logo", fileOf(t, logo.String()))
	out := c.must("branding", "preview", "partner", "--client", client.String(), "--out", dir)
	for name, want := range map[string]string{
		"brand-email.html": `<img src="data:image/png;base64,`, "brand-page.html": `alt="Northwind"`, "brand-report.pdf": "/Subtype /Image",
	} {
		path := filepath.Join(dir, name)
		text, err := os.ReadFile(path)
		if err != nil || !strings.Contains(string(text), want) || !strings.Contains(out, path+"\n") {
			t.Errorf("%s has no %s, or is not named in %q: %v", name, want, out, err)
		}
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s is %v: %v", name, info, err)
		}
	}

	c.must("branding", "set", "partner", "--client", client.String(), "--display-name=Acme IT")
	name := c.Text("SELECT name FROM clients WHERE id = $1", client)
	partner := c.Text("SELECT replace(id::text, '-', '') FROM partners")
	for _, tt := range []struct {
		args, want []string
	}{
		{[]string{"partner"}, []string{"Example Client security awareness program", "Northwind"}},
		{[]string{"--service"}, []string{"Example Client security awareness program", "Example Partner"}},
		{[]string{"partner", "--client", client.String()}, []string{name + " security awareness program", "Northwind"}},
	} {
		c.must(append([]string{"branding", "preview", "--out", dir}, tt.args...)...)
		text, err := os.ReadFile(filepath.Join(dir, "brand-email.html"))
		c.Must(err)
		for _, want := range tt.want {
			if !strings.Contains(string(text), want) || strings.Contains(string(text), partner) {
				t.Errorf("%v: the email does not say %q:\n%s", tt.args, want, text)
			}
		}
	}
}
