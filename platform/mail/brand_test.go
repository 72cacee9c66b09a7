package mail_test

import (
	"bytes"
	"context"
	"fmt"
	"image"
	"image/png"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"partnerapi/db"
	"partnerapi/db/dbtest/fixture"
	"partnerapi/db/outbox"
	"partnerapi/domain"
	"partnerapi/platform/mail"
	"partnerapi/v2/v2test"
)

// aLogo returns a logo of a size, which is another one for each shade.
func aLogo(width, height int, shade uint8) []byte {
	m := image.NewGray(image.Rect(0, 0, width, height))
	for i := range m.Pix {
		m.Pix[i] = shade
	}
	var file bytes.Buffer
	if err := png.Encode(&file, m); err != nil {
		panic(err)
	}
	return must(domain.ParseLogo(file.Bytes()))
}

// TestBrandOfEmail verifies what an email shows of a brand: sender, replies, logo with alternative text, button and
// footer, in each language.
func TestBrandOfEmail(t *testing.T) {
	t.Parallel()
	c, dir := composer(t, "Training <train@example.test>"), t.TempDir()
	c.Senders = domain.MailDomains{"mail.example.com"}
	folder := must(mail.NewOutbox(dir))
	brand := domain.Brand{
		DisplayName: "Acme <IT>", Logo: aLogo(480, 100, 7), AccentColor: "#ffd400", SenderName: "Acme\r\nSecurity", SenderEmail: "hello@mail.example.com",
		ReplyTo: "help@acme.example", SupportContact: "+1 206 555 0100", PostalLine: "1 Main Street",
	}
	for language, question := range map[domain.Language]string{
		domain.English: "Questions about this email?", domain.Spanish: "¿Tiene preguntas sobre este correo?", domain.French: "Des questions sur ce courriel?",
	} {
		m := domain.Mail{ID: db.NewID[domain.MessageKind](), Type: domain.WelcomeMail, To: "ada@example.test", Language: language, ClientName: "C", PartnerName: "P", Brand: brand}
		if err := folder.Send(t.Context(), must(c.Compose(m, v2test.Noon))); err != nil {
			t.Fatal(err)
		}
		data := string(must(os.ReadFile(filepath.Join(dir, m.ID.UUID()+".eml"))))
		head, body, _ := strings.Cut(data, "\r\n\r\n")
		for _, want := range []string{
			`From: "Acme Security" <hello@mail.example.com>`, "Reply-To: <help@acme.example>", "@mail.example.com>\r\n", "multipart/",
		} {
			if !strings.Contains(head, want) {
				t.Errorf("%s: the head has no %q:\n%s", language, want, head)
			}
		}
		if n := strings.Count(body, "Content-Id: <logo@inline>"); n != 1 || !strings.Contains(body, "Content-Disposition: inline") {
			t.Errorf("%s: got %d logos inline", language, n)
		}
		composed := must(c.Compose(m, v2test.Noon))
		for _, want := range []string{
			`<img src="cid:logo@inline" class="logo" alt="Acme &lt;IT&gt;" width="240" height="50"`, "background:#ffd400;color:#000000;border:1px solid #6b7280;", `href="tel:`,
			question, "1 Main Street",
		} {
			if !strings.Contains(composed.HTML, want) {
				t.Errorf("%s: the HTML has no %s:\n%s", language, want, composed.HTML)
			}
		}
		if !strings.HasSuffix(composed.Text, "\n\n"+question+" +1 206 555 0100\n\n1 Main Street\n") {
			t.Errorf("%s: the text ends in %q", language, composed.Text[len(composed.Text)-200:])
		}
		if strings.Contains(composed.HTML, "ZgotmplZ") || strings.Contains(composed.Text, "isn’t monitored") || strings.Contains(composed.Text, "no se revisa") ||
			strings.Contains(composed.Text, "personne ne consulte") {
			t.Errorf("%s: the texts are wrong:\n%s", language, composed.HTML)
		}
	}

	plain := must(c.Compose(domain.Mail{Type: domain.WelcomeMail, Language: "en", Brand: domain.Brand{DisplayName: "Acme", SenderEmail: "a@other.example"}}, v2test.Noon))
	if plain.From.Address != "train@example.test" || plain.From.Name != "Training" || len(plain.Files) > 0 || !strings.Contains(plain.HTML, ">Acme</div>") ||
		!strings.Contains(plain.HTML, "background:#3f3ccf;color:#ffffff;border:1px solid #3f3ccf;") || !strings.Contains(plain.Text, "isn’t monitored") {
		t.Errorf("without most fields the email is from %v:\n%s", plain.From, plain.HTML)
	}
}

// TestBrandOfClients verifies that each client's email shows the brand of the client or of its own partner, and no
// other partner's, and that an email to a partner shows the service's.
func TestBrandOfClients(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	other := o.AddPartner("Other MSP")
	own, foreign := o.AddClient(o.tenant, "Own").ID, o.AddClient(other, "Foreign").ID
	for shade, owner := range map[uint8][2]any{10: {o.tenant.ID, nil}, 20: {nil, own}, 30: {other.ID, nil}, 40: {nil, nil}} {
		fixture.Insert(t, o.DB.SQL(), "brands", fixture.Row{
			"id": db.NewID[domain.BrandKind](), "partner_id": owner[0], "client_id": owner[1], "display_name": fmt.Sprint("Brand ", shade),
			"logo": fmt.Sprintf(`\x%x`, aLogo(20, 10, shade)),
		})
	}
	for _, of := range []domain.UserKey{
		o.user(o.client, "inherits@example.test", domain.English), o.user(own, "own@example.test", domain.English),
		{Client: foreign, User: o.AddUser(other, foreign, "foreign@example.test").ID},
	} {
		o.exposed(of, "Forum", v2test.Noon)
	}
	o.Exec(`INSERT INTO admins (id, partner_id, email, name, role, created_at) VALUES ($1, $2, 'owner@example.test', 'O', 'owner', $3)`,
		db.NewID[domain.AdminKind](), other.ID, v2test.Noon)
	o.must(o.DB.Change(t.Context(), func(ctx context.Context, c *db.Change) error {
		_, err := outbox.MailPartners(ctx, c, []domain.PartnerMail{{Partner: other.ID, Kind: domain.WebhookFailingMail, Cause: "c", Notice: domain.Notice{Subject: "s"}}})
		return err
	}))
	if outcomes := o.drain(o.sender); len(outcomes) != 4 {
		t.Fatalf("got %v, want four emails", outcomes)
	}
	shades := map[string]uint8{"inherits@example.test": 10, "own@example.test": 20, "foreign@example.test": 30, "owner@example.test": 40}
	closings := map[string]string{
		"inherits@example.test": "Brand 10 sent you this email on behalf of Hopper &amp; Sons.", "own@example.test": "Brand 10 sent you this email on behalf of Brand 20.",
		"foreign@example.test": "Brand 30 sent you this email on behalf of Foreign.", "owner@example.test": "as an owner or admin of Other MSP.",
	}
	for _, m := range o.server.all() {
		p, shade := parse(t, m.data), shades[m.to]
		if name := fmt.Sprint("Brand ", shade); !bytes.Equal(p.logo, aLogo(20, 10, shade)) || !strings.Contains(p.html, `alt="`+name+`"`) ||
			!strings.Contains(p.html, closings[m.to]) || !strings.Contains(p.Get("From"), name) {
			t.Errorf("the email to %s from %s does not show %s:\n%s", m.to, p.Get("From"), name, p.html)
		}
		own := fmt.Sprint("Brand ", shade)
		for _, other := range shades {
			if name := fmt.Sprint("Brand ", other); name != own && strings.Contains(strings.ReplaceAll(p.html, closings[m.to], ""), name) {
				t.Errorf("the email to %s shows %s:\n%s", m.to, name, p.html)
			}
		}
	}
}
