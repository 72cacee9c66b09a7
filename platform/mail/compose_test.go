package mail_test

import (
	"bytes"
	"encoding/base64"
	"errors"
	"io"
	"mime"
	"mime/multipart"
	netmail "net/mail"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"partnerapi/db"
	"partnerapi/domain"
	"partnerapi/platform/mail"
	"partnerapi/v2/v2test"
)

// must returns a value, and panics with an error: of what does not fail here.
func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

// parsed is a mail as its receiver reads it.
type parsed struct {
	netmail.Header
	subject, text, html string
	file                string // and its name before it, after a colon
}

func parse(t testing.TB, data []byte) parsed {
	t.Helper()
	m := must(netmail.ReadMessage(bytes.NewReader(data)))
	p := parsed{Header: m.Header, subject: must(new(mime.WordDecoder).DecodeHeader(m.Header.Get("Subject")))}
	p.read(t, m.Header.Get("Content-Type"), m.Body)
	return p
}

// read reads a body of several parts.
func (p *parsed) read(t testing.TB, contentType string, body io.Reader) {
	t.Helper()
	kind, params, err := mime.ParseMediaType(contentType)
	parts := multipart.NewReader(body, params["boundary"])
	if kind == "multipart/mixed" {
		message := must(parts.NextPart())
		p.read(t, message.Header.Get("Content-Type"), message)
		file := must(parts.NextPart())
		data, err := io.ReadAll(base64.NewDecoder(base64.StdEncoding, file))
		if err != nil || !strings.HasPrefix(file.Header.Get("Content-Type"), "application/pdf") {
			t.Fatalf("%v: %v", file.Header, err)
		}
		p.file = file.FileName() + ":" + string(data)
		return
	}
	if err != nil || kind != "multipart/alternative" {
		t.Fatalf("content type %q: %v", contentType, err)
	}
	var kinds []string
	for {
		part, err := parts.NextPart()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		text := must(io.ReadAll(part))
		kinds = append(kinds, part.Header.Get("Content-Type"))
		if strings.HasPrefix(kinds[len(kinds)-1], "text/html") {
			p.html = string(text)
		} else {
			p.text = strings.ReplaceAll(string(text), "\r\n", "\n")
		}
	}
	if got := strings.ToLower(strings.Join(kinds, ", ")); got != "text/plain; charset=utf-8, text/html; charset=utf-8" {
		t.Fatalf("parts %s", got)
	}
}

func composer(t testing.TB, from string) *mail.Composer {
	t.Helper()
	return must(mail.NewComposer("https://train.example.test/", from))
}

// TestWords: every mail is there in every language, complete, and leads to its
// own page; names in it are names and nothing else.
func TestWords(t *testing.T) {
	t.Parallel()
	c := composer(t, "Training <train@example.test>")
	dir := t.TempDir()
	outbox := must(mail.NewOutbox(dir))
	days := map[domain.Language]string{domain.English: "1 August 2026", domain.Spanish: "1 de agosto de 2026", domain.French: "1er août 2026"}
	tags := map[domain.Language]string{domain.English: "en", domain.Spanish: "es", domain.French: "fr-CA"}
	day := time.Date(2026, 8, 1, 9, 0, 0, 0, time.UTC)
	subjects := map[string]bool{}
	for _, kind := range []domain.MessageType{domain.WelcomeMail, domain.AdminInviteMail, domain.TrainingInvite, domain.PolicyReminder} {
		for language, date := range days {
			m := domain.Mail{
				ID: db.NewID[domain.MessageKind](), Type: kind, To: "ada@example.test", Name: "Ada <b>", Language: language,
				ClientName: "Tom & Jerry\r\nBcc: all@example.test\n\nx", PartnerName: "Überwald", Invite: db.NewID[domain.InviteKind](), ExpiresAt: day,
				Policy: db.NewID[domain.PolicyKind](), PolicyTitle: "Acceptable use", Course: db.NewID[domain.CourseKind](), CourseTitle: "Passwords", DueOn: domain.DateOf(day),
			}
			link := map[domain.MessageType]string{
				domain.WelcomeMail: "/training", domain.AdminInviteMail: "/invites/" + m.Invite.String(),
				domain.TrainingInvite: "/training/" + m.Course.String(), domain.PolicyReminder: "/policies/" + m.Policy.String(),
			}[kind]
			message := must(c.Compose(m, v2test.Noon))
			if err := outbox.Send(t.Context(), message); err != nil {
				t.Fatal(err)
			}
			data := must(os.ReadFile(filepath.Join(dir, m.ID.UUID()+".eml")))
			p := parse(t, data)
			subjects[p.subject] = true
			for _, ok := range []bool{
				p.Get("To") == "<ada@example.test>", strings.Contains(p.Get("From"), "<train@example.test>"), p.Get("Bcc") == "",
				p.Get("Content-Language") == tags[language], p.Get("Message-ID") == "<"+m.ID.UUID()+"@example.test>",
				p.Get("Auto-Submitted") == "auto-generated", p.Get("Date") == "Mon, 15 Jun 2026 12:00:00 +0000",
				strings.Contains(p.text, "\nhttps://train.example.test"+link+"\n"), strings.Contains(p.html, `href="https://train.example.test`+link+`"`),
				strings.Contains(p.html, `<html lang="`+tags[language]+`">`), strings.Contains(p.text, "Ada <b>"), strings.Contains(p.html, "Ada &lt;b&gt;"),
				strings.Contains(p.text, "Überwald"), strings.Contains(p.html, "Tom &amp; Jerry Bcc: all@example.test x"), len(strings.Split(p.html, "<p>")) == 4,
				strings.Contains(p.text, date) == (kind == domain.AdminInviteMail || kind == domain.TrainingInvite),
				!strings.Contains(p.text, "<no value>") && !strings.Contains(p.html, "ZgotmplZ"),
			} {
				if !ok {
					t.Fatalf("%s in %s:\n%s", kind, language, data)
				}
			}
		}
	}
	if len(subjects) != 12 {
		t.Errorf("%d subjects: %v", len(subjects), subjects)
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 12 {
		t.Errorf("%d files, %v", len(entries), err)
	}
}

func TestSenders(t *testing.T) {
	t.Parallel()
	for _, c := range [][3]string{
		{"http://127.0.0.1:8080", "", "no-reply@localhost"}, {"http://[::1]:8080", "", "no-reply@localhost"},
		{"https://api.example.test/x", "", "no-reply@api.example.test"}, {"https://h", "A <a@b.test>", "a@b.test"},
	} {
		composer, err := mail.NewComposer(c[0], c[1])
		if err != nil {
			t.Errorf("%v: %v", c, err)
			continue
		}
		m, err := composer.Compose(domain.Mail{Type: domain.WelcomeMail, Language: "en"}, v2test.Noon)
		if err != nil || m.From.Address != c[2] {
			t.Errorf("%v: %s, %v", c, m.From.Address, err)
		}
	}
	for _, c := range [][2]string{
		{"relative", ""}, {"//h", ""}, {"ftp://h", ""}, {"https://", ""}, {"http://:80", ""}, {"https://h?x=1", ""}, {"https://h#x", ""},
		{"https://h", "nobody"}, {"https://h", "a@xn--ü.test"},
	} {
		if _, err := mail.NewComposer(c[0], c[1]); err == nil {
			t.Errorf("%v is accepted", c)
		}
	}
}
