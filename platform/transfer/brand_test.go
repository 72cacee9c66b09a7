package transfer_test

import (
	"bytes"
	"encoding/base64"
	"image"
	"image/png"
	"strings"
	"testing"

	"partnerapi/db/records"
	"partnerapi/domain"
	"partnerapi/platform/transfer"
)

// brandLine returns a line of a brand with fields.
func brandLine(fields string) string {
	return strings.Replace(ref("branding", 0, fields), `,"id":"`+id(0)+`"`, "", 1)
}

// aLogo is a logo in base64, as an export has it.
func aLogo(t *testing.T) string {
	t.Helper()
	var file bytes.Buffer
	encoder := png.Encoder{CompressionLevel: png.BestCompression}
	if err := encoder.Encode(&file, image.NewGray(image.Rect(0, 0, 40, 20))); err != nil {
		t.Fatal(err)
	}
	return base64.StdEncoding.EncodeToString(file.Bytes())
}

// importBrands imports lines with a domain of senders' addresses.
func (w *world) importBrands(lines ...string) (transfer.Report, string) {
	w.t.Helper()
	var refused strings.Builder
	ctx := records.WithMailDomains(w.t.Context(), domain.MailDomains{"mail.example.com"})
	report, err := transfer.Import(ctx, w.DB, transfer.Lines(strings.NewReader(strings.Join(lines, "\n"))), transfer.Watcher{
		Refused: func(_ int, reason string) { refused.WriteString(reason) },
	})
	w.must(err)
	return report, refused.String()
}

// TestBrands verifies that brands of partners and clients are imported, changed and cleared field by field, and exported
// as the same lines, and that an export of a partner has no other's.
func TestBrands(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.want("10 created, 0 updated, 0 unchanged", school()...)
	w.want("2 created, 0 updated, 0 unchanged", ref("partner", 3, `'name':'Other'`), ref("client", 14, `'partner':#3,'name':'Theirs'`))
	full := `,'display_name':' Northwind ','logo':'` + aLogo(t) + `','accent_color':'#0B6E4F','sender_name':'N','sender_email':'No-Reply@MAIL.example.com',
		'reply_to':'help@northwind.example','support_contact':'+1 206 555 0100','postal_line':'1 Harbor Street'`
	lines := []string{brandLine(`'partner':#1` + full), brandLine(`'client':#10,'display_name':'Acme'`), brandLine(`'client':#14,'accent_color':'#000000'`)}
	if report, refused := w.importBrands(lines...); report.Created != 3 {
		t.Fatalf("got %+v, %s", report, refused)
	}
	w.is(`(Northwind,#0b6e4f,N,no-reply@mail.example.com,help@northwind.example,"+1 206 555 0100","1 Harbor Street")`,
		"SELECT display_name, accent_color, sender_name, sender_email, reply_to, support_contact, postal_line FROM brands WHERE partner_id = $1", id(1))
	w.want("0 created, 0 updated, 3 unchanged", lines...) // the sender's address does not change

	export := w.export()
	if n := bytes.Count(export, []byte(`{"object":"branding"`)); n != 3 || !bytes.Contains(export, []byte(`"logo":"`+aLogo(t)+`"`)) {
		t.Errorf("got %d brands, or another logo:\n%s", n, export)
	}
	to := newWorld(t)
	if report, refused := to.importBrands(strings.Split(strings.TrimSpace(string(export)), "\n")...); report.Refused > 0 {
		t.Errorf("the export is refused: %s", refused)
	}
	wantSameLines(t, "the export of the copy", to.export(), export)
	var other bytes.Buffer
	w.must(transfer.Export(t.Context(), w.DB, parsed[domain.PartnerKind](3), transfer.Output{Objects: &other}, func(string, int, bool) {}))
	if !strings.Contains(other.String(), `"#000000"`) || strings.Contains(other.String(), "Northwind") || strings.Contains(other.String(), "Acme") {
		t.Errorf("the other partner's export is\n%s", other.String())
	}

	w.want("0 created, 1 updated, 0 unchanged", brandLine(`'partner':#1,'logo':null,'sender_name':null,'sender_email':null`))
	w.is(`(,"",""`+`,N)`, "SELECT logo, sender_name, sender_email, left(display_name, 1) FROM brands WHERE partner_id = $1", id(1))
	w.is("(0)", "SELECT count(*) FROM events")

}

// TestBadBrands verifies that a bad brand is refused by the name of the field.
func TestBadBrands(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.want("10 created, 0 updated, 0 unchanged", school()...)
	w.want("1 created, 0 updated, 0 unchanged", ref("partner", 3, `'name':'Other'`))
	for fields, reason := range map[string]string{
		`'display_name':'x'`:        "partner or client is required",
		`'partner':#77`:             "partner: " + domain.NoSuchObject("partner"),
		`'client':#77`:              "client: " + domain.NoSuchObject("client"),
		`'client':#10,'partner':#3`: "client belongs to another partner",
		`'partner':'00000000-0000-0000-0000-000000000000'`: "partner must be a UUID, or par_ and 26 characters",
		`'partner':#1,'accent_color':'red'`:                "accent_color must be a color as #rrggbb, such as #1f5fbf",
		`'partner':#1,'logo':'AAAA'`:                       "logo must be a PNG or JPEG image",
		`'partner':#1,'logo':7`:                            "logo must be a string",
		`'partner':#1,'sender_email':'x'`:                  "sender_email must be an email address",
		`'partner':#1,'sender_email':'a@mail.example.com'`: "sender_email requires --mail-domains, the domains that this service may send from",
		`'partner':#1,'support_contact':'call us'`:         "support_contact must be an email address, a phone number such as +1 206 555 0100, or a URL that begins with https://",
		`'partner':#1,'postal_line':'a\u000ab'`:            "postal_line must not contain control characters",
		`'partner':#1,'service':true`:                      "service is unknown",
	} {
		w.refuse(reason, brandLine(fields))
	}
	if _, refused := w.importBrands(brandLine(`'partner':#1,'sender_email':'a@x.example'`)); refused != "sender_email must use one of the domains in --mail-domains: mail.example.com" {
		t.Errorf("a foreign sender's address: got %q", refused)
	}
}
