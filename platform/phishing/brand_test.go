package phishing_test

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"html"
	"image"
	"image/png"
	"strings"
	"testing"

	"partnerapi/db"
	"partnerapi/db/dbtest/fixture"
	"partnerapi/domain"
)

// TestBrandOfLesson verifies that the page after a click shows the brand of the client, with a button that can be seen
// and a label of the contact in the reader's language, and that the pages that imitate others do not.
func TestBrandOfLesson(t *testing.T) {
	t.Parallel()
	b := newBait(t)
	var logo bytes.Buffer
	b.must(png.Encode(&logo, image.NewGray(image.Rect(0, 0, 480, 100))))
	file, err := domain.ParseLogo(logo.Bytes())
	b.must(err)
	other := b.AddPartner("Other MSP")
	for owner, name := range map[domain.PartnerID]string{b.tenant.ID: "Northlight", other.ID: "Tidewater"} {
		fixture.Insert(t, b.DB.SQL(), "brands", fixture.Row{
			"id": db.NewID[domain.BrandKind](), "partner_id": owner, "display_name": name, "accent_color": "#0b6e4f",
			"support_contact": "help@" + strings.ToLower(name) + ".example", "logo": fmt.Sprintf(`\x%x`, file),
		})
	}
	lesson := b.request("GET", "/t/"+b.tokens.Token(b.sent(2, domain.English)), home, "")
	for _, want := range []string{
		`<img src="data:image/png;base64,` + base64.StdEncoding.EncodeToString(file) + `" alt="Northlight" width="240" height="50">`,
		"border-top: 6px solid #0b6e4f;", `<p>Questions about this simulation? <a href="mailto:help@northlight.example">help@northlight.example</a></p>`,
		"background: #0b6e4f; border-color: #0b6e4f;", "@media (prefers-color-scheme: dark) {",
	} {
		if !strings.Contains(html.UnescapeString(lesson.Body.String()), want) {
			t.Errorf("the lesson has no %s:\n%s", want, lesson.Body)
		}
	}
	if policy := lesson.Header().Get("Content-Security-Policy"); !strings.Contains(policy, "img-src data:;") || strings.Contains(lesson.Body.String(), "Tidewater") {
		t.Errorf("the policy is %q, or another partner is shown", policy)
	}
	b.Exec("UPDATE brands SET accent_color = '#ffffff'")
	for language, question := range map[domain.Language]string{
		domain.Spanish: "¿Tiene preguntas sobre esta simulación?", domain.French: "Des questions sur cette simulation?",
	} {
		b.Exec("UPDATE users SET preferred_language = $2 WHERE id = $1", b.user.ID, language)
		lesson := html.UnescapeString(b.request("GET", "/t/"+b.tokens.Token(b.sent(2, language)), home, "").Body.String())
		if !strings.Contains(lesson, "<p>"+question+" <a href=") || !strings.Contains(lesson, "color: #000000; background: #ffffff; border-color: #6b7280;") {
			t.Errorf("%s: got no label %q or no gray border:\n%s", language, question, lesson)
		}
	}
	form := b.request("GET", "/t/"+b.tokens.Token(b.sent(5, domain.English)), home, "")
	if strings.Contains(form.Body.String(), "orthlight") || !strings.Contains(form.Body.String(), "<form") {
		t.Errorf("the form shows the brand:\n%s", form.Body)
	}
}
